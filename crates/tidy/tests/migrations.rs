//! Rules for the names of migrations.

use tidy::{assert_none, text_files};

const FOLDER: &str = "migrations/";

/// The number in `NNNN_name.sql`, if the name has that form.
fn number(name: &str) -> Option<usize> {
    let (number, rest) = name.strip_suffix(".sql")?.split_once('_')?;
    let words = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let well_formed = number.len() == 4 && !rest.is_empty() && rest.chars().all(words);
    number.parse().ok().filter(|_| well_formed)
}

#[test]
fn migrations_are_numbered_without_gap_or_repeat() {
    let mut names: Vec<String> = text_files()
        .iter()
        .filter(|file| file.has_extension("sql"))
        .filter_map(|file| file.path.strip_prefix(FOLDER))
        .map(str::to_owned)
        .collect();
    names.sort();
    let faults: Vec<String> = (1..)
        .zip(&names)
        .filter(|(expected, name)| number(name) != Some(*expected))
        .map(|(expected, name)| format!("{FOLDER}{name}: expected {expected:04}_name.sql"))
        .collect();
    assert_none("number migrations in sequence", &faults);
}

#[test]
fn only_four_digits_and_a_lower_case_name_are_a_migration() {
    assert_eq!(number("0012_add_endpoints.sql"), Some(12));
    for wrong in ["12_short.sql", "0012.sql", "0012_.sql", "0012_Big.sql"] {
        assert_eq!(number(wrong), None, "{wrong}");
    }
}
