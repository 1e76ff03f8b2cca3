//! Earlier facts: the facts as they were before a position of the log (the sequence of a message).
//!
//! Batches before the position are called earlier, and all others later. A feed is a kind of rows from one source.
//!
//! A feed without later batches has not changed. A feed without earlier batches had no facts. For other feeds, the rows
//! that changed are built again from the earlier batches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use anyhow::Context;
use chrono::{Datelike, NaiveDate};
use codec::bars::PackedBars;
use event_log::record_batch::Body;
use event_log::stream::StreamSettings;
use market::bars::Bars;
use market::day::date_of;
use market::event::Kind;
use store::history::FactsBySymbol;
use store::symbol_facts::{PackedColumns, SymbolFacts};
use tokio_postgres::Transaction;

use super::earlier_records::{EarlierRecords, read_earlier_records};
use super::log_messages::{Feed, LogMessages};
use crate::facts::applied_facts::RecordsKey;

const SINCE: &str = include_str!("../../../queries/effect/batches_since.sql");
const BEFORE: &str = include_str!("../../../queries/effect/batches_before.sql");
const PRICED: &str = include_str!("../../../queries/bars_sources.sql");
const RECORDED: &str = include_str!("../../../queries/records_sources.sql");

/// Sequence of an earlier log message, and the newest date that its run loaded; `None` if unknown.
type EarlierMessage = (i64, Option<NaiveDate>);

/// Bars of one symbol and source before the position, on all days with later bars.
#[derive(Debug, Default)]
pub(super) struct EarlierBars {
    pub(super) days: HashSet<i32>,
    /// Calendar years of `days`.
    years: BTreeSet<i32>,
    /// Bars on `days` according to the earlier batches.
    pub(super) earlier: Bars,
}

/// Data that restores the earlier facts from the current facts.
#[derive(Debug, Default)]
pub(super) struct EarlierFacts {
    /// Feeds that have later batches and no earlier batch.
    pub(super) new_feeds: BTreeSet<Feed>,
    pub(super) records: EarlierRecords,
    /// Bars before the position, by symbol and source. Contains only symbols and sources with bars after the position.
    pub(super) bars: BTreeMap<(String, String), EarlierBars>,
    /// Symbols with rows of a feed in `new_feeds`.
    added_symbols: BTreeSet<String>,
}

