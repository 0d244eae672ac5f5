//! What goes to standard output: one table or one JSON document. It does not choose what is shown.

use std::{
    fmt::Display,
    io::{self, Write},
};

use anyhow::Context as _;
use comfy_table::{Table, presets};
use domain::text::safe_text;
use serde::Serialize;
use serde_json::Value;

/// Longest cell of a table, in characters; JSON has values whole.
const CELL_CHARS_MAX: usize = 200;

/// In which form to answer.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// Many records: a JSON array, or a table with one row for each and these columns.
    pub(crate) fn records<T: Serialize>(
        self,
        records: &[T],
        columns: &[&str],
    ) -> anyhow::Result<()> {
        if self.json {
            return self.document(&records, String::new);
        }
        let records = serde_json::to_value(records)?;
        write_line(&records_table(&records, columns))
    }

    /// One record: a JSON object, or a table with one row for each of these fields.
    pub(crate) fn record<T: Serialize>(self, record: &T, fields: &[&str]) -> anyhow::Result<()> {
        let values = serde_json::to_value(record)?;
        self.document(record, || fields_table(&values, fields))
    }

    /// One JSON document, or the text that says the same.
    pub(crate) fn document<T: Serialize>(
        self,
        document: &T,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            write_line(&serde_json::to_string_pretty(document)?)
        } else {
            write_line(&text())
        }
    }
}

/// A table of records: the columns' names, then one row for each record.
pub(crate) fn records_table(records: &Value, columns: &[&str]) -> String {
    let mut table = plain_table();
    table.set_header(columns);
    for record in records.as_array().into_iter().flatten() {
        table.add_row(columns.iter().map(|column| cell(&record[*column])));
    }
    table.trim_fmt()
}

/// A table of one record: one row with name and value for each field.
pub(crate) fn fields_table(record: &Value, fields: &[&str]) -> String {
    let mut table = plain_table();
    for field in fields {
        table.add_row([(*field).to_owned(), cell(&record[*field])]);
    }
    table.trim_fmt()
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// One line, safe for a terminal whatever the value holds; a dash where it holds nothing.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(elements) => elements.iter().map(cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    if text.is_empty() {
        return "-".to_owned();
    }
    safe_text(text.as_bytes(), CELL_CHARS_MAX)
}

fn write_line(text: &str) -> anyhow::Result<()> {
    write_stdout(format!("{text}\n").as_bytes())
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn write_stdout(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Tells people something on standard error; a closed one is no reason to fail.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// An error with its causes, each told once: many a library repeats the cause in its own text.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_cannot_break_its_row_or_reach_the_terminal() {
        assert_eq!(cell(&json!("a\nb\x1b[31m")), "a b\u{fffd}[31m");
        assert_eq!(cell(&json!(["a", "b"])), "a,b");
        for nothing in [Value::Null, json!(""), json!([])] {
            assert_eq!(cell(&nothing), "-", "{nothing}");
        }
        assert_eq!(cell(&json!(7)), "7");
    }

    #[test]
    fn a_cell_is_cut_after_its_longest_length() {
        let longest = "a".repeat(CELL_CHARS_MAX);
        assert_eq!(cell(&json!(longest)), longest);
        assert_eq!(cell(&json!(format!("{longest}b"))), longest);
    }

    #[test]
    fn a_cause_that_its_error_repeats_is_told_once() {
        let cause = anyhow::anyhow!("no route");
        let error = cause
            .context("not available: no route")
            .context("cannot list");
        assert_eq!(chain(&error), "cannot list: not available: no route");
    }

    #[test]
    fn a_table_has_its_columns_in_the_order_asked_for() {
        let table = records_table(
            &json!([{"a": 1, "b": null}, {"a": 22, "b": "x"}]),
            &["b", "a"],
        );
        let words: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words, [["b", "a"], ["-", "1"], ["x", "22"]]);
    }
}
