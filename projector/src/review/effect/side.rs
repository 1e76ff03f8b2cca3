//! Facts of one side of a comparison: the current facts, in which the rows that a run touched have their content of a
//! view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use codec::records::RawObservation;
use event_log::record_batch::{Body, RecordBatch};
use market::event::Kind;
use store::history::FactsBySymbol;
use store::past_facts::{FactHistory, ViewRows};
use store::symbol_facts::{PackedColumns, SymbolFacts};
use store::view::View;
use tokio_postgres::Transaction;

use crate::apply::touched_rows::TouchedRows;

/// Content of the touched rows in the view of one side.
pub(super) struct SideRows {
    pub(super) rows: ViewRows,
    symbols: BTreeSet<String>,
}

impl SideRows {
    /// Loads the touched rows in two views. The batches of `candidate` are added to the log as a run that is visible.
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        fact_set: &str,
        touched: &TouchedRows,
        candidate: &[RecordBatch],
        views: [&View; 2],
    ) -> anyhow::Result<[Self; 2]> {
        let key = |key: &crate::facts::applied_facts::RecordsKey| {
            (key.symbol.clone(), key.kind, key.source.clone())
        };
        let records: Vec<_> = touched.records.iter().map(key).collect();
        let years: Vec<_> = touched.years.iter().cloned().collect();
        let mut history = FactHistory::load_rows(transaction, fact_set, &records, &years).await?;
        candidate.iter().try_for_each(|batch| add_batch(&mut history, batch))?;
        let side = |view| {
            let symbols = touched.symbols().into_iter().map(str::to_owned).collect();
            anyhow::Ok(Self { rows: history.rows_at(view)?, symbols })
        };
        let [before, after] = views;
        Ok([side(before)?, side(after)?])
    }

    /// Replaces the touched rows in the current facts.
    pub(super) fn apply(&self, facts: &FactsBySymbol) -> FactsBySymbol {
        let mut changed = FactsBySymbol::new();
        for (symbol, facts) in facts {
            let facts = match self.symbols.contains(symbol) {
                true => Arc::new(self.apply_to_symbol(symbol, facts)),
                false => Arc::clone(facts),
            };
            changed.insert(symbol.clone(), facts);
        }
        changed
    }

    fn apply_to_symbol(&self, symbol: &str, facts: &SymbolFacts) -> SymbolFacts {
        let mut changed = SymbolFacts::default();
        for (kind, source, packed) in facts.records() {
            if !self.rows.records.contains_key(&(symbol.to_owned(), kind, source.to_owned())) {
                changed.put_records(kind, source, packed);
            }
        }
        for (source, years) in facts.years() {
            let year = years.range().start;
            debug_assert!(years.range().len() == 1, "fetched years are not packed together");
            if let (false, Some(whole)) = (
                self.rows.years.contains_key(&(symbol.to_owned(), source.to_owned(), year)),
                years.whole_year(),
            ) {
                let columns = PackedColumns::All(Box::new(whole.packed.clone()));
                let _ = changed.put_year(source, year, whole.digest, columns);
            }
        }
        let first = (symbol.to_owned(), Kind::Security, String::new());
        let of_symbol = self.rows.records.range(first..).take_while(|((of, ..), _)| of == symbol);
        for ((_, kind, source), packed) in of_symbol {
            if let Some(packed) = packed.as_ref().filter(|_| SymbolFacts::has_kind(*kind)) {
                changed.put_records(*kind, source, packed);
            }
        }
        let first = (symbol.to_owned(), String::new(), i32::MIN);
        for ((_, source, year), bars) in
            self.rows.years.range(first..).take_while(|((of, ..), _)| of == symbol)
        {
            if let Some((digest, packed)) = bars {
                let columns = PackedColumns::All(Box::new(packed.clone()));
                let _ = changed.put_year(source, *year, *digest, columns);
            }
        }
        changed
    }
}

/// Adds a batch that the log does not contain.
fn add_batch(history: &mut FactHistory, batch: &RecordBatch) -> anyhow::Result<()> {
    let kind = batch.body.kind();
    history.add_batch(batch.id.0, &batch.run);
    if let Body::Prices(series) = &batch.body {
        for series in series {
            for (year, bars) in series.bars.by_year() {
                history.add_bars((series.symbol.to_string(), batch.source.clone(), year), bars)?;
            }
        }
    }
    let mut rows: BTreeMap<String, Vec<RawObservation>> = BTreeMap::new();
    for (symbol, raw) in batch.body.observations(batch.id)? {
        rows.entry(symbol).or_default().push(raw);
    }
    for (symbol, observations) in rows {
        history.add_records((symbol, kind, batch.source.clone()), observations)?;
    }
    Ok(())
}
