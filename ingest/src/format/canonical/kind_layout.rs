//! Columns of each kind of rows in the canonical feed. The column names are a public contract.
//!
//! `ingest columns`: lists the kinds of rows, and the columns of one kind.

use std::borrow::Cow;

use clap::Args;
use market::event::{Action, DividendType, Frequency, Kind, ListingStatus, SecurityType, ShareBasis};
use serde_json::json;
use telemetry::table::{Column, Table};
use telemetry::{list_names, outln};

use crate::format::file_head::{vendor_names_of, words_of_topic};
use crate::normalize::{RecordCells, RowError};
use crate::source::csv_reader::CsvRecord;

/// Additional columns of exported rejects: the reject id, the name of the original file, and the reason.
pub(crate) const ID_FIELD: &str = "reject_id";
pub(crate) const FILE_FIELD: &str = "reject_file";
pub(crate) const REASON_FIELD: &str = "reject_reason";
pub(crate) const EXPORT_FIELDS: [&str; 3] = [ID_FIELD, FILE_FIELD, REASON_FIELD];

/// Columns of one kind.
pub(crate) struct KindLayout {
    pub(crate) kind: Kind,
    /// Key columns, which every row needs. A row that retracts an earlier row needs no other columns.
    pub(crate) key: &'static [&'static str],
    /// Required columns in addition to the key columns.
    pub(crate) required: &'static [&'static str],
    /// All columns of the kind. The list begins with the columns that are common to all kinds, such as `revision`.
    pub(crate) names: &'static [&'static str],
}

pub(super) const LISTS: [&str; 2] = ["former_symbols", "indexes"];

macro_rules! layouts {
    ($($kind:ident: [$($key:literal)*] [$($required:literal)*] [$($optional:literal)*];)*) => {
        /// Layouts of all kinds that can be loaded.
        pub(crate) static ALL: &[KindLayout] = &[$(KindLayout {
            kind: Kind::$kind,
            key: &[$($key),*],
            required: &[$($required),*],
            names: &["kind", "id", "revision", "action", "observed_at", "security_ref", $($key,)* $($required,)* $($optional),*],
        }),*];
    };
}

layouts! {
    Security: ["symbol"] ["name" "type"] ["exchange" "currency" "sector" "industry" "country" "description" "website"
        "ceo" "employees" "ipo_date" "cik" "figi" "isin" "cusip" "former_symbols" "indexes" "status" "delisted_on"
        "dividend_suspended_on" "streak_seed_years" "streak_seed_through" "successor" "merger_ratio"];
    Price: ["symbol" "date"] ["close"] ["open" "high" "low" "volume" "vwap" "trade_count" "basis" "basis_as_of"];
    Dividend: ["symbol"] ["amount"] ["ex_date" "record_date" "payment_date" "declaration_date" "currency" "type"
        "type_text" "frequency" "amount_basis" "basis_as_of"];
    Split: ["symbol" "ex_date"] ["from" "to"] ["declaration_date" "payable_date" "type"];
    Fundamentals: ["symbol" "as_of"] [] ["eps_ttm" "eps_as_of" "ffo_per_share_ttm" "shares_outstanding" "shares_as_of"
        "float_shares" "market_cap" "float_market_cap" "avg_daily_value" "revenue_ttm" "net_income_ttm"
        "operating_cash_flow_ttm" "capital_expenditure_ttm" "free_cash_flow_ttm" "dividends_paid_ttm"
        "book_value_per_share" "total_debt" "total_equity" "enterprise_value" "gross_margin" "operating_margin"
        "net_margin" "roe" "roa" "current_ratio" "interest_coverage" "forward_pe" "peg_ratio" "ps_ratio"
        "ev_to_ebitda" "beta" "fiscal_period_end" "reported_currency"];
    Etf: ["symbol" "as_of"] [] ["issuer" "asset_class" "category" "strategy" "index_name" "domicile" "inception_date"
        "expense_ratio" "aum" "nav" "nav_date" "sec_yield_30d" "is_leveraged" "is_inverse" "leverage_factor"
        "related_symbol" "turnover"];
    Holding: ["etf_symbol" "as_of"] ["name" "weight"] ["symbol" "asset_type" "shares" "market_value" "currency" "isin"
        "cusip" "figi" "sector" "country"];
    Fx: ["date" "base" "quote"] ["rate"] [];
    Session: ["date"] [] ["note"];
}

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanonicalColumnType {
    Text,
    Date,
    Number,
}

/// Type of a column's values, by column name.
pub(crate) fn canonical_column_type(column: &str) -> CanonicalColumnType {
    match column {
        "kind" | "id" | "action" | "observed_at" | "security_ref" | "symbol" | "name" | "type"
        | "type_text" | "exchange" | "currency" | "sector" | "industry" | "country" | "description"
        | "website" | "ceo" | "cik" | "figi" | "isin" | "cusip" | "status" | "basis" | "amount_basis"
        | "frequency" | "reported_currency" | "base" | "quote" | "issuer" | "asset_class" | "category"
        | "strategy" | "index_name" | "domicile" | "related_symbol" | "successor" | "etf_symbol"
        | "asset_type" | "note" | "is_leveraged" | "is_inverse" | "former_symbols" | "indexes" => {
            CanonicalColumnType::Text
        }
        "date" | "as_of" | "delisted_on" | "dividend_suspended_on" | "fiscal_period_end" => {
            CanonicalColumnType::Date
        }
        _ if column.ends_with("_date") || column.ends_with("_as_of") => CanonicalColumnType::Date,
        _ => CanonicalColumnType::Number,
    }
}

