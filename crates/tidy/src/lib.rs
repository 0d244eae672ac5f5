//! The text files of this repository, for rules about them that no other tool checks.
//!
//! The rules are this crate's tests. Formatting, spelling, lints and licences are left to their own tools.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the work tree.
#[derive(Debug)]
pub struct TextFile {
    /// Its path from the top of the repository, with `/` between folders.
    pub path: String,
    /// What it holds.
    pub text: String,
}

impl TextFile {
    /// Whether its name ends in a dot and `extension`, in just this spelling.
    pub fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension() == Some(OsStr::new(extension))
    }

    /// Its lines, with their numbers from 1.
    pub fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// Every text file that git tracks or would offer to add. Files that are not UTF-8 are left out.
///
/// # Panics
/// If this is not a git work tree or a file cannot be read: a rule must not pass for having seen nothing.
pub fn text_files() -> Vec<TextFile> {
    paths().into_iter().filter_map(read).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn paths() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(root())
        .output()
        .expect("git can be run");
    assert!(output.status.success(), "git ls-files failed");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    names.split_terminator('\0').map(str::to_owned).collect()
}

/// None for what is no text, and for a file that is deleted but still in git's index.
fn read(path: String) -> Option<TextFile> {
    let file = root().join(&path);
    if !file.is_file() {
        return None;
    }
    let bytes = std::fs::read(file).expect("a listed file can be read");
    let text = String::from_utf8(bytes).ok()?;
    Some(TextFile { path, text })
}

/// Fails with every fault found, one a line.
///
/// # Panics
/// If there is a fault.
pub fn assert_none(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}
