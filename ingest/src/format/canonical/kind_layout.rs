//! Columns of each kind of rows in the canonical feed. The column names are a public contract.

use std::borrow::Cow;

use market::event::Kind;

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
