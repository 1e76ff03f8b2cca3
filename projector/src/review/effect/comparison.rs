//! Comparison of two derivations of the market. They differ in the view of the log, or in the source policy. Only the
//! securities with a differing input are derived.

use std::collections::BTreeSet;

use market::history::{DividendFeeds, History, SourcePolicy};
use market::identity::SecurityDirectory;
use market::metrics::fund::{FundRows, fund};
use market::metrics::{Derivation, DerivationContext, DerivedRows, RowsBySource, Rules};
use market::row::TableRow;
use market::symbol::Symbol;
use rayon::prelude::*;
use store::history::{FactsBySymbol, build_history, fetch_facts, symbols_of_identities};

use super::market_inputs::MarketInputs;
use super::side::{TouchedViews, overlay};
use crate::derive::touched::{changed_identities, load_converted};
use crate::error::DeriveError;
use crate::generation::Generation;
use crate::progress::ProgressReport;
use crate::review::compare::{DerivedCells, RowComparison, RowDifference};

const SYMBOLS: &str = include_str!("../../../queries/effect/symbols_of_sources.sql");
/// Maximum number of securities that are in memory at the same time.
const CHUNK_SECURITIES: usize = 100;

pub(crate) struct MarketComparison<'a> {
    rules: &'a Rules,
    policies: [&'a SourcePolicy; 2],
    views: TouchedViews<'a>,
    pub(super) markets: [MarketInputs; 2],
}

