//! What can go wrong with the database, one variant for each thing a caller does differently.

/// A failed statement. Never carries bound values: payloads and secrets are among them.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, or was lost on the way: try again later.
    #[error("the database is not available: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused what was written: the caller's input is at fault.
    #[error("the database refused this: {0}")]
    Refused(String),
    /// The schema is missing or of another version.
    #[error("the schema is not the one this program needs ({0}): run `kurier migrate`")]
    Schema(String),
    /// A stored value that this program cannot read.
    #[error("a stored value cannot be read: {0}")]
    Corrupt(String),
    /// Anything else that the statement itself ran into.
    #[error("the database failed on a statement: {0}")]
    Statement(#[source] sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        match &error {
            sqlx::Error::Database(refusal) => match class_of(refusal.as_ref()).as_str() {
                // Integrity constraints and data exceptions: `message` names the rule, not the values.
                "22" | "23" => StoreError::Refused(refusal.message().to_owned()),
                // Undefined tables, columns, functions and schemas.
                "42" | "3F" => StoreError::Schema(refusal.message().to_owned()),
                // Connection lost, resources, shutdown.
                "08" | "53" | "57" => StoreError::Unavailable(error),
                _ => StoreError::Statement(error),
            },
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::TypeNotFound { .. } => StoreError::Corrupt(error.to_string()),
            sqlx::Error::RowNotFound => StoreError::Statement(error),
            _ => StoreError::Unavailable(error),
        }
    }
}

/// The class of an SQLSTATE: its first two characters.
fn class_of(refusal: &dyn sqlx::error::DatabaseError) -> String {
    refusal.code().unwrap_or_default().chars().take(2).collect()
}