impl KindLayout {
    /// Layout of a kind; `None` for kinds that cannot be loaded from files.
    pub(crate) fn for_kind(kind: Kind) -> Option<&'static Self> {
        ALL.iter().find(|layout| layout.kind == kind)
    }

    /// Finds each column of a header: its index in [`Self::names`], or `None` for an unknown name. Fails with a message
    /// if the header does not fit the kind.
    pub(super) fn columns(
        &self,
        header: &[String],
        ignore_unknown: bool,
    ) -> Result<Vec<Option<usize>>, String> {
        let mut columns = Vec::with_capacity(header.len());
        let mut unknown = Vec::new();
        for column in header {
            let index = self.names.iter().position(|name| name == column);
            if index.is_some() && columns.contains(&index) {
                return Err(format!("has the column {column} twice: keep one"));
            }
            if index.is_none() && !EXPORT_FIELDS.contains(&column.as_str()) {
                unknown.push(if column.is_empty() { "(no name)" } else { column.as_str() });
            }
            columns.push(index);
        }
        if !unknown.is_empty() && !ignore_unknown {
            return Err(format!(
                "has unknown columns for a {}: {}. Rename or remove them, add --ignore-unknown, or read the file under a map (ingest map FILE); known columns: {}",
                self.kind,
                unknown.join(", "),
                self.names.join(", ")
            ));
        }
        let has = |name: &&&str| header.iter().any(|column| column == **name);
        let missing =
            |names: &[&str]| names.iter().filter(|name| !has(name)).copied().collect::<Vec<_>>().join(", ");
        // A file with an `action` column may consist of retractions, which need only the key columns.
        let retracting = header.iter().any(|column| column == "action");
        let absent = [missing(self.key), if retracting { String::new() } else { missing(self.required) }];
        let absent = absent.iter().filter(|names| !names.is_empty()).cloned().collect::<Vec<_>>().join(", ");
        if absent.is_empty() {
            Ok(columns)
        } else {
            Err(format!(
                "lacks the required columns of a {}: {absent}; a map can name their columns (ingest map FILE)",
                self.kind
            ))
        }
    }

    /// Cells of a CSV record by column name. `columns` are the indexes from [`Self::columns`]. Text that is not UTF-8
    /// is an error.
    pub(super) fn cells<'a>(
        &self,
        columns: &[Option<usize>],
        record: &CsvRecord<'a>,
    ) -> Result<RecordCells<'a>, RowError> {
        let mut cells = RecordCells::new(self.names);
        for (field, column) in record.fields().zip(columns) {
            let Some(index) = column else { continue };
            let text = std::str::from_utf8(field).map_err(|_| {
                let message =
                    format_args!("{} is not UTF-8 text: save the file as UTF-8", self.names[*index]);
                RowError::new("malformed_row", message)
            })?;
            cells.set(*index, Cow::Borrowed(text));
        }
        Ok(cells)
    }
}

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
    kind_of_file_name(text).ok_or_else(|| {
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
        let file = format!("{}.csv", plural_of(layout.kind));
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

/// Kind of the rows in a file, from the file name: `price` for `prices-2024.csv.gz`. A folder before the name is
/// ignored.
pub(crate) fn kind_of_file_name(file_name: &str) -> Option<Kind> {
    kind_of(file_name.rsplit(['/', '\\']).next().unwrap_or(file_name))
}

/// Kind in a file name: the part before the first `.` or `-`, in singular or plural.
pub(super) fn kind_of(stem: &str) -> Option<Kind> {
    let name = stem.split(['.', '-']).next().unwrap_or(stem).to_ascii_lowercase();
    ALL.iter().map(|layout| layout.kind).find(|kind| {
        let word = kind.as_str();
        name == word || name == plural_of(*kind) || name == word.trim_end_matches('s')
    })
}

/// Name of a file with rows of a kind, such as `prices`.
fn plural_of(kind: Kind) -> String {
    let word = kind.as_str();
    match word.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if word.ends_with('s') => word.to_owned(),
        None => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn names_say_kinds() {
        for (stem, kind) in [
            ("prices", "price"),
            ("price-2024", "price"),
            ("Dividends.us", "dividend"),
            ("securities", "security"),
            ("etfs", "etf"),
            ("fundamentals", "fundamentals"),
            ("fundamental-x", "fundamentals"),
            ("holdings-spy", "holding"),
            ("sessions", "session"),
            ("splits", "split"),
        ] {
            assert_eq!(kind_of(stem).map(market::event::Kind::as_str), Some(kind), "{stem}");
        }
        for stem in ["AAPL", "runs", "rejects", "pricelist", ""] {
            assert_eq!(kind_of(stem), None, "{stem}");
        }
    }
}
