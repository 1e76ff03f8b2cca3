//! Rows of a load: its files, and its rows by kind.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use event_log::record_batch::{Body, RecordBatch};
use market::day::date_of;
use market::event::{Kind, RunManifest};
use market::row::JsonColumn;
use tokio_postgres::Transaction;

use crate::apply::touched_rows::TouchedRows;

const MANIFEST: &str = "select manifest from runs where run = $1 and state = 'completed'";
const ROWS: &str = include_str!("../../../queries/gate/load_rows.sql");

#[derive(Debug, Default)]
pub(crate) struct LoadedRows {
    /// File names, as in a manifest.
    pub(crate) files: Vec<String>,
    /// Number of rows by kind, without rejects.
    pub(crate) rows: BTreeMap<Kind, u64>,
    pub(crate) rejects: u64,
    /// Newest session with prices.
    pub(crate) newest: Option<NaiveDate>,
    /// Symbols of all rows.
    pub(crate) symbols: BTreeSet<String>,
    /// Symbols with prices.
    pub(crate) priced: BTreeSet<String>,
}

impl LoadedRows {
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        run: &str,
        touched: &TouchedRows,
    ) -> anyhow::Result<Self> {
        let mut loaded = Self::of_touched(touched);
        if let Some(row) = transaction.query_opt(MANIFEST, &[&run]).await? {
            let JsonColumn(manifest): JsonColumn<RunManifest> = row.try_get(0)?;
            loaded.newest = manifest.newest.get(&Kind::Price).copied();
            (loaded.files, loaded.rejects) = (manifest.files, manifest.rejects);
        }
        for row in transaction.query(ROWS, &[&run]).await? {
            loaded.rows.insert(row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs());
        }
        Ok(loaded)
    }

    /// Rows of a dry run.
    pub(super) fn of_candidate(batches: &[RecordBatch], touched: &TouchedRows) -> Self {
        let mut loaded = Self::of_touched(touched);
        for batch in batches {
            let (kind, rows) = (batch.body.kind(), batch.body.row_count() as u64);
            match &batch.body {
                Body::Rejects(_) => loaded.rejects += rows,
                _ if kind == Kind::Evidence => {}
                body => {
                    *loaded.rows.entry(kind).or_default() += rows;
                    if let Body::Prices(series) = body {
                        let days = series.iter().flat_map(|series| series.bars.day.last());
                        loaded.newest = loaded.newest.max(days.max().map(|day| date_of(*day)));
                    }
                }
            }
            if !loaded.files.contains(&batch.file) {
                loaded.files.push(batch.file.clone());
            }
        }
        loaded
    }

    fn of_touched(touched: &TouchedRows) -> Self {
        let symbols = touched.symbols().into_iter().map(str::to_owned).collect();
        let priced = touched.years.iter().map(|(symbol, ..)| symbol.clone()).collect();
        Self { symbols, priced, ..Self::default() }
    }
}
