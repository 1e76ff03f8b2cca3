//! Comparison of two derivations of the market. They differ in the view of the log, or in the source policy. Only the
//! securities with a differing input are derived.

use std::collections::{BTreeSet, HashMap};

use chrono::Datelike;
use futures::{StreamExt, TryStreamExt, stream};
use market::event::Kind;
use market::history::{DividendFeeds, History, SourcePolicy};
use market::identity::SecurityDirectory;
use market::metrics::fund::{FundRows, fund};
use market::metrics::{Derivation, DerivationContext, DerivedRows, RowsBySource};
use market::row::TableRow;
use market::symbol::Symbol;
use rayon::prelude::*;
use store::history::{FactsBySymbol, build_history, fetch_facts, fetch_facts_since, symbols_of_identities};
use store::past_facts::ViewRows;

use super::market_inputs::MarketInputs;
use super::side::{TouchedViews, overlay};
use crate::derive::touched::{changed_identities, load_converted};
use crate::error::DeriveError;
use crate::generation::Generation;
use crate::progress::ProgressReport;
use crate::review::compare::{DerivedCells, RowComparison, RowDifference};

const EARLIER_YEARS: &str = include_str!("../../../queries/effect/earlier_years.sql");
const SYMBOLS: &str = include_str!("../../../queries/effect/symbols_of_sources.sql");
/// Number of securities that are derived together.
const CHUNK_SECURITIES: usize = 100;
/// Number of chunks whose inputs are in memory.
const CHUNKS_IN_MEMORY: usize = 2;

/// Inputs of the derivation of some securities.
struct ChunkInputs {
    facts: FactsBySymbol,
    rows: [ViewRows; 2],
    /// Number of years with bars that `facts` does not have, by symbol.
    earlier_years: HashMap<String, u64>,
}

pub(crate) struct MarketComparison<'a> {
    views: TouchedViews<'a>,
    pub(super) markets: [MarketInputs; 2],
}

impl<'a> MarketComparison<'a> {
    pub(crate) async fn load(
        generation: &Generation,
        policies: [&SourcePolicy; 2],
        views: TouchedViews<'a>,
    ) -> anyhow::Result<Self> {
        let markets = MarketInputs::load(generation, policies, &views).await?;
        Ok(Self { views, markets })
    }

    pub(crate) fn directories(&self) -> [&SecurityDirectory; 2] {
        self.markets.each_ref().map(|market| &market.directory)
    }

    /// Canonical symbols of the securities with different identities.
    pub(crate) fn find_differing_identities(&self) -> BTreeSet<Symbol> {
        let [before, after] = self.directories();
        changed_identities(&before.identities, &after.identities)
    }

    /// Canonical symbols of the securities whose figures may use exchange rates; empty if no rate differs, or if a side
    /// has no market date.
    pub(crate) async fn find_converted(&self) -> Result<BTreeSet<Symbol>, DeriveError> {
        match self.markets.each_ref().map(|side| side.market.as_ref()) {
            [Some(before), Some(after)] if before.rates != after.rates => {
                load_converted(self.views.transaction, &after.reporting_currency).await
            }
            _ => Ok(BTreeSet::new()),
        }
    }

