//! Changes of served rows, read from the journal, for `updated_since` and for change streams.
//!
//! Revision numbers of dividends, for calendar files. A number never decreases, and it increases with every change of the
//! dividend.
//!
//! Invariants: one task per instance reads the journal. Streams do not wait for each other. The memory of a stream is
//! bounded.

mod change;
mod change_page;
mod journal_reader;

use std::collections::{BTreeSet, HashMap};

use super::lookup::run_query;
use super::{QueryError, ServedGeneration};

pub(crate) use change::{Change, ChangedRow, NoticeSelection, StreamData, TrackedRow, read_notice};
pub(crate) use change_page::{ChangePage, ChangeSelection, ListedSecurities};
pub(crate) use journal_reader::{JournalReader, Lagged, RingSubscription};

const POSITIONS: &str = include_str!("../../../queries/changes/positions.sql");

/// Journal positions of the newest changes of the dividends in an API response.
#[derive(Debug, Default)]
pub(crate) struct DividendRevisions {
    /// Position of the newest change, by symbol and dividend id. An empty id applies to all other dividends of the
    /// symbol.
    by_row: HashMap<(String, String), i64>,
    /// Position of the newest change of any dividend of each security, by symbol.
    by_symbol: HashMap<String, i64>,
    /// Changes up to this position were deleted from the journal.
    begins: i64,
    /// Journal position up to which the API response includes changes.
    answered: i64,
}

impl DividendRevisions {
    /// Reads the journal positions of the dividends of `symbols`. The response includes the changes up to `answered`.
    pub(crate) async fn read<'a>(
        generation: &ServedGeneration,
        symbols: impl Iterator<Item = &'a str>,
        answered: i64,
    ) -> Result<Self, QueryError> {
        let symbols: Vec<&str> = symbols.collect::<BTreeSet<_>>().into_iter().collect();
        let mut revisions = Self { answered, ..Self::default() };
        for row in run_query(generation, POSITIONS, &[&symbols]).await? {
            let position: i64 = row.try_get("position")?;
            match (row.try_get("symbol")?, row.try_get("id")?) {
                (Some(symbol), Some(id)) => revisions.add(symbol, id, position),
                _ => revisions.begins = position,
            }
        }
        Ok(revisions)
    }

    fn add(&mut self, symbol: String, id: String, position: i64) {
        let newest = self.by_symbol.entry(symbol.clone()).or_default();
        *newest = position.max(*newest);
        self.by_row.insert((symbol, id), position);
    }

    /// Revision number of a dividend's events: the position of the dividend's newest change. For an estimated dividend,
    /// which has no id, any dividend of the security counts.
    pub(crate) fn number(&self, symbol: &str, id: Option<&str>) -> i64 {
        let of_row = |id: &str| self.by_row.get(&(symbol.to_owned(), id.to_owned()));
        let newest = match id {
            Some(id) => of_row(id).or_else(|| of_row("")),
            None => self.by_symbol.get(symbol),
        };
        newest.copied().unwrap_or(self.begins).max(self.begins).min(self.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_the_row_else_of_its_symbol_else_of_the_pruned_changes() {
        let mut revisions = DividendRevisions { begins: 5, answered: 40, ..DividendRevisions::default() };
        revisions.add("KO".to_owned(), String::new(), 7);
        revisions.add("KO".to_owned(), "d1".to_owned(), 30);
        revisions.add("KO".to_owned(), "d3".to_owned(), 41);
        let number = |symbol: &str, id: Option<&str>| revisions.number(symbol, id);
        assert_eq!(
            [number("KO", Some("d1")), number("KO", Some("d2")), number("PEP", Some("d4"))],
            [30, 7, 5]
        );
        // The change at 41 is later than the response.
        assert_eq!([number("KO", Some("d3")), number("KO", None)], [40, 40]);
    }
}
