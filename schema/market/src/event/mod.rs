//! The events of the log: what a feed row says, after its spelling was normalised and before anything is concluded.
//!
//! A record holds what the vendor sent, on the basis the vendor sent it; conclusions (un-adjusting, quarantine,
//! duplicates) are drawn from facts by `measure`, so that they can change when neighbours arrive.

mod decision;
mod records;
mod row;
mod run;
mod words;

pub use decision::{DecidedRow, Decision, Verdict};
pub use records::{
    Dividend, Etf, FormerSymbol, Fundamentals, Holding, HoldingSnapshot, MINOR_UNIT_PLACES, Security,
    Session, Split,
};
pub(crate) use row::line_column;
pub use row::{Reject, Row};
pub use run::{Bookmark, InputFrames, Pull, Run, RunState};
pub use words::{Action, Basis, DividendType, Frequency, Kind, ListingStatus, SecurityType};