impl<'a> MarketComparison<'a> {
    pub(crate) async fn load(
        generation: &'a Generation,
        policies: [&'a SourcePolicy; 2],
        views: TouchedViews<'a>,
    ) -> anyhow::Result<Self> {
        let markets = MarketInputs::load(generation, policies, &views).await?;
        Ok(Self { rules: &generation.rules, policies, views, markets })
    }

    pub(crate) fn directories(&self) -> [&SecurityDirectory; 2] {
        self.markets.each_ref().map(|market| &market.directory)
    }

    /// Canonical symbols of the securities with different identities.
    pub(crate) fn find_differing_identities(&self) -> BTreeSet<Symbol> {
        let [before, after] = self.directories();
        changed_identities(&before.identities, &after.identities)
    }

    /// Canonical symbols of the securities whose figures may use exchange rates; empty if no rate differs.
    pub(crate) async fn find_converted(&self) -> Result<BTreeSet<Symbol>, DeriveError> {
        let [before, after] = &self.markets;
        match before.rates == after.rates {
            true => Ok(BTreeSet::new()),
            false => load_converted(self.views.transaction, &before.reporting_currency).await,
        }
    }

    /// True if an input differs that all derivations share.
    pub(crate) fn have_different_shared_inputs(&self) -> bool {
        let [before, after] = &self.markets;
        before.as_of != after.as_of || before.benchmark != after.benchmark
    }

    /// Canonical symbols of all securities.
    pub(crate) fn all_securities(&self) -> BTreeSet<Symbol> {
        self.directories().into_iter().flat_map(|directory| directory.identities.keys()).cloned().collect()
    }

    /// Canonical symbols of the securities with a differing input: their facts, or one that all derivations share.
    pub(super) async fn find_touched(&self) -> anyhow::Result<BTreeSet<Symbol>> {
        if self.have_different_shared_inputs() {
            return Ok(self.all_securities());
        }
        let mut touched = self.find_differing_identities();
        touched.extend(self.find_converted().await?);
        let mut changed: BTreeSet<String> =
            self.views.touched.symbols().into_iter().map(str::to_owned).collect();
        let [before, after] = self.markets.each_ref().map(|market| &market.dividend_feeds);
        let differing = differing_sources(before, after);
        if !differing.is_empty() {
            for row in self.views.transaction.query(SYMBOLS, &[&differing]).await? {
                changed.insert(row.try_get("symbol")?);
            }
        }
        for symbol in changed.iter().filter_map(|symbol| Symbol::parse(symbol).ok()) {
            touched.extend(self.directories().into_iter().flat_map(|of| of.owners(&symbol)).cloned());
        }
        Ok(touched)
    }

    /// Derives some securities twice. Each pair is measured, in parallel with others, and then visited with its measure,
    /// in the order of `symbols`. A side is `None` if the security is not listed there.
    pub(crate) async fn visit<T: Send>(
        &self,
        symbols: BTreeSet<Symbol>,
        [action, unit]: [&'static str; 2],
        measure: impl Fn([Option<SecurityFigures>; 2]) -> anyhow::Result<T> + Sync,
        mut visit: impl FnMut(&Symbol, T) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let symbols: Vec<Symbol> = symbols.into_iter().collect();
        let mut progress = ProgressReport::new(action, unit, symbols.len() as u64);
        for chunk in symbols.chunks(CHUNK_SECURITIES) {
            let identities = self
                .directories()
                .into_iter()
                .flat_map(|directory| chunk.iter().filter_map(|symbol| directory.identities.get(symbol)));
            let wanted = symbols_of_identities(identities);
            let facts = fetch_facts(self.views.transaction, &wanted).await?;
            let rows = self.views.of_symbols(&wanted).await?;
            let measured: Vec<T> = tokio::task::block_in_place(|| {
                let facts = rows.each_ref().map(|rows| overlay(rows, &facts));
                let derive = |symbol| {
                    let [before, after] = [0, 1].map(|side| self.derive(side, symbol, &facts[side]));
                    measure([before?, after?])
                };
                chunk.par_iter().map(derive).collect::<anyhow::Result<_>>()
            })?;
            for (symbol, measured) in chunk.iter().zip(measured) {
                visit(symbol, measured)?;
            }
            progress.add(chunk.len() as u64);
        }
        progress.finish();
        Ok(())
    }

    fn derive(
        &self,
        side: usize,
        symbol: &Symbol,
        facts: &FactsBySymbol,
    ) -> anyhow::Result<Option<SecurityFigures>> {
        let market = &self.markets[side];
        let context = market.context(self.policies[side], self.rules);
        let identity = market.directory.identities.get(symbol);
        let (Some(identity), Some(context)) = (identity, context) else { return Ok(None) };
        let history = build_history(identity, facts, &market.dividend_feeds, |_, _| false)?;
        Ok(SecurityFigures::derive(&history, &context))
    }
}

/// Sources whose dividend years differ between the two sides. The dividend years of a source are the calendar years in
/// which it has dividends.
fn differing_sources(before: &DividendFeeds, after: &DividendFeeds) -> Vec<String> {
    let years = |feeds: &DividendFeeds, source: &str| feeds.years(source).collect::<Vec<_>>();
    let sources: BTreeSet<&str> = before.pairs().chain(after.pairs()).map(|(source, _)| source).collect();
    let differing = sources.into_iter().filter(|source| years(before, source) != years(after, source));
    differing.map(str::to_owned).collect()
}

/// Columns that are not compared. They may change even if the facts are equal.
const NOT_COMPARED: [&str; 3] = ["updated_at", "as_of", "method_version"];

pub(crate) struct SecurityFigures {
    pub(super) rows: DerivedRows,
    fund: Option<FundRows>,
    pub(super) sources: RowsBySource,
}

/// Differences of one security in one table. `rows` has the number of its rows before the run, and the number now.
pub(super) struct ComparedRows {
    pub(super) table: &'static str,
    pub(super) rows: [u64; 2],
    pub(super) differences: Vec<RowDifference>,
}

impl SecurityFigures {
    pub(crate) fn has_same_rows(&self, other: &Self) -> bool {
        self.rows == other.rows && self.fund == other.fund
    }

    /// Derives a security; `None` if the security is not listed.
    pub(super) fn derive(history: &History, context: &DerivationContext<'_>) -> Option<Self> {
        let derivation = Derivation::new(history, context);
        let sources = derivation.rows_by_source();
        let rows = derivation.rows();
        let fund = fund(history, context, &rows.stock, &rows.metrics);
        let is_listed = history.security.is_some() || fund.is_some() || rows.has_live_rows();
        is_listed.then_some(Self { rows, fund, sources })
    }
}

/// Compares the rows of a security before the run with its rows now. If the security is listed at only one of these
/// times, compares only its metrics and quarantined rows.
pub(super) fn compare_figures(sides: [Option<&SecurityFigures>; 2]) -> anyhow::Result<Vec<ComparedRows>> {
    fn one<T>(row: &T) -> &[T] {
        std::slice::from_ref(row)
    }
    let mut found = vec![
        compare("metrics", sides, |side| one(&side.rows.metrics))?,
        compare("quarantine", sides, |side| &side.rows.quarantined)?,
    ];
    if sides.iter().all(Option::is_some) {
        found.push(compare("stocks", sides, |side| one(&side.rows.stock))?);
        found.push(compare("quotes", sides, |side| one(&side.rows.quote))?);
        found.push(compare("fundamentals", sides, |side| side.rows.fundamentals.as_slice())?);
        found.push(compare("dividends", sides, |side| &side.rows.dividends)?);
        found.push(compare("splits", sides, |side| &side.rows.splits)?);
        found.push(compare("etfs", sides, |side| side.fund.as_ref().map_or(&[], |fund| one(&fund.etf)))?);
        found.push(compare("holdings", sides, |side| side.fund.as_ref().map_or(&[], |fund| &fund.holdings))?);
    }
    Ok(found)
}

pub(super) const COMPARED: [&str; 10] = [
    "metrics",
    "quarantine",
    "stocks",
    "quotes",
    "fundamentals",
    "dividends",
    "splits",
    "etfs",
    "holdings",
    "prices",
];

fn compare<T: TableRow + PartialEq>(
    table: &'static str,
    sides: [Option<&SecurityFigures>; 2],
    rows: impl Fn(&SecurityFigures) -> &[T],
) -> anyhow::Result<ComparedRows> {
    let [before, after] = sides.map(|side| side.map(&rows).unwrap_or_default());
    let mut differences = Vec::new();
    if before != after {
        let encode = |rows: &[T]| rows.iter().map(DerivedCells::encode).collect::<anyhow::Result<_>>();
        let comparison = RowComparison::of_derived::<T>(table, &NOT_COMPARED)?;
        differences = comparison.compare([encode(before)?, encode(after)?])?;
    }
    Ok(ComparedRows { table, rows: [before.len() as u64, after.len() as u64], differences })
}
