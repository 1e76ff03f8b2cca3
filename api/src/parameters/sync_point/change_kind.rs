//! Kind of changed data.

use market::text_enum;

text_enum! {
    /// Kind of changed data. Dividends and splits change record by record. Ticker events, adjustment factors, dividend
    /// status and dividend lists change as one value of a security.
    pub(crate) enum ChangeKind {
        // The order of the variants is the order of delivery within a commit: a rename precedes the rows of the new
        // symbol.
        Events = "events", Dividends = "dividends", Splits = "splits", Factors = "factors", Statuses = "statuses",
        Lists = "lists",
    }
}
