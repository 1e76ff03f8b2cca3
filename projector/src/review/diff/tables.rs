//! The read tables that are compared, and what identifies their rows.

/// A read table and what identifies its rows.
#[derive(Debug, Clone, Copy)]
pub struct ComparedTable {
    /// Its name in a generation's schema, which commands take too.
    pub name: &'static str,
    pub(super) key: &'static [&'static str],
    /// The column that says whose row it is.
    pub(super) owner: &'static str,
    /// The day a row is of, where it is of one.
    pub(super) day: Option<&'static str>,
    /// What orders rows that share a key, where rows can.
    pub(super) tie: Option<&'static str>,
}

const fn table(name: &'static str, key: &'static [&'static str]) -> ComparedTable {
    ComparedTable { name, key, owner: "symbol", day: None, tie: None }
}

/// Every read table that is compared.
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

/// Compared by day and field, out of their packed years.
pub(super) const PRICES: &str = "prices";
/// Whose row it is may be what differs.
pub(super) const SYMBOLS: &str = "symbols";
/// Has many rows of an owner.
pub(super) const HOLDINGS: &str = "holdings";
/// Has rows of the market, not of securities.
pub(super) const SECTORS: &str = "sectors";

/// The column that says by which rules a row was made: a reason, not a figure.
pub(super) const METHOD_VERSION: &str = "method_version";
