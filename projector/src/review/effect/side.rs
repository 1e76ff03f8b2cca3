//! Facts of one side of a comparison: the current facts, in which the rows that a run touched have their content of a
//! view.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use codec::records::RawObservation;
use event_log::archive::ArchiveReader;
use event_log::record_batch::{Body, RecordBatch};
use market::bars::Bars;
use market::event::Kind;
use store::history::FactsBySymbol;
use store::past_facts::{BarsKey, FactHistory, RecordsKey, ViewRows};
use store::symbol_facts::{PackedColumns, SymbolFacts};
use store::view::{BatchId, BatchOwners, RunStates, View};
use tokio_postgres::Transaction;

use crate::apply::touched_rows::TouchedRows;

const PRICE_BATCHES: &str = "select frame from frames where kind = 'price'";

/// Rows that a run touched, in the views of both sides. They are loaded in parts, because a run may touch the whole
/// market.
pub(crate) struct TouchedViews<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    fact_set: &'a str,
    pub(super) touched: &'a TouchedRows,
    candidate: CandidateRows,
    views: [View; 2],
}

/// Rows of record batches that the log does not contain. They belong to a run that is visible.
#[derive(Default)]
struct CandidateRows {
    batches: Vec<(BatchId, String)>,
    records: BTreeMap<RecordsKey, Vec<RawObservation>>,
    bars: BTreeMap<BarsKey, Vec<Bars>>,
}

impl<'a> TouchedViews<'a> {
    pub(crate) fn new(
        transaction: &'a Transaction<'a>,
        fact_set: &'a str,
        touched: &'a TouchedRows,
        candidate: &[RecordBatch],
        views: [View; 2],
    ) -> anyhow::Result<Self> {
        let mut rows = CandidateRows::default();
        candidate.iter().try_for_each(|batch| rows.add(batch))?;
        Ok(Self { transaction, fact_set, touched, candidate: rows, views })
    }

    pub(super) async fn of_symbols(&self, symbols: &[&str]) -> anyhow::Result<[ViewRows; 2]> {
        let (mut records, mut years) = (Vec::new(), Vec::new());
        for symbol in symbols {
            records.extend(self.touched.records_of(symbol).cloned());
            years.extend(self.touched.years_of(symbol).cloned());
        }
        self.load(&records, &years).await
    }

    pub(super) async fn of_kind(&self, kind: Kind) -> anyhow::Result<[ViewRows; 2]> {
        let of_kind = self.touched.records.iter().filter(|key| key.kind == kind);
        self.load(&of_kind.cloned().collect::<Vec<_>>(), &[]).await
    }

    /// True for each side on which some prices are visible.
    pub(super) async fn have_prices(&self) -> anyhow::Result<[bool; 2]> {
        let rows = self.transaction.query(PRICE_BATCHES, &[]).await?;
        let batches = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<&[u8]>, _>>()?;
        let owners = BatchOwners::load(self.transaction, &batches).await?;
        let states = RunStates::load(self.transaction).await?;
        let has_prices =
            |view: &View| owners.places().any(|(batch, _)| owners.is_visible(batch, &states, view));
        let [before, after] = self.views.each_ref().map(has_prices);
        Ok([before, after || !self.candidate.bars.is_empty()])
    }

    pub(super) async fn load(
        &self,
        records: &[RecordsKey],
        years: &[BarsKey],
    ) -> anyhow::Result<[ViewRows; 2]> {
        let mut history = FactHistory::load_rows(self.transaction, self.fact_set, records, years).await?;
        let CandidateRows { batches, records: added, bars } = &self.candidate;
        batches.iter().for_each(|(batch, run)| history.add_batch(*batch, run));
        for (key, observations) in records.iter().filter_map(|key| added.get_key_value(key)) {
            history.add_records(key.clone(), observations.clone())?;
        }
        for (key, parts) in years.iter().filter_map(|key| bars.get_key_value(key)) {
            parts.iter().try_for_each(|bars| history.add_bars(key.clone(), bars.clone()))?;
        }
        let [before, after] = &self.views;
        Ok([history.rows_at(before)?, history.rows_at(after)?])
    }
}