impl EarlierFacts {
    /// Finds the facts that changed after the position. Feeds that had no facts before are not read from the log.
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        settings: &StreamSettings,
        position: i64,
    ) -> anyhow::Result<Self> {
        let mut since: BTreeMap<Feed, Vec<i64>> = BTreeMap::new();
        for row in transaction.query(SINCE, &[&position]).await? {
            since.insert((row.try_get("kind")?, row.try_get("source")?), row.try_get("sequences")?);
        }
        let (kinds, sources): (Vec<&str>, Vec<&str>) =
            since.keys().map(|(kind, source)| (kind.as_str(), source.as_str())).unzip();
        let mut before: BTreeMap<Feed, Vec<EarlierMessage>> = BTreeMap::new();
        for row in transaction.query(BEFORE, &[&position, &kinds, &sources]).await? {
            let messages = before.entry((row.try_get("kind")?, row.try_get("source")?)).or_default();
            messages.push((row.try_get("sequence")?, row.try_get("newest")?));
        }
        let new_feeds = since.keys().filter(|feed| !before.contains_key(*feed)).cloned().collect();
        let mut facts = Self { new_feeds, ..Self::default() };
        facts.add_new_symbols(transaction).await?;
        if before.is_empty() {
            return Ok(facts);
        }
        let log = LogMessages::open(settings).await?;
        for (feed, earlier) in &before {
            let later = since.get(feed).map(Vec::as_slice).unwrap_or_default();
            if feed.0 == Kind::Price {
                facts.read_bars(&log, &feed.1, later, earlier).await?;
            } else {
                let earlier: Vec<i64> = earlier.iter().map(|(sequence, _)| *sequence).collect();
                read_earlier_records(transaction, &log, feed, [later, &earlier], &mut facts.records).await?;
            }
        }
        Ok(facts)
    }

    async fn add_new_symbols(&mut self, transaction: &Transaction<'_>) -> anyhow::Result<()> {
        let kinds: BTreeSet<Kind> = self.new_feeds.iter().map(|(kind, _)| *kind).collect();
        for kind in kinds {
            let rows = match kind {
                Kind::Price => transaction.query(PRICED, &[]).await?,
                kind => transaction.query(RECORDED, &[&kind]).await?,
            };
            for row in rows {
                if self.new_feeds.contains(&(kind, row.try_get("source")?)) {
                    self.added_symbols.insert(row.try_get("symbol")?);
                }
            }
        }
        Ok(())
    }

    /// Finds the days of the bars in the messages `later`. Reads the bars of these days in the messages `earlier`.
    async fn read_bars(
        &mut self,
        log: &LogMessages,
        source: &str,
        later: &[i64],
        earlier: &[EarlierMessage],
    ) -> anyhow::Result<()> {
        let key = |symbol: &str| (symbol.to_owned(), source.to_owned());
        log.read(later.iter().copied(), |batch| {
            let Body::Prices(series) = &batch.body else { return Ok(()) };
            for series in series.iter().filter(|_| batch.source == source) {
                let touched = self.bars.entry(key(series.symbol.as_str())).or_default();
                touched.days.extend(&series.bars.day);
                touched.years.extend(series.bars.years().into_iter().map(|(year, _)| year));
            }
            Ok(())
        })
        .await?;
        let of_source = self.bars.iter().filter(|((_, of), _)| of == source);
        let Some(first) = of_source.flat_map(|(_, touched)| &touched.days).min() else { return Ok(()) };
        let first = date_of(*first);
        // A run has no bars after its newest date.
        let reaching = earlier.iter().filter(|(_, newest)| newest.is_none_or(|newest| newest >= first));
        let mut parts: BTreeMap<(String, String), Vec<Bars>> = BTreeMap::new();
        log.read(reaching.map(|(sequence, _)| *sequence), |batch| {
            let Body::Prices(series) = &batch.body else { return Ok(()) };
            for series in series.iter().filter(|_| batch.source == source) {
                let key = key(series.symbol.as_str());
                let Some(touched) = self.bars.get(&key) else { continue };
                let bars = series.bars.filter_days(|day| touched.days.contains(&day));
                if !bars.is_empty() {
                    parts.entry(key).or_default().push(bars);
                }
            }
            Ok(())
        })
        .await?;
        for (key, parts) in parts {
            if let Some(touched) = self.bars.get_mut(&key) {
                touched.earlier = Bars::merge_all(parts)?;
            }
        }
        Ok(())
    }

    /// Symbols with changed facts. Records without a symbol (for example trading sessions) are left out.
    pub(super) fn symbols(&self) -> BTreeSet<&str> {
        let bars = self.bars.keys().map(|(symbol, _)| symbol);
        let records = self.records.rows.keys().map(|key| &key.symbol);
        let all = bars.chain(records).chain(&self.added_symbols).map(String::as_str);
        all.filter(|symbol| !symbol.is_empty()).collect()
    }

    /// `true` if the feed had no facts before the position.
    pub(super) fn is_new(&self, kind: Kind, source: &str) -> bool {
        self.new_feeds.contains(&(kind, source.to_owned()))
    }

    /// Returns the packed records of a row as they were before the position. `packed` are the current records of the
    /// row. Returns `None` if the row did not exist before the position.
    pub(super) fn restore_records<'a>(
        &'a self,
        (symbol, kind, source): (&str, Kind, &str),
        packed: &'a [u8],
    ) -> Option<&'a [u8]> {
        if self.is_new(kind, source) {
            return None;
        }
        let key = RecordsKey { symbol: symbol.to_owned(), kind, source: source.to_owned() };
        match self.records.rows.get(&key) {
            Some(earlier) => earlier.as_deref(),
            None => Some(packed),
        }
    }

    /// Restores the earlier facts of some symbols from their current facts.
    pub(super) fn restore(&self, facts: &FactsBySymbol) -> anyhow::Result<FactsBySymbol> {
        let changed = self.symbols();
        let mut restored = FactsBySymbol::new();
        for (symbol, facts) in facts {
            let earlier = match changed.contains(symbol.as_str()) {
                true => Arc::new(
                    self.restore_symbol(symbol, facts)
                        .with_context(|| format!("cannot restore the earlier facts of {symbol}"))?,
                ),
                false => Arc::clone(facts),
            };
            restored.insert(symbol.clone(), earlier);
        }
        Ok(restored)
    }

    fn restore_symbol(&self, symbol: &str, facts: &SymbolFacts) -> anyhow::Result<SymbolFacts> {
        let mut earlier = SymbolFacts::default();
        for (kind, source, packed) in facts.records() {
            if let Some(packed) = self.restore_records((symbol, kind, source), packed) {
                earlier.put_records(kind, source, packed);
            }
        }
        for (source, years) in facts.years().filter(|(source, _)| !self.is_new(Kind::Price, source)) {
            let year = years.range().start;
            let touched = self.bars.get(&(symbol.to_owned(), source.to_owned()));
            let columns = match touched.filter(|touched| touched.years.contains(&year)) {
                None => years.columns().clone(),
                Some(touched) => {
                    let kept = years.columns().unpack()?.filter_days(|day| !touched.days.contains(&day));
                    let earlier = touched.earlier.filter_days(|day| date_of(day).year() == year);
                    let bars = Bars::merge_all(vec![kept, earlier])?;
                    if bars.is_empty() {
                        continue;
                    }
                    PackedColumns::All(Box::new(PackedBars::pack(&bars)?))
                }
            };
            // Any digest is correct here: digests of facts are only compared with digests of published years, and this
            // derivation does not compare any.
            let no_digest = 0;
            debug_assert!(years.range().len() == 1, "fetched years are not packed together");
            let _ = earlier.put_year(source, year, no_digest, columns);
        }
        Ok(earlier)
    }
}
