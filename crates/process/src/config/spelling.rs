//! Telling a misspelt variable from one that is none of ours.

/// More edits than this make another name, not a misspelling.
const EDITS_MAX: usize = 4;

/// The known name that takes the fewest edits, if it is near enough to be meant.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (edits(name, candidate), *candidate))
        .filter(|(edits, _)| *edits <= EDITS_MAX)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether Kubernetes sets a variable of this shape for a service: `X_SERVICE_HOST`,
/// `X_SERVICE_PORT[_NAME]`, `X_PORT` and `X_PORT_80_TCP[_ADDR|_PORT|_PROTO]`.
pub(super) fn is_service_link(name: &str) -> bool {
    let names_a_port = || {
        let after = name.split("_PORT_").nth(1);
        after.is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit()))
    };
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || names_a_port()
}

/// Levenshtein distance, one row at a time.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, left) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, right) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_insertions_removals_and_replacements() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn a_name_four_edits_away_is_meant_and_one_of_five_is_not() {
        assert_eq!(nearest("APP_ABCD", &["APP_"]), Some("APP_"));
        assert_eq!(nearest("APP_ABCDE", &["APP_"]), None);
    }

    #[test]
    fn service_links_are_recognised_by_their_shape() {
        for name in [
            "APP_WEB_SERVICE_HOST",
            "APP_WEB_SERVICE_PORT",
            "APP_WEB_SERVICE_PORT_HTTP",
            "APP_WEB_PORT",
            "APP_WEB_PORT_8080_TCP",
            "APP_WEB_PORT_8080_TCP_ADDR",
        ] {
            assert!(is_service_link(name), "{name}");
        }
        assert!(!is_service_link("APP_PORT_NAME"));
        assert!(!is_service_link("APP_SERVICE"));
    }
}
