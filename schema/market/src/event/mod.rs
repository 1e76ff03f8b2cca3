//! Event records of the log: feed rows with normalised spelling. They keep the vendor's values and share basis. The
//! metrics convert, quarantine and merge them in each computation.

mod enums;
mod event_record;
mod fund_records;
mod records;
mod run_manifest;

pub use enums::{
    Action, DecidedRow, Decision, DecisionVerdict, DividendType, Frequency, Kind, ListingStatus,
    SecurityType, ShareBasis,
};
pub(crate) use event_record::line_column;
pub use event_record::{EventRecord, EventRow, Reject};
pub use fund_records::{Etf, Holding, HoldingSnapshot};
pub use records::{
    Dividend, DividendEvidence, FormerSymbol, Fundamentals, FxRate, MINOR_UNIT_PLACES, MarketSession,
    Security, Split,
};
pub use run_manifest::{
    Bookmark, InputBatchCount, Pull, RunChange, RunEvent, RunIdError, RunManifest, RunState, RunVisibility,
    find_run_id, parse_source_name,
};
