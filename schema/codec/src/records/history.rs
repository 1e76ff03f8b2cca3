//! Decoding of packed records into the history of a security.

use chrono::NaiveDate;
use market::event::{
    Decision, Dividend, DividendEvidence, Etf, EventRecord, Fundamentals, HoldingSnapshot, Kind, Split,
};
use market::history::History;

use super::error::PackedRecordsError;
use super::packed::read;

/// Generates the function `add_to_history`. Each line of the macro's input has a record type, and the field of
/// `History` that lists the records of this type.
macro_rules! history_lists {
    ($($record:ident => $list:ident),* $(,)?) => {
        /// Decodes packed records of one symbol, kind and source, and adds them to the history of a security.
        ///
        /// `owns` returns true for the days on which this security has the symbol. A record with a date is dropped if
        /// `owns` returns false for this date. Kinds without a list in `History` are ignored.
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