impl CandidateRows {
    fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let kind = batch.body.kind();
        self.batches.push((batch.id.0, batch.run.clone()));
        if let Body::Prices(series) = &batch.body {
            for series in series {
                for (year, bars) in series.bars.by_year() {
                    let key = (series.symbol.to_string(), batch.source.clone(), year);
                    self.bars.entry(key).or_default().push(bars);
                }
            }
        }
        for (symbol, raw) in batch.body.observations(batch.id)? {
            let key = RecordsKey { symbol, kind, source: batch.source.clone() };
            self.records.entry(key).or_default().push(raw);
        }
        Ok(())
    }
}

/// Current facts, in which some rows have the content of a view.
pub(super) fn overlay(rows: &ViewRows, facts: &FactsBySymbol) -> FactsBySymbol {
    let of_symbol = |(symbol, facts): (&String, &Arc<SymbolFacts>)| {
        (symbol.clone(), Arc::new(overlay_symbol(rows, symbol, facts)))
    };
    facts.iter().map(of_symbol).collect()
}

fn overlay_symbol(rows: &ViewRows, symbol: &str, facts: &SymbolFacts) -> SymbolFacts {
    let mut changed = SymbolFacts::default();
    for (kind, source, packed) in facts.records() {
        let key = RecordsKey { symbol: symbol.to_owned(), kind, source: source.to_owned() };
        if !rows.records.contains_key(&key) {
            changed.put_records(kind, source, packed);
        }
    }
    for (source, years) in facts.years() {
        let year = years.range().start;
        debug_assert!(years.range().len() == 1, "fetched years are not packed together");
        let is_touched = rows.years.contains_key(&(symbol.to_owned(), source.to_owned(), year));
        if let Some(whole) = years.whole_year().filter(|_| !is_touched) {
            let columns = PackedColumns::All(Box::new(whole.packed.clone()));
            let _ = changed.put_year(source, year, whole.digest, columns);
        }
    }
    let first = RecordsKey { symbol: symbol.to_owned(), kind: Kind::Security, source: String::new() };
    let records = rows.records.range(first..).take_while(|(key, _)| key.symbol == symbol);
    for (RecordsKey { kind, source, .. }, packed) in records {
        if let Some(packed) = packed.as_ref().filter(|_| SymbolFacts::has_kind(*kind)) {
            changed.put_records(*kind, source, packed);
        }
    }
    let first = (symbol.to_owned(), String::new(), i32::MIN);
    let years = rows.years.range(first..).take_while(|((of, ..), _)| of == symbol);
    for ((_, source, year), bars) in years {
        if let Some((digest, packed)) = bars {
            let columns = PackedColumns::All(Box::new(packed.clone()));
            let _ = changed.put_year(source, *year, *digest, columns);
        }
    }
    changed
}

/// Reads the record batches of a candidate file that the facts do not contain yet. `ingest load --dry-run` wrote the
/// file. The batches are compared as if their load had been applied.
pub(super) async fn read_candidate(
    transaction: &Transaction<'_>,
    path: &Path,
) -> anyhow::Result<Vec<RecordBatch>> {
    let mut archive = ArchiveReader::open_verified(path)?;
    let mut batches = Vec::new();
    while let Some(message) = archive.next_message()? {
        let mut headers = HeaderMap::new();
        for (name, value) in &message.headers {
            let name: HeaderName = name.parse().context("a header name")?;
            headers.append(name, value.parse::<HeaderValue>().context("a header value")?);
        }
        batches.extend(RecordBatch::decode(Some(&headers), &message.body)?);
    }
    let ids: Vec<&[u8]> = batches.iter().map(|batch| batch.id.0.as_slice()).collect();
    let owners = BatchOwners::load(transaction, &ids).await?;
    let known: BTreeSet<BatchId> = owners.places().map(|(id, _)| *id).collect();
    batches.retain(|batch| !known.contains(&batch.id.0));
    Ok(batches)
}
