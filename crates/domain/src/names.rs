//! Closed sets of names: an enum whose variants have one spelling each, shared by SQL, metrics and
//! documents. It does not allow for aliases or other letter cases.

/// A text that is not one of a closed set of names. The text itself is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known {set}")]
pub struct UnknownName {
    /// What was expected, in words.
    pub set: &'static str,
}

/// Declares an enum together with its names: `as_str`, `ALL`, `Display` and `FromStr`.
macro_rules! names {
    (
        $(#[$attribute:meta])*
        pub enum $Name:ident: $set:literal {
            $( $(#[$variant_attribute:meta])* $Variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $Name {
            $( $(#[$variant_attribute])* $Variant, )+
        }

        impl $Name {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [Self] = &[ $( Self::$Variant, )+ ];

            /// The name in SQL, metrics and documents.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$Variant => $text, )+ }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|name| name.as_str() == text)
                    .ok_or($crate::UnknownName { set: $set })
            }
        }
    };
}

pub(crate) use names;
