//! Rules for Rust source files.

use tidy::{TextFile, assert_none, text_files};

const LINES_MAX: usize = 500;

fn rust_files() -> Vec<TextFile> {
    let mut files = text_files();
    files.retain(|file| file.has_extension("rs"));
    files
}

#[test]
fn no_file_is_longer_than_500_lines() {
    let faults: Vec<String> = rust_files()
        .iter()
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(file, lines)| format!("{}:{lines}", file.path))
        .collect();
    assert_none("split the file", &faults);
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    let faults: Vec<String> = rust_files()
        .iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| format!("{}:1", file.path))
        .collect();
    assert_none("begin the module with a `//!` sentence", &faults);
}
