//! Stored rows of one key: the row that counts now, and all observations that do not count.
//! Also chooses the pairs of currencies whose exchange rates are loaded with past facts.

use std::collections::{BTreeMap, BTreeSet};

use codec::bars::{PackedBars, PackedBarsError};
use codec::records::{self, PackedRecordsError, RecordSet};
use market::bars::{Bars, SupersededBars};
use market::event::Kind;

use crate::facts::{FactsError, damaged_records};
use crate::sql_row;
use crate::view::BatchId;

sql_row! {
    /// Primary key of a row of packed records.
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct RecordsKey {
        /// Symbol; empty for facts of the whole market, such as trading sessions.
        pub symbol: String,
        /// Kind of the row's observations.
        pub kind: Kind,
        /// Source (feed) of the row's observations.
        pub source: String,
    }
}

/// Symbol, source and calendar year of a row of packed bars.
pub type BarsKey = (String, String, i32);

/// Columns of the keys of some rows of packed records.
pub fn record_columns<'a>(
    keys: impl IntoIterator<Item = &'a RecordsKey>,
) -> (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>) {
    keys.into_iter().map(|key| (key.symbol.as_str(), key.kind.as_str(), key.source.as_str())).collect()
}

/// Columns of the keys of some rows of packed bars.
pub fn bar_columns<'a>(
    keys: impl IntoIterator<Item = &'a BarsKey>,
) -> (Vec<&'a str>, Vec<&'a str>, Vec<i32>) {
    keys.into_iter().map(|(symbol, source, year)| (symbol.as_str(), source.as_str(), *year)).collect()
}

/// Packed records of one symbol, kind and source: those that count now, and all others.
#[derive(Debug, Default)]
pub(super) struct StoredRecords {
    pub(super) current: Option<Vec<u8>>,
    pub(super) superseded: Vec<Vec<u8>>,
}

/// One year of bars of a symbol and source, with the bars that do not count now.
#[derive(Debug, Default)]
pub(super) struct StoredYear {
    pub(super) current: Option<(i64, PackedBars)>,
    pub(super) superseded: Vec<SupersededBars>,
}

impl StoredRecords {
    pub(super) fn parts(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.current.iter().chain(&self.superseded)
    }

    /// Packed records of the row of `symbol` and `kind`, from the known observations only. An observation is known if `known` returns
    /// true for its record batch. Returns `None` if no observation is known.
    pub(super) fn at(
        &self,
        symbol: &str,
        kind: Kind,
        known: impl Fn(&BatchId) -> bool,
    ) -> Result<Option<Vec<u8>>, PackedRecordsError> {
        if let Some(current) = &self.current
            && self.superseded.is_empty()
            && records::batches(current)?.iter().all(&known)
        {
            return Ok(Some(current.clone()));
        }
        let mut observations = Vec::new();
        for packed in self.parts() {
            observations.extend(RecordSet::unpack(kind, packed)?.known(&known));
        }
        let set = RecordSet::new(kind, observations).of_symbol(symbol)?;
        if set.is_empty() { Ok(None) } else { set.pack().map(Some) }
    }
}

impl StoredYear {
    /// Ids of the record batches of all bars.
    pub(super) fn batches(&self) -> Result<Vec<BatchId>, PackedBarsError> {
        let mut batches = match &self.current {
            Some((_, packed)) => codec::bars::batches(&packed.versions)?,
            None => Vec::new(),
        };
        let superseded = self.superseded.iter().flat_map(|part| &part.bars.versions);
        batches.extend(superseded.map(|version| version.frame));
        Ok(batches)
    }

    /// Digest and bars of the year, from the known bars only. A bar is known if `known` returns true for its record
    /// batch. Returns `None` if no bar is known.
    pub(super) fn at(
        &self,
        known: impl Fn(&BatchId) -> bool,
    ) -> Result<Option<(i64, PackedBars)>, PackedBarsError> {
        if self.superseded.is_empty() && self.batches()?.iter().all(&known) {
            return Ok(self.current.clone());
        }
        let current = self.current.as_ref().map(|(_, packed)| packed.unpack()).transpose()?;
        let current = current.unwrap_or_default();
        let mut parts = SupersededBars::complete(&self.superseded, &current)?;
        parts.push(current);
        let parts = parts.iter().map(|bars| bars.filter(|index| known(&bars.version_of(index).frame)));
        let bars = Bars::merge_all(parts.filter(|bars| !bars.is_empty()).collect())?;
        if bars.is_empty() {
            return Ok(None);
        }
        let packed = PackedBars::pack(&bars)?;
        Ok(Some((packed.digest(), packed)))
    }
}

/// Calendar year in which a source has dividends, and the log sequences between which it had them.
#[derive(Debug)]
pub(super) struct FeedYear {
    pub(super) source: String,
    pub(super) year: i32,
    pub(super) from: i64,
    /// First sequence at which all these dividends were hidden; `None` if some are visible.
    pub(super) to: Option<i64>,
}

impl FeedYear {
    pub(super) fn is_known_at(&self, sequence: i64) -> bool {
        self.from <= sequence && self.to.is_none_or(|to| to > sequence)
    }
}

/// Currencies of some records, by symbol, kind and source.
pub(super) fn currencies_of(
    stored: &BTreeMap<RecordsKey, StoredRecords>,
) -> Result<BTreeSet<String>, FactsError> {
    let (mut currencies, mut symbols, mut described) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (RecordsKey { symbol, kind, source }, stored) in stored {
        symbols.insert(symbol);
        described.extend((*kind == Kind::Security).then_some(symbol));
        for packed in stored.parts() {
            currencies.extend(records::currencies(*kind, source, packed).map_err(damaged_records(symbol))?);
        }
    }
    // The prices of a security without reference record are in dollars.
    if symbols != described {
        currencies.insert("USD".to_owned());
    }
    Ok(currencies)
}

/// Pairs of some currencies, of the euro and of the US dollar, which give all rates between these currencies. Empty for
/// fewer than two currencies.
pub(super) fn pairs_of(currencies: &BTreeSet<String>) -> Vec<String> {
    if currencies.len() < 2 {
        return Vec::new();
    }
    let mut all: BTreeSet<&str> = currencies.iter().map(String::as_str).collect();
    all.extend(["EUR", "USD"]);
    all.iter().flat_map(|base| all.iter().map(move |quote| format!("{base}{quote}"))).collect()
}
