//! What people decided about held rows, as an explanation tells it.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::event::{Action, Verdict};
use crate::history::History;
use crate::measure::merge::newest_decisions;
use crate::value::Exact;

/// A decision about one row, as the row stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedDecision {
    /// What was decided.
    pub verdict: Verdict,
    /// price, dividend or split.
    pub kind: String,
    /// Ex-date or session of the row.
    pub date: Option<NaiveDate>,
    /// Vendor's id of the row.
    pub id: Option<String>,
    /// Feed the row came from.
    pub source: String,
    /// Amount a share, close, or new shares of a split: of the row as it was decided on.
    pub value: Exact,
    /// The reason code it was held with.
    pub reason: String,
    /// Why it was decided so.
    pub note: String,
    /// When it was decided, or taken back.
    pub decided_at: DateTime<Utc>,
    /// Whether it was taken back.
    pub revoked: bool,
}

/// The newest decision about each row.
pub(super) fn explained(history: &History) -> Vec<ExplainedDecision> {
    let newest = newest_decisions(&history.decisions);
    let told = newest.into_values().map(|decision| ExplainedDecision {
        verdict: decision.record.verdict,
        kind: decision.record.row.kind.to_string(),
        date: decision.record.row.date,
        id: decision.record.row.row_id.clone(),
        source: decision.record.row.source.clone(),
        value: decision.record.row.value.into(),
        reason: decision.record.reason.clone(),
        note: decision.record.note.clone(),
        decided_at: decision.observed_at,
        revoked: decision.action == Action::Retract,
    });
    told.collect()
}
