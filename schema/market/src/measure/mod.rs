//! What each number means: every measure a pure function of a security's facts and the market's date.
//!
//! [`derive`](fn@derive) goes from observations to answers: `merge` picks the events that count, `measured` computes every figure
//! unrounded with one file per measure, `rows` rounds once. [`explain`](fn@explain) tells the same computation.
//!
//! Invariants: no clock and no I/O; no binary float; the result depends on the set of observations, never on their order;
//! nothing declared or traded after the as-of date is known (R33); no input makes it fail.

/// A decimal literal in tests.
#[cfg(test)]
macro_rules! dec {
    ($literal:expr) => {
        stringify!($literal).replace(' ', "").parse::<rust_decimal::Decimal>().unwrap()
    };
}

pub mod adjust;
mod arithmetic;
pub mod calendar;
pub mod changes;
pub mod chowder;
pub mod class;
pub mod currency;
mod derived;
pub mod ex_date;
pub mod explain;
mod factors;
pub mod frequency;
pub mod fund;
pub mod growth;
pub mod lists;
mod market;
mod measured;
mod measures;
pub mod merge;
mod month_ends;
pub mod next;
pub mod payout;
pub mod policy;
mod quality;
pub mod range;
pub mod resolve;
pub mod risk;
mod rows;
pub mod rules;
pub mod safety;
pub mod sector;
mod series;
pub mod status;
pub mod streak;
mod total_return;
pub mod valuation;
pub mod yields;

use std::collections::BTreeMap;

use chrono::NaiveDate;

pub use adjust::Factor;
pub use derived::Derived;
pub use explain::{
    ExplainedDecision, ExplainedMetric, ExplainedObservation, Explanation, explain, explain_session,
};
pub use market::Market;
pub use measures::Measures;
pub use month_ends::MonthEnds;
pub use rules::{Deviation, METHOD_VERSION, Rules};
pub use total_return::{Closes, total_return};

use crate::event::{DecidedRow, Decision};
use crate::history::{History, Observation, SourcePolicy};
use crate::row::Quarantined;

/// Derives everything served about a security from its facts.
pub fn derive(history: &History, market: &Market<'_>) -> Derived {
    Measures::of(history, market).rows()
}

/// The rows of a security that are held back, each as decisions name it.
pub fn held(history: &History, market: &Market<'_>) -> Vec<(Quarantined, DecidedRow)> {
    rows::held(&measured::measure(history, market))
}

/// The newest decision about each row of a security, taken back or not.
pub fn decisions(history: &History) -> BTreeMap<&DecidedRow, &Observation<Decision>> {
    merge::newest_decisions(&history.decisions)
}

/// The month ends other securities' beta is measured against.
pub fn benchmark(history: &History, as_of: NaiveDate, policy: &SourcePolicy, rules: &Rules) -> MonthEnds {
    // Returns up to a date know nothing after it, declared or not.
    measured::benchmark_months(history, &Market { as_of, newest: as_of, benchmark: None, policy, rules })
}
