//! Decisions of operators about quarantined rows of a security, as they are listed in the explanation of the security's
//! metrics.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::dated_text::{DatedText, LimitToHistory};
use crate::decimal::ExactDecimal;
use crate::event::{Action, DecisionVerdict};
use crate::history::History;
use crate::metrics::merge::newest_decisions;

/// Decision of an operator about one quarantined row. The fields that describe the row have the values from the time of
/// the decision.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedDecision {
    /// Verdict: `release` (the row is correct and is used) or `confirm` (the row is wrong and stays quarantined).
    pub verdict: DecisionVerdict,
    /// Kind of the row that the decision is about: price, dividend or split.
    pub kind: String,
    /// Session of a price, or ex-date of a dividend or split. For a dividend without an ex-date, its record date.
    pub date: Option<NaiveDate>,
    /// Vendor's id of the row; null if the vendor gives none.
    pub id: Option<String>,
    /// Name of the feed that reported the row.
    pub source: String,
    /// Value of the row when the decision was made: amount per share, closing price, or number of new shares of a
    /// split.
    pub value: ExactDecimal,
    /// Code of the reason for the quarantine, for example `amount_outlier`.
    pub reason: String,
    /// Reason that the operator gave for the decision.
    pub note: String,
    /// Time of the decision, or of its revocation if `revoked` is true.
    pub decided_at: DateTime<Utc>,
    /// True if the decision was revoked.
    pub revoked: bool,
}

impl LimitToHistory for Vec<ExplainedDecision> {
    /// Removes the decisions about rows from before `first`, and earlier days in the notes.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        self.retain(|decision| decision.date.is_none_or(|date| date >= first));
        for decision in &mut self {
            decision.note = DatedText::parse(&decision.note).limit_to_days_from(first).to_string();
        }
        self
    }
}

/// Newest decision about each row of a security. Revoked decisions are included.
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
