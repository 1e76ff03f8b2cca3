//! Event records of the log: feed rows with normalised spelling. They keep the vendor's values and share basis. The
//! metrics convert, quarantine and merge them in each computation.

mod enums;
mod event_record;
mod fund_records;
mod fx_rate;
mod records;
mod run_id;
mod run_manifest;

pub use enums::{Action, DividendType, Frequency, Kind, ListingStatus, SecurityType, ShareBasis};
pub use enums::{DecidedRow, Decision, DecisionVerdict};
pub use event_record::EventRecord;
pub(crate) use event_record::line_column;
pub use event_record::{EventRow, Reject};
pub use fund_records::{Etf, Holding, HoldingSnapshot};
pub use fx_rate::FxRate;
pub use records::{Dividend, DividendEvidence, FormerSymbol, Fundamentals, MINOR_UNIT_PLACES};
pub use records::{MarketSession, Security, Split};
pub use run_id::{RunIdError, find_run_id};
pub use run_manifest::{Bookmark, InputBatchCount, Pull, RunManifest, RunState};
pub use run_manifest::{RunChange, RunEvent, RunVisibility};
