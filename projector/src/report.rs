//! Output of the commands: a result as a report or as JSON, and a list as a table or as JSON.

use chrono::NaiveDate;
use market::metrics::rules::RuleParameter;
use market::metrics::source_preference::DEFAULT_CHOICE;
use market::row::Quarantined;
use serde::Serialize;
use telemetry::report::print_json;
use telemetry::table::Column::{self, Number, Text};
use telemetry::table::{ListArgs, Table};

use crate::apply::DeadLetterEntry;
use crate::generations::GenerationSummary;
use crate::policy::{ListedRule, RuleState};
use crate::review::sources::ListedSource;

/// Column of a table, and the function that formats its cell for one entry of the list.
type ListColumn<T> = (Column, fn(&T) -> String);

/// Prints a list as JSON, or as a table. `nouns` are the singular and the plural name of an entry. `details` returns
/// the lines that are printed below an entry.
fn print_list<T: Serialize>(
    listed: &[T],
    output: &ListArgs,
    nouns: [&'static str; 2],
    columns: &[ListColumn<T>],
    empty: &str,
    details: impl Fn(&T) -> Vec<String>,
) -> anyhow::Result<()> {
    if output.json {
        return Ok(print_json(&&listed[..listed.len().min(output.max_rows())])?);
    }
    let headers: Vec<Column> = columns.iter().map(|(column, _)| *column).collect();
    let mut table = Table::new(nouns, &headers, output.max_rows());
    for one in listed {
        table.add_detailed_row(columns.iter().map(|(_, cell)| cell(one)), details(one));
    }
    table.print(empty);
    Ok(())
}

fn date_text(date: Option<NaiveDate>) -> String {
    date.map_or_else(|| "-".to_owned(), |date| date.to_string())
}

pub(crate) fn print_generations(listed: &[GenerationSummary], output: &ListArgs) -> anyhow::Result<()> {
    let columns: [ListColumn<GenerationSummary>; 8] = [
        (Number("generation"), |one| one.generation.to_string()),
        (Text("state"), |one| one.state.clone()),
        (Text("rules"), |one| one.method_version.clone()),
        (Text("facts"), |one| one.fact_set.clone()),
        (Number("sequence"), |one| one.sequence.to_string()),
        (Number("lag"), |one| one.lag_events.to_string()),
        (Text("as of"), |one| date_text(one.as_of)),
        (Text("use"), |one| {
            let mark = if one.previous { "previous" } else { "" };
            (if one.served { "served" } else { mark }).to_owned()
        }),
    ];
    let empty = "no generations: projector migrate creates the first one";
    print_list(listed, output, ["generation", "generations"], &columns, empty, |one| {
        let rules = one.rules.iter().map(|(name, value)| format!("{name} = {value}"));
        rules.chain(one.note.clone()).collect()
    })
}

pub(crate) fn print_rules(parameters: &[RuleParameter], output: &ListArgs) -> anyhow::Result<()> {
    let columns: [ListColumn<RuleParameter>; 5] = [
        (Text("parameter"), |one| one.name.to_owned()),
        (Text("rule"), |one| one.rule.to_owned()),
        (Number("default"), |one| one.default.to_string()),
        (Text("allowed"), |one| format!("{} to {} {}", one.least, one.most, one.unit)),
        (Text("meaning"), |one| one.meaning.to_owned()),
    ];
    print_list(parameters, output, ["parameter", "parameters"], &columns, "no parameters", |_| Vec::new())
}

pub(crate) fn print_policy(listed: &[ListedRule], output: &ListArgs) -> anyhow::Result<()> {
    let columns: [ListColumn<ListedRule>; 6] = [
        (Text("kind"), |one| one.rule.kind.to_string()),
        (Text("source"), |one| one.rule.source.clone()),
        (Text("from"), |one| date_text(one.rule.from)),
        (Text("to"), |one| date_text(one.rule.to)),
        (Number("rank"), |one| one.rule.rank.to_string()),
        (Text("state"), |one| {
            let state = match one.standing {
                RuleState::Served => "served",
                RuleState::Waits => "followed by the next generation",
                RuleState::Ends => "removed with the next generation",
            };
            state.to_owned()
        }),
    ];
    let empty = format!("{DEFAULT_CHOICE}; projector policy set ranks a source");
    print_list(listed, output, ["rule", "rules"], &columns, &empty, |_| Vec::new())
}

pub(crate) fn print_sources(listed: &[ListedSource], output: &ListArgs) -> anyhow::Result<()> {
    let columns: [ListColumn<ListedSource>; 5] = [
        (Text("source"), |one| one.source.clone()),
        (Text("kinds"), |one| one.kinds.join(", ")),
        (Text("licence"), |one| one.licence.clone().unwrap_or_else(|| "-".to_owned())),
        (Text("redistribution"), |one| match one.redistribution {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "-".to_owned(),
        }),
        (Text("stated"), |one| {
            one.stated_at.map_or_else(|| "-".to_owned(), |at| at.format("%Y-%m-%d %H:%M").to_string())
        }),
    ];
    print_list(listed, output, ["source", "sources"], &columns, "no sources: nothing is loaded yet", |one| {
        one.url.iter().chain(&one.attribution).cloned().collect()
    })
}

/// Prints the output of `projector dead-letters list` and `show`. If `whole` is true, the payloads are printed too.
pub(crate) fn print_dead_letters(
    letters: &[DeadLetterEntry],
    whole: bool,
    output: &ListArgs,
) -> anyhow::Result<()> {
    let columns: [ListColumn<DeadLetterEntry>; 6] = [
        (Text("letter"), |one| format!("{}/{}", one.sequence, one.item)),
        (Text("status"), |one| one.status.clone()),
        (Text("code"), |one| one.code.clone()),
        (Text("source"), |one| one.source.clone().unwrap_or_else(|| "-".to_owned())),
        (Text("row"), |one| match (&one.file, one.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => "-".to_owned(),
        }),
        (Text("reason"), |one| one.reason.clone()),
    ];
    let empty = match whole {
        true => "no dead letters: every row of this message was applied, or the log has no such message",
        false => {
            "no dead letters: every message and row was applied, or is decided (projector dead-letters show SEQUENCE)"
        }
    };
    print_list(letters, output, ["dead letter", "dead letters"], &columns, empty, |one| {
        whole.then(|| one.payload.clone()).into_iter().collect()
    })
}

pub(crate) fn print_quarantine(rows: &[Quarantined], output: &ListArgs) -> anyhow::Result<()> {
    let columns: [ListColumn<Quarantined>; 7] = [
        (Text("symbol"), |row| row.symbol.to_string()),
        (Text("kind"), |row| row.kind.to_string()),
        (Text("date"), |row| date_text(row.date)),
        (Text("source"), |row| row.source.clone()),
        (Number("line"), |row| row.line.to_string()),
        (Text("reason"), |row| row.reason.clone()),
        (Text("message"), |row| {
            let id = row.id.as_ref().map(|id| format!(" (id {id})")).unwrap_or_default();
            format!("{}{id}", row.message)
        }),
    ];
    let empty = "no quarantined rows: the rules exclude no row of this selection from the figures";
    print_list(rows, output, ["quarantined row", "quarantined rows"], &columns, empty, |_| Vec::new())
}
