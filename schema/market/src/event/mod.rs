//! Event records of the log: feed rows with normalised spelling.
//!
//! A record contains the vendor's values on the vendor's share basis. The metrics are always computed from these
//! records: values are converted to raw values, suspect rows are quarantined, and duplicates are merged. A new fact can
//! therefore change earlier results.

mod decision;
mod enums;
mod event_record;
mod records;
mod row;
mod run_manifest;

pub use decision::{DecidedRow, Decision, DecisionVerdict};
pub use enums::{Action, DividendType, Frequency, Kind, ListingStatus, SecurityType, ShareBasis};
pub use event_record::EventRecord;
pub use records::{
    Dividend, DividendEvidence, Etf, FormerSymbol, Fundamentals, Holding, HoldingSnapshot, MINOR_UNIT_PLACES,
    MarketSession, Security, Split,
};
pub(crate) use row::line_column;
pub use row::{EventRow, Reject};
pub use run_manifest::{Bookmark, InputBatchCount, Pull, RunManifest, RunState};
