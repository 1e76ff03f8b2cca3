//! Comparison of the securities that a run (one load by ingest) affects. Each security is derived twice: without the
//! run, and with it.

use std::collections::BTreeSet;

use market::bars::Bars;
use market::history::{DividendFeeds, SourcePolicy};
use market::identity::Identity;
use market::metrics::{DerivationContext, RowsBySource};
use market::symbol::Symbol;
use rayon::prelude::*;
use store::history::{FactsBySymbol, build_history, fetch_facts, symbols_of_identities};
use tokio_postgres::Transaction;

use super::market_inputs::MarketInputs;
use super::replacement::Replacements;
use super::result::{FlagChanges, FoundEffect, QuarantineChange};
use super::security_figures::{COMPARED, ComparedRows, SecurityFigures, compare_figures};
use super::side::TouchedViews;
use crate::generation::Generation;
use crate::progress::ProgressReport;
use crate::review::compare::{DiffAccumulator, DifferenceFile, TableDiff, each_pair};

const SYMBOLS: &str = include_str!("../../../queries/effect/symbols_of_sources.sql");
/// Maximum number of securities that are in memory at the same time.
const CHUNK_SECURITIES: usize = 100;

pub(super) struct EffectComparison<'a> {
    pub(super) generation: &'a Generation,
    pub(super) policy: &'a SourcePolicy,
    pub(super) views: TouchedViews<'a>,
    pub(super) markets: [MarketInputs; 2],
}

/// Derived rows of one security, without the run and with it. A side is `None` if the security is not listed there.
struct ComparedSecurity<'a> {
    symbol: &'a Symbol,
    before: Option<SecurityFigures>,
    after: Option<SecurityFigures>,
    rows: Vec<ComparedRows>,
}

struct DerivationInputs<'a> {
    market: &'a MarketInputs,
    context: Option<DerivationContext<'a>>,
    facts: FactsBySymbol,
}

impl EffectComparison<'_> {
    /// Compares all affected securities. The first `keep` differing rows of each table and the `keep` largest
    /// differences of each topic stay in memory. All differing rows are written to `files`.
    pub(super) async fn compare(
        &self,
        transaction: &Transaction<'_>,
        keep: usize,
        files: Vec<DifferenceFile>,
    ) -> anyhow::Result<FoundEffect> {
        let touched: Vec<Symbol> = self.find_touched(transaction).await?.into_iter().collect();
        let mut found = EffectAccumulator::new(keep, files);
        let mut progress = ProgressReport::new("compared", "securities", touched.len() as u64);
        for symbols in touched.chunks(CHUNK_SECURITIES) {
            let pairs = self.derive_chunk(transaction, symbols).await?;
            pairs.iter().try_for_each(|pair| found.add(pair))?;
            progress.add(symbols.len() as u64);
        }
        progress.finish();
        Ok(FoundEffect {
            as_of: self.markets.each_ref().map(|market| market.as_of),
            compared: found.compared,
            changed: found.changed,
            replaced: found.replacements.finish(self.policy),
            quarantined: found.quarantined,
            flags: found.flags.finish(),
            differences: found.differences.finish()?,
        })
    }

    /// Canonical symbols of the affected securities. A security is affected if an input of its derivation differs
    /// between the two sides. Inputs are the facts of the security and, for example, the market date.
    async fn find_touched(&self, transaction: &Transaction<'_>) -> anyhow::Result<BTreeSet<Symbol>> {
        let sides = &self.markets;
        let all: BTreeSet<&Symbol> = sides.iter().flat_map(|side| side.directory.identities.keys()).collect();
        if sides[0].as_of != sides[1].as_of || sides[0].benchmark != sides[1].benchmark {
            return Ok(all.into_iter().cloned().collect());
        }
        let identity = |side: usize, symbol: &Symbol| sides[side].directory.identities.get(symbol);
        let mut touched: BTreeSet<Symbol> =
            all.into_iter().filter(|symbol| identity(0, symbol) != identity(1, symbol)).cloned().collect();
        let mut changed: BTreeSet<String> =
            self.views.touched.symbols().into_iter().map(str::to_owned).collect();
        let differing = differing_sources(&sides[0].dividend_feeds, &sides[1].dividend_feeds);
        if !differing.is_empty() {
            for row in transaction.query(SYMBOLS, &[&differing]).await? {
                changed.insert(row.try_get("symbol")?);
            }
        }
        for symbol in changed.iter().filter_map(|symbol| Symbol::parse(symbol).ok()) {
            touched.extend(sides.iter().flat_map(|side| side.directory.owners(&symbol)).cloned());
        }
        Ok(touched)
    }

    async fn derive_chunk<'s>(
        &self,
        transaction: &Transaction<'_>,
        symbols: &'s [Symbol],
    ) -> anyhow::Result<Vec<ComparedSecurity<'s>>> {
        let sides = &self.markets;
        let identities = sides
            .iter()
            .flat_map(|side| symbols.iter().filter_map(|symbol| side.directory.identities.get(symbol)));
        let wanted = symbols_of_identities(identities);
        let (facts, rows) = (fetch_facts(transaction, &wanted).await?, self.views.of_symbols(&wanted).await?);
        tokio::task::block_in_place(|| {
            let input = |side: usize| {
                let market = &self.markets[side];
                let context = market.context(self.policy, &self.generation.rules);
                DerivationInputs { market, context, facts: rows[side].apply(&facts) }
            };
            let (before, after) = (input(0), input(1));
            let derive = |symbol: &'s Symbol| {
                let (before, after) = (before.derive(symbol)?, after.derive(symbol)?);
                let rows = compare_figures([before.as_ref(), after.as_ref()])?;
                Ok(ComparedSecurity { symbol, before, after, rows })
            };
            symbols.par_iter().map(derive).collect()
        })
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

