//! `ingest columns`: lists the kinds of rows, and the columns of one kind.

use clap::Args;
use market::event::{Action, DividendType, Frequency, Kind, ListingStatus, SecurityType, ShareBasis};
use serde_json::json;
use telemetry::table::{Column, Table};
use telemetry::{list_names, outln};

use super::kind_layout::{ALL, CanonicalColumnType, KindLayout, canonical_column_type};
use crate::format::file_head::{vendor_names_of, words_of_topic};

/// Maximum number of vendors' names in a cell.
const MAX_LISTED: usize = 6;

/// Lists the columns of a kind of rows, or the kinds.
///
/// A CSV file has the name of its kind (prices.csv, dividends-2024.csv) and these columns in any order. Columns that are
/// not required may be absent. Files with other names of columns are loaded with a map: `ingest map FILE` recognizes the
/// listed names, and proposes the map.
#[derive(Debug, Clone, Args)]
pub(crate) struct ColumnsArgs {
    /// Kind of the rows: price, dividend, split …; default: list the kinds
    #[arg(value_parser = parse_kind)]
    pub(crate) kind: Option<Kind>,
    /// Print each kind or column as one line of JSON, with all words and names
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses the name of a kind that can be loaded, in singular or plural.
pub(crate) fn parse_kind(text: &str) -> Result<Kind, String> {
    super::kind_of_file_name(text).ok_or_else(|| {
        let kinds: Vec<&str> = ALL.iter().map(|layout| layout.kind.as_str()).collect();
        format!("one of: {}", kinds.join(", "))
    })
}

/// Prints the columns of a kind, or the kinds.
pub(crate) fn list_columns(args: &ColumnsArgs) {
    match args.kind.and_then(KindLayout::for_kind) {
        Some(layout) => print_columns(layout, args.json),
        None => print_kinds(args.json),
    }
}

fn print_kinds(json: bool) {
    let columns = ["kind", "file", "required columns"].map(Column::Text);
    let mut table = Table::new(["kind", "kinds"], &columns, usize::MAX);
    for layout in ALL {
        let required: Vec<&str> = layout.key.iter().chain(layout.required).copied().collect();
        let file = format!("{}.csv", super::plural_of(layout.kind));
        match json {
            true => outln!("{}", json!({ "kind": layout.kind, "file": file, "required": required })),
            false => table.add_row([layout.kind.to_string(), file, required.join(", ")]),
        }
    }
    if !json {
        table.add_note("ingest columns KIND lists all columns of a kind");
        table.print("no kinds");
    }
}

fn print_columns(layout: &KindLayout, json: bool) {
    let columns = ["column", "required", "type", "example", "names in other files"].map(Column::Text);
    let mut table = Table::new(["column", "columns"], &columns, usize::MAX);
    let required = layout.key.iter().chain(layout.required).copied();
    // The required columns come first, and the columns that all kinds have come last.
    let mut names: Vec<&str> = required.collect();
    let common = layout.names.iter().position(|name| *name == names[0]).unwrap_or_default();
    names.extend(&layout.names[common + names.len()..]);
    names.extend(&layout.names[..common]);
    for name in names {
        let words = words_of_column(layout.kind, name);
        let is_required = layout.key.contains(&name) || layout.required.contains(&name);
        let needed = match (layout.kind, name) {
            (Kind::Dividend, "ex_date") => "or record_date",
            (Kind::Dividend, "record_date") => "or ex_date",
            _ if is_required => "yes",
            _ => "",
        };
        let type_name = match canonical_column_type(name) {
            CanonicalColumnType::Date => "date",
            CanonicalColumnType::Number => "number",
            CanonicalColumnType::Text if !words.is_empty() => "word",
            CanonicalColumnType::Text => "text",
        };
        let (example, others) = (example(name), vendor_names_of(layout.kind, name));
        if json {
            outln!(
                "{}",
                json!({ "column": name, "required": needed, "type": type_name, "example": example, "words": words, "names": others })
            );
            continue;
        }
        let example = words.first().copied().unwrap_or(example);
        let others = list_names(&others, MAX_LISTED, others.len());
        let choice = (words.len() > 1).then(|| format!("one of: {}", words.join(", ")));
        let cells = [name, needed, type_name, example, others.as_str()].map(str::to_owned);
        table.add_detailed_row(cells, choice);
    }
    if !json {
        table.add_note("numbers have a decimal point and no thousands separator");
        table.print("no columns");
    }
}

/// Words that a column accepts; empty for a column with other values.
fn words_of_column(kind: Kind, column: &str) -> Vec<&'static str> {
    match (kind, column) {
        (_, "kind") => vec![kind.as_str()],
        (_, "action") => Action::ALL.iter().map(|word| word.as_str()).collect(),
        (Kind::Security, "type") => SecurityType::ALL.iter().map(|word| word.as_str()).collect(),
        (Kind::Security, "status") => ListingStatus::ALL.iter().map(|word| word.as_str()).collect(),
        (Kind::Dividend, "type") => DividendType::ALL.iter().map(|word| word.as_str()).collect(),
        (_, "frequency") => Frequency::ALL.iter().map(|word| word.as_str()).collect(),
        (_, "basis") => ShareBasis::ALL.iter().map(|word| word.as_str()).collect(),
        (_, "amount_basis") => vec!["as_declared", "split_adjusted"],
        (Kind::Split, "type") => vec!["spin_off", "rights", "class_distribution"],
        (_, "is_leveraged" | "is_inverse") => vec!["true", "false"],
        _ => Vec::new(),
    }
}

/// Example of a value. The vocabulary has those of columns whose type is not enough.
fn example(column: &str) -> &'static str {
    let mut examples = words_of_topic("example").iter().filter_map(|entry| entry.split_once(' '));
    let of_type = || match canonical_column_type(column) {
        CanonicalColumnType::Date => "2024-03-15",
        CanonicalColumnType::Number => "58.10",
        CanonicalColumnType::Text => "",
    };
    examples.find(|(known, _)| *known == column).map_or_else(of_type, |(_, example)| example)
}
