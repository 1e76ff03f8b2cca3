//! Revisions: later changes of dividends, splits and headline figures that were already published in responses. A
//! change is caused by new data, a changed rule parameter or a changed source policy.

use chrono::{DateTime, NaiveDate, Utc};

use crate::{table_row, text_enum};

text_enum! {
    /// Kind of the revised value.
    pub enum RevisedKind {
        /// Dividend record.
        Dividend = "dividend",
        /// Split record.
        Split = "split",
        /// Figure of the dividend metrics, for example `dps_ttm`.
        Figure = "figure",
    }
}

text_enum! {
    /// Reason for a revision.
    pub enum RevisionReason {
        /// The source corrected the record.
        Correction = "correction",
        /// The source withdrew the record.
        Retraction = "retraction",
        /// The record now comes from another source.
        NewSource = "new_source",
        /// A new record changed the figure.
        NewRecord = "new_record",
        /// The source policy changed.
        Policy = "policy",
        /// A rule parameter changed.
        Rule = "rule",
    }
}

table_row! {
    /// Change of a value that was already published in responses. It is caused by new data, a changed rule parameter
    /// or a changed source policy.
    pub struct Revision {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Time at which the first data version with the new value became current.
        "known_at" known_at: DateTime<Utc>,
        /// First data version with the new value.
        "data_version" data_version: String,
        /// Kind of the revised value.
        "kind" kind: RevisedKind,
        /// Id of the dividend or split record; null for a figure.
        "id" id: Option<String>,
        /// Ex-date of the record. For a figure, the market date of both values: before and after the revision.
        "date" date: NaiveDate,
        /// Name of the revised field.
        "field" field: String,
        /// Value before the revision, as text; null if it was unknown.
        "before" before: Option<String>,
        /// Value after the revision, as text; null if it is unknown.
        "after" after: Option<String>,
        /// First value of the field in responses, as text; null if it was unknown.
        "first_reported" first_reported: Option<String>,
        /// Value after the newest revision of the field, as text; null if it is unknown.
        "latest" latest: Option<String>,
        /// Reason for the revision.
        "reason" reason: RevisionReason,
        /// Feed of the dividend record after the revision; null for a figure, for a split, and for a dividend that no
        /// longer exists.
        "source" source: Option<String>,
    }
}
