//! Decoding of packed records into the history of a security.

use chrono::NaiveDate;
use market::event::{
    Decision, Dividend, DividendEvidence, Etf, EventRecord, Fundamentals, HoldingSnapshot, Kind, Split,
};
use market::history::History;

use super::error::PackedRecordsError;
use super::packed::read;

/// Generates `add_to_history` from pairs of a record type and its list in `History`.
macro_rules! history_lists {
    ($($record:ident => $list:ident),* $(,)?) => {
        /// Decodes packed records and adds them to `history`. Drops a record if the security did not have the symbol on
        /// its date (`owns`). Ignores kinds without a list in `History`.
        ///
        /// # Errors
        /// The bytes are damaged, or were written by a newer version.
        pub fn add_to_history(
            history: &mut History,
            kind: Kind,
            source: &str,
            packed: &[u8],
            owns: impl Fn(NaiveDate) -> bool,
        ) -> Result<(), PackedRecordsError> {
            $(if kind == $record::KIND {
                let mut said = read::<$record>(source, packed)?;
                said.retain(|observation| observation.record.date().is_none_or(&owns));
                history.$list.append(&mut said);
            })*
            Ok(())
        }
    };
}

history_lists! {
    Dividend => dividends,
    Split => splits,
    Fundamentals => fundamentals,
    Etf => etf,
    HoldingSnapshot => holdings,
    Decision => decisions,
    DividendEvidence => evidence,
}
