//! Event records of the log: feed rows with normalised spelling. They keep the vendor's values and share basis. The
//! metrics convert, quarantine and merge them in each computation.

mod decision;
mod enums;
mod event_record;
mod records;
mod row;
mod run_change;
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
pub use run_change::{RunChange, RunEvent, RunVisibility};
pub use run_manifest::{Bookmark, InputBatchCount, Pull, RunManifest, RunState};
