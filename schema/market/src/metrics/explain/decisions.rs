//! Review decisions about rows of a security, as an explanation lists them.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::decimal::ExactDecimal;
use crate::event::{Action, DecisionVerdict};
use crate::history::History;
use crate::metrics::merge::newest_decisions;

/// Review decision about one row, with the values that the row had at the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedDecision {
    /// Verdict: release or confirm.
    pub verdict: DecisionVerdict,
    /// Kind of the row that the decision is about: price, dividend or split.
    pub kind: String,
    /// Ex-date or session of the row.
    pub date: Option<NaiveDate>,
    /// Vendor's id of the row.
    pub id: Option<String>,
    /// Feed of the row.
    pub source: String,
    /// Value of the row when the decision was made: amount per share, closing price, or number of new shares of a
    /// split.
    pub value: ExactDecimal,
    /// Reason code of the quarantine.
    pub reason: String,
    /// Reason that the operator gave for the decision.
    pub note: String,
    /// Time of the decision, or of its revocation if `revoked` is true.
    pub decided_at: DateTime<Utc>,
    /// True if the decision was revoked.
    pub revoked: bool,
}

/// Newest review decision about each row of a security.
pub(crate) fn explain_decisions(history: &History) -> Vec<ExplainedDecision> {
    let newest = newest_decisions(&history.decisions);
    let explained = newest.into_values().map(|decision| ExplainedDecision {
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
    explained.collect()
}
