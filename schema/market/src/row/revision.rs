//! Revisions: changes of served dividends, splits and headline figures by later knowledge.

use chrono::{DateTime, NaiveDate, Utc};

use crate::{table_row, text_enum};

text_enum! {
    /// Subject of a revision.
    pub enum RevisedKind {
        /// Dividend record.
        Dividend = "dividend",
        /// Split record.
        Split = "split",
        /// Figure of the dividend metrics.
        Figure = "figure",
    }
}

text_enum! {
    /// Reason of a revision.
    pub enum RevisionReason {
        /// The source corrected the record.
        Correction = "correction",
        /// The source withdrew the record.
        Retraction = "retraction",
        /// Another source is served for the record.
        NewSource = "new_source",
        /// The figure includes a record that was reported later.
        NewRecord = "new_record",
        /// The source policy changed.
        Policy = "policy",
        /// A rule parameter changed.
        Rule = "rule",
    }
}

table_row! {
    /// Change of a served value by later knowledge.
    pub struct Revision {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Time since which the new value is served.
        "known_at" known_at: DateTime<Utc>,
        /// First data version with the new value.
        "data_version" data_version: String,
        /// Subject of the revision.
        "kind" kind: RevisedKind,
        /// Id of the dividend or split record; null for a figure.
        "id" id: Option<String>,
        /// Ex-date of the record; for a figure, the market date of `before` and `after`.
        "date" date: NaiveDate,
        /// Name of the revised field.
        "field" field: String,
        /// Value before, as text; null if there was none.
        "before" before: Option<String>,
        /// Value after, as text; null if there is none.
        "after" after: Option<String>,
        /// Value that was served first.
        "first_reported" first_reported: Option<String>,
        /// Value after the newest revision.
        "latest" latest: Option<String>,
        /// Reason of the revision.
        "reason" reason: RevisionReason,
        /// Feed of the record after the revision; null for a figure and for a withdrawn record.
        "source" source: Option<String>,
    }
}
