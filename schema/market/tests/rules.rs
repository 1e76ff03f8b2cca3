//! Test for `RULES.md`, which lists all rules in a table. Every rule must have one row, and the rows must be in order.
//! Every file in the row of a rule must mention this rule.

use std::path::Path;

#[test]
fn every_rule_is_somewhere() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let index = std::fs::read_to_string(folder.join("RULES.md")).expect("the index");
    let rows: Vec<Vec<&str>> = index
        .lines()
        .filter(|line| line.starts_with("| R"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let named: Vec<&str> = rows.iter().map(|cells| cells[1]).collect();
    let rules: Vec<String> = (1..=45).map(|number| format!("R{number}")).collect();
    assert_eq!(named, rules);
    for cells in &rows {
        for path in cells[3].split(", ").map(|path| path.trim_matches('`')) {
            let text = std::fs::read_to_string(folder.join(path)).unwrap_or_default();
            // Each file mentions its rule, in the module documentation or next to the code.
            let mentions = text
                .match_indices(cells[1])
                .any(|(at, found)| !text[at + found.len()..].starts_with(|next: char| next.is_ascii_digit()));
            assert!(mentions, "{path} does not speak of {}", cells[1]);
        }
    }
}
