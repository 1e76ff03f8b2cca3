//! Output of the commands that print a list: a table or JSON.

use chrono::NaiveDate;
use market::metrics::rules::RuleParameter;
use market::row::Quarantined;
use serde::Serialize;
use telemetry::table::{Column, ListArgs, Table};

use super::print_json;
use crate::apply::dead_letters::DeadLetterEntry;
use crate::generations::promote::GenerationSummary;
use crate::policy::{ListedRule, RuleState};

/// Prints a list as JSON, or as `table`. `add_row` adds the row of one entry to the table.
fn print_list<T: Serialize>(
    listed: &[T],
    output: &ListArgs,
    mut table: Table,
    empty: &str,
    add_row: impl Fn(&mut Table, &T),
) -> anyhow::Result<()> {
    if output.json {
        return print_json(&&listed[..listed.len().min(output.max_rows())]);
    }
    listed.iter().for_each(|one| add_row(&mut table, one));
    table.print(empty);
    Ok(())
}

fn date_text(date: Option<NaiveDate>) -> String {
    date.map_or_else(|| "-".to_owned(), |date| date.to_string())
}

/// Prints `projector list`.
pub fn print_generations(listed: &[GenerationSummary], output: &ListArgs) -> anyhow::Result<()> {
    let columns = [
        Column::Number("generation"),
        Column::Text("state"),
        Column::Text("rules"),
        Column::Text("facts"),
        Column::Number("sequence"),
        Column::Number("lag"),
        Column::Text("as of"),
        Column::Text("use"),
    ];
    let table = Table::new(["generation", "generations"], &columns, output.max_rows());
    print_list(
        listed,
        output,
        table,
        "no generations: projector migrate creates the first one",
        |table, one| {
            let mark = match (one.served, one.previous) {
                (true, _) => "served",
                (false, true) => "previous",
                (false, false) => "",
            };
            let cells = [
                one.generation.to_string(),
                one.state.clone(),
                one.method_version.clone(),
                one.fact_set.clone(),
                one.sequence.to_string(),
                one.lag_events.to_string(),
                date_text(one.as_of),
                mark.to_owned(),
            ];
            let rules = one.rules.iter().map(|(name, value)| format!("{name} = {value}"));
            table.add_detailed_row(cells, rules.chain(one.note.clone()));
        },
    )
}

/// Prints `projector rules`.
pub fn print_rules(parameters: &[RuleParameter], output: &ListArgs) -> anyhow::Result<()> {
    let columns = [
        Column::Text("parameter"),
        Column::Text("rule"),
        Column::Number("default"),
        Column::Text("allowed"),
        Column::Text("meaning"),
    ];
    let table = Table::new(["parameter", "parameters"], &columns, output.max_rows());
    print_list(parameters, output, table, "no parameters", |table, one| {
        table.add_row([
            one.name.to_owned(),
            one.rule.to_owned(),
            one.default.to_string(),
            format!("{} to {} {}", one.least, one.most, one.unit),
            one.meaning.to_owned(),
        ]);
    })
}

/// Prints `projector policy list`.
pub fn print_policy(listed: &[ListedRule], output: &ListArgs) -> anyhow::Result<()> {
    let columns = [
        Column::Text("kind"),
        Column::Text("source"),
        Column::Text("from"),
        Column::Text("to"),
        Column::Number("rank"),
        Column::Text("state"),
    ];
    let table = Table::new(["rule", "rules"], &columns, output.max_rows());
    let empty = "no policy is set: the newest source wins; projector policy set ranks a source";
    print_list(listed, output, table, empty, |table, ListedRule { rule, standing }| {
        let state = match standing {
            RuleState::Served => "served",
            RuleState::Waits => "followed by the next generation",
            RuleState::Ends => "removed with the next generation",
        };
        table.add_row([
            rule.kind.to_string(),
            rule.source.clone(),
            date_text(rule.from),
            date_text(rule.to),
            rule.rank.to_string(),
            state.to_owned(),
        ]);
    })
}

/// Prints `projector dead-letters list` and `show`. If `whole` is true, the payloads are printed too.
pub fn print_dead_letters(letters: &[DeadLetterEntry], whole: bool, output: &ListArgs) -> anyhow::Result<()> {
    let columns = [
        Column::Text("letter"),
        Column::Text("status"),
        Column::Text("code"),
        Column::Text("source"),
        Column::Text("row"),
        Column::Text("reason"),
    ];
    let table = Table::new(["dead letter", "dead letters"], &columns, output.max_rows());
    let empty = match whole {
        true => "no dead letters: every row of this message was applied, or the log has no such message",
        false => {
            "no dead letters: every message and row was applied, or is decided (projector dead-letters show SEQUENCE)"
        }
    };
    print_list(letters, output, table, empty, |table, one| {
        let place = match (&one.file, one.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => "-".to_owned(),
        };
        let cells = [
            format!("{}/{}", one.sequence, one.item),
            one.status.clone(),
            one.code.clone(),
            one.source.clone().unwrap_or_else(|| "-".to_owned()),
            place,
            one.reason.clone(),
        ];
        table.add_detailed_row(cells, whole.then(|| one.payload.clone()));
    })
}

/// Prints `projector quarantine list`.
pub fn print_quarantine(rows: &[Quarantined], output: &ListArgs) -> anyhow::Result<()> {
    let columns = [
        Column::Text("symbol"),
        Column::Text("kind"),
        Column::Text("date"),
        Column::Text("source"),
        Column::Number("line"),
        Column::Text("reason"),
        Column::Text("message"),
    ];
    let table = Table::new(["quarantined row", "quarantined rows"], &columns, output.max_rows());
    let empty = "no quarantined rows: the rules exclude no row of this selection from the figures";
    print_list(rows, output, table, empty, |table, row| {
        let id = row.id.as_ref().map(|id| format!(" (id {id})")).unwrap_or_default();
        table.add_row([
            row.symbol.to_string(),
            row.kind.to_string(),
            date_text(row.date),
            row.source.clone(),
            row.line.to_string(),
            row.reason.clone(),
            format!("{}{id}", row.message),
        ]);
    })
}
