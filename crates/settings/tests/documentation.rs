//! The documented table of variables is the catalogue.

use settings::VARIABLES;

const DOCUMENTATION: &str = include_str!("../../../docs/configuration.md");

#[test]
fn every_variable_is_documented_with_its_default_and_no_other() {
    let of_table = DOCUMENTATION
        .lines()
        .filter(|line| line.starts_with("| `KURIER_"));
    let documented: Vec<String> = of_table.map(str::to_owned).collect();
    let catalogued: Vec<String> = VARIABLES
        .iter()
        .map(|variable| {
            let default = match variable.default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            format!("| `{}` | {default} | {} |", variable.name, variable.meaning)
        })
        .collect();
    assert_eq!(documented, catalogued);
}