impl DerivationInputs<'_> {
    fn derive(&self, symbol: &Symbol) -> anyhow::Result<Option<SecurityFigures>> {
        let identity: Option<&Identity> = self.market.directory.identities.get(symbol);
        let (Some(identity), Some(context)) = (identity, &self.context) else { return Ok(None) };
        let history = build_history(identity, &self.facts, &self.market.dividend_feeds, |_, _| false)?;
        Ok(SecurityFigures::derive(&history, context))
    }
}

struct EffectAccumulator {
    keep: usize,
    compared: u64,
    changed: u64,
    differences: DiffAccumulator,
    replacements: Replacements,
    quarantined: QuarantineChange,
    flags: FlagChanges,
}

impl EffectAccumulator {
    fn new(keep: usize, files: Vec<DifferenceFile>) -> Self {
        let mut differences = DiffAccumulator::new(keep, files);
        for table in COMPARED {
            differences.begin_table(TableDiff { table: table.to_owned(), ..TableDiff::default() });
        }
        let (replacements, quarantined, flags) = Default::default();
        Self { keep, compared: 0, changed: 0, differences, replacements, quarantined, flags }
    }

    fn add(&mut self, pair: &ComparedSecurity<'_>) -> anyhow::Result<()> {
        let (sides, symbol) = ([pair.before.as_ref(), pair.after.as_ref()], pair.symbol.as_str());
        if sides.iter().all(Option::is_none) {
            return Ok(());
        }
        self.compared += 1;
        let (mut differs, none, nothing) = (false, Bars::default(), RowsBySource::new());
        for compared in &pair.rows {
            self.differences.add_row_counts(compared.table, compared.rows);
            for difference in &compared.differences {
                differs = true;
                self.differences.add_row(difference.clone())?;
            }
        }
        let bars = sides.map(|side| side.map_or(&none, |side| &side.rows.bars));
        self.differences.add_row_counts("prices", bars.map(|bars| bars.years().len() as u64));
        if sides.iter().all(Option::is_some) && bars[0] != bars[1] {
            each_pair(bars, |pair| {
                differs |= self.differences.add_prices(symbol, pair)?;
                Ok(())
            })?;
        }
        let sources = sides.map(|side| side.map_or(&nothing, |side| &side.sources));
        self.replacements.add(symbol, sources);
        self.quarantined.add(sides, self.keep);
        self.flags.add(symbol, sides);
        self.changed += u64::from(differs);
        Ok(())
    }
}
