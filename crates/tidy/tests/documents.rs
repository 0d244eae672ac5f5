//! Rules for the documents: what they tell a reader to type must exist.

use tidy::{assert_none, text_files};

/// The command after each `./run ` in a line.
fn run_commands(line: &str) -> impl Iterator<Item = &str> {
    line.split("./run ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase());
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn every_run_command_in_a_document_exists() {
    let files = text_files();
    let run = files.iter().find(|file| file.path == "run").expect("run");
    let offered = |command: &str| run.text.contains(&format!("\n  {command} "));
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.has_extension("md")) {
        for (number, line) in file.numbered_lines() {
            let unknown = run_commands(line).filter(|command| !offered(command));
            faults
                .extend(unknown.map(|command| format!("{}:{number}: ./run {command}", file.path)));
        }
    }
    assert_none("`./run help` does not offer it", &faults);
}

#[test]
fn a_command_ends_where_its_word_ends() {
    let found: Vec<&str> = run_commands("`./run demo`, then ./run test").collect();
    assert_eq!(found, ["demo", "test"]);
}