    /// True if an input differs that all derivations share.
    pub(crate) fn have_different_shared_inputs(&self) -> bool {
        let [before, after] = self.markets.each_ref().map(|side| {
            let market = side.market.as_ref();
            market.map(|market| (market.as_of, &market.benchmark))
        });
        before != after
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

    /// Divides securities into those whose comparison needs all bars, and those of which the bars of a year and later ones
    /// suffice at first. The gate needs older bars only with a changed dividend or split, or a changed bar of an older
    /// year. Returns the year for each part.
    pub(super) fn divide_by_first_year(
        &self,
        touched: BTreeSet<Symbol>,
    ) -> [(Option<i32>, BTreeSet<Symbol>); 2] {
        let Some(as_of) = self.markets[1].as_of() else { return [(None, touched), (None, BTreeSet::new())] };
        let rows = self.views.touched;
        let records = rows.records.iter().filter(|key| key.kind != Kind::Fundamentals);
        let years = rows.years.iter().filter(|(.., year)| *year < as_of.year() - 1);
        let whole: BTreeSet<&str> = records
            .map(|key| key.symbol.as_str())
            .chain(years.map(|(symbol, ..)| symbol.as_str()))
            .filter(|symbol| !symbol.is_empty())
            .collect();
        let needs_whole = |symbol: &Symbol| {
            let identities =
                self.directories().into_iter().filter_map(|directory| directory.identities.get(symbol));
            symbols_of_identities(identities).into_iter().any(|symbol| whole.contains(symbol))
        };
        let (whole, recent) = touched.into_iter().partition(needs_whole);
        [(None, whole), (Some(as_of.year() - 1), recent)]
    }

    /// Derives some securities twice, from their bars of `first_year` and later years, or from all. Each pair is measured, in parallel with others, and then visited with its measure,
    /// in the order of `symbols`. A side is `None` if the security is not listed there.
    pub(crate) async fn visit<T: Send>(
        &self,
        (first_year, symbols): (Option<i32>, BTreeSet<Symbol>),
        [action, unit]: [&'static str; 2],
        measure: impl Fn([Option<SecurityFigures>; 2]) -> anyhow::Result<T> + Sync,
        mut visit: impl FnMut(&Symbol, T) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let symbols: Vec<Symbol> = symbols.into_iter().collect();
        let mut progress = ProgressReport::new(action, unit, symbols.len() as u64);
        // Postgres reads the inputs of the next chunk while one is derived.
        let mut inputs = stream::iter(symbols.chunks(CHUNK_SECURITIES))
            .map(|chunk| self.fetch(chunk, first_year))
            .buffered(CHUNKS_IN_MEMORY);
        for chunk in symbols.chunks(CHUNK_SECURITIES) {
            let Some(inputs) = inputs.try_next().await? else { break };
            let measured: Vec<T> = tokio::task::block_in_place(|| {
                let facts = inputs.rows.each_ref().map(|rows| overlay(rows, &inputs.facts));
                let derive = |symbol: &Symbol| {
                    let earlier = inputs.earlier_years.get(symbol.as_str()).copied().unwrap_or_default();
                    let [before, after] = [0, 1].map(|side| self.derive(side, symbol, &facts[side], earlier));
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

    async fn fetch(&self, chunk: &[Symbol], first_year: Option<i32>) -> anyhow::Result<ChunkInputs> {
        let identities = self
            .directories()
            .into_iter()
            .flat_map(|directory| chunk.iter().filter_map(|symbol| directory.identities.get(symbol)));
        let wanted = symbols_of_identities(identities);
        let transaction = self.views.transaction;
        let Some(first_year) = first_year else {
            let facts = async { Ok(fetch_facts(transaction, &wanted).await?) };
            let (facts, rows) = futures::try_join!(facts, self.views.of_symbols(&wanted))?;
            return Ok(ChunkInputs { facts, rows, earlier_years: HashMap::new() });
        };
        let facts = async { Ok(fetch_facts_since(transaction, &wanted, first_year).await?) };
        let years = async { Ok(transaction.query(EARLIER_YEARS, &[&wanted, &first_year]).await?) };
        let (facts, rows, years) = futures::try_join!(facts, self.views.of_symbols(&wanted), years)?;
        let mut earlier_years = HashMap::new();
        for row in years {
            earlier_years.insert(row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs());
        }
        Ok(ChunkInputs { facts, rows, earlier_years })
    }

    fn derive(
        &self,
        side: usize,
        symbol: &Symbol,
        facts: &FactsBySymbol,
        earlier_years: u64,
    ) -> anyhow::Result<Option<SecurityFigures>> {
        let MarketInputs { market, directory, dividend_feeds } = &self.markets[side];
        let identity = directory.identities.get(symbol);
        let (Some(identity), Some(market)) = (identity, market) else { return Ok(None) };
        let history = build_history(identity, facts, dividend_feeds, |_, _| false)?;
        let figures = SecurityFigures::derive(&history, &market.derivation_context());
        Ok(figures.map(|figures| SecurityFigures { earlier_years, ..figures }))
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
    /// Number of years with bars that were left out.
    pub(super) earlier_years: u64,
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
        is_listed.then_some(Self { rows, fund, sources, earlier_years: 0 })
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
