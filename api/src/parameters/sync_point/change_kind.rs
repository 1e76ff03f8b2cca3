//! Kind of a change.

use market::text_enum;

text_enum! {
    /// Kind of a change: dividend records, split records, or a value of a security as a whole. The values are ticker
    /// events, adjustment factors, dividend status and dividend lists.
    pub(crate) enum ChangeKind {
        // In the order of delivery within a commit. A rename comes before the rows of the new symbol.
        Events = "events", Dividends = "dividends", Splits = "splits", Factors = "factors", Statuses = "statuses",
        Lists = "lists",
    }
}
