//! Compared read tables, with their keys.

/// Compared read table and its key.
#[derive(Debug, Clone, Copy)]
pub struct ComparedTable {
    /// Name of the table, in the database and in the option `--table`.
    pub name: &'static str,
    pub(crate) key: &'static [&'static str],
    /// Name of the column with the owner of a row. An owner is a security, fund or sector.
    pub(crate) owner: &'static str,
    /// Name of the column with the day of a row; `None` if the rows have no day.
    pub(crate) day: Option<&'static str>,
    /// SQL sort order for rows with equal keys; `None` if each key is unique.
    pub(crate) tie: Option<&'static str>,
}

const fn table(name: &'static str, key: &'static [&'static str]) -> ComparedTable {
    ComparedTable { name, key, owner: "symbol", day: None, tie: None }
}

/// Every compared read table.
pub const TABLES: [ComparedTable; 13] = [
    table("stocks", &["symbol"]),
    table("quotes", &["symbol"]),
    table("fundamentals", &["symbol"]),
    table("metrics", &["symbol"]),
    ComparedTable { day: Some("ex_date"), ..table("dividends", &["symbol", "ex_date", "type", "id"]) },
    ComparedTable { day: Some("ex_date"), ..table("splits", &["symbol", "ex_date", "id"]) },
    ComparedTable {
        day: Some("date"),
        tie: Some("id, message"),
        ..table("quarantine", &["symbol", "kind", "date", "source", "line"])
    },
    ComparedTable { day: Some("date"), ..table(PRICES, &["symbol", "date"]) },
    table("factors", &["symbol"]),
    ComparedTable { owner: "canonical", ..table(SYMBOLS, &["symbol"]) },
    table("etfs", &["symbol"]),
    ComparedTable {
        owner: "etf_symbol",
        day: Some("as_of"),
        ..table(HOLDINGS, &["etf_symbol", "as_of", "rank"])
    },
    ComparedTable { owner: "slug", ..table(SECTORS, &["slug"]) },
];

/// Table of prices. A row contains one year of bars, which are unpacked and compared by day and field.
pub(crate) const PRICES: &str = "prices";
/// Table of symbol spellings: the current and former symbols of each security. A symbol may belong to different
/// securities in the two generations.
pub(crate) const SYMBOLS: &str = "symbols";
/// Table of fund holdings, with thousands of rows per fund and day.
pub(crate) const HOLDINGS: &str = "holdings";
/// Table of sector statistics. Its rows do not belong to a security.
pub(crate) const SECTORS: &str = "sectors";

/// Name of the column with the rule version. It is not compared, because a different rule version is a cause of
/// differing rows and not an effect.
pub(crate) const METHOD_VERSION: &str = "method_version";
