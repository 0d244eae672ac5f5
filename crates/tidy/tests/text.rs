//! Rules for every text file.

use tidy::{TextFile, assert_none, text_files};

/// Words that mark unfinished work. They are put together here so that this file does not hold them.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
];

/// Folders of one person's or one machine's home.
const PRIVATE_PATHS: [&str; 2] = [concat!("/ro", "ot/"), concat!("/ho", "me/")];

fn lines_with(files: &[TextFile], is_fault: impl Fn(&str) -> bool) -> Vec<String> {
    let faulty = |file: &TextFile| {
        file.numbered_lines()
            .filter(|(_, line)| is_fault(line))
            .map(|(number, line)| format!("{}:{number}: {line}", file.path))
            .collect::<Vec<_>>()
    };
    files.iter().flat_map(faulty).collect()
}

/// Files whose text is not ours to change are left out.
fn own_files() -> Vec<TextFile> {
    let foreign = |path: &str| path.ends_with("Cargo.lock") || path.ends_with("package-lock.json");
    let mut files = text_files();
    files.retain(|file| !foreign(&file.path));
    files
}

/// Whether `word` stands in `line` without a letter or digit next to it.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        apart(before) && (word.ends_with('(') || apart(after))
    })
}

#[test]
fn nothing_is_marked_as_unfinished() {
    let unfinished = |line: &str| UNFINISHED.iter().any(|word| has_word(line, word));
    let faults = lines_with(&own_files(), unfinished);
    assert_none("finish it, or file an issue", &faults);
}

#[test]
fn no_line_ends_in_space() {
    let faults = lines_with(&own_files(), |line| line.ends_with([' ', '\t']));
    assert_none("remove the space at the end of the line", &faults);
}

#[test]
fn no_path_of_one_machine_is_named() {
    let private = |line: &str| PRIVATE_PATHS.iter().any(|path| line.contains(path));
    let faults = lines_with(&own_files(), private);
    assert_none("name a path that exists everywhere", &faults);
}

#[test]
fn a_marker_inside_a_longer_word_is_not_a_marker() {
    let marker = UNFINISHED[2];
    assert!(has_word(&format!("// {marker}: later"), marker));
    assert!(!has_word(&format!("kurier-{marker}{marker}"), marker));
}
