//! Derivation of a security as if one source were the only source.

use std::sync::Arc;

use market::bars::Bars;
use market::history::{History, Observation};
use market::metrics::{Derivation, DerivationContext};
use market::row::{DividendRow, FundamentalsRow, SplitRow};

use super::result::SourceQuality;

/// Rows of a security, derived as if one source were the only source. They are later compared with the rows of other
/// sources. A field is empty if the source has no rows of this kind.
#[derive(Debug, Default)]
pub(super) struct IsolatedRows {
    pub(super) bars: Arc<Bars>,
    pub(super) dividends: Vec<DividendRow>,
    pub(super) splits: Vec<SplitRow>,
    pub(super) fundamentals: Option<FundamentalsRow>,
}

/// Sources of the prices, dividends, splits and company figures of a security. A source may occur several times.
pub(super) fn sources_of(history: &History) -> impl Iterator<Item = &str> {
    let prices = history.prices.iter().map(|prices| prices.source.as_str());
    let dividends = history.dividends.iter().map(|row| row.source.as_str());
    let splits = history.splits.iter().map(|row| row.source.as_str());
    prices.chain(dividends).chain(splits).chain(history.fundamentals.iter().map(|row| row.source.as_str()))
}

/// Derives a security as if `source` were the only source. The quality has the quarantined rows by reason, and the
/// dividend rows by interpretation.
pub(super) fn judge(
    history: &History,
    source: &str,
    context: &DerivationContext<'_>,
) -> (SourceQuality, IsolatedRows) {
    let alone = isolate(history, source);
    let derivation = Derivation::new(&alone, context);
    let mut quality = SourceQuality { readings: derivation.reading_counts(), ..SourceQuality::default() };
    let rows = derivation.rows();
    for row in rows.quarantined.iter().filter(|row| row.source == source) {
        *quality.quarantined.entry(format!("{} {}", row.kind, row.reason)).or_default() += 1;
    }
    let has_prices = history.prices.iter().any(|prices| prices.source == source);
    let own = IsolatedRows {
        bars: if has_prices { rows.bars } else { Arc::default() },
        dividends: rows.dividends,
        splits: if has_rows(&history.splits, source) { rows.splits } else { Vec::new() },
        fundamentals: rows.fundamentals.filter(|_| has_rows(&history.fundamentals, source)),
    };
    (quality, own)
}

fn has_rows<T>(rows: &[Observation<T>], source: &str) -> bool {
    rows.iter().any(|row| row.source == source)
}

/// Reduces a history to the rows of one source. If the source has no prices, the prices of all sources remain. The same
/// applies to splits and to company figures.
fn isolate(history: &History, source: &str) -> History {
    fn own<T: Clone>(rows: &[Observation<T>], source: &str) -> Vec<Observation<T>> {
        rows.iter().filter(|row| row.source == source).cloned().collect()
    }
    fn own_or_all<T: Clone>(rows: &[Observation<T>], source: &str) -> Vec<Observation<T>> {
        if has_rows(rows, source) { own(rows, source) } else { rows.to_vec() }
    }
    let mut prices = history.prices.clone();
    if prices.iter().any(|prices| prices.source == source) {
        prices.retain(|prices| prices.source == source);
    }
    History {
        symbol: history.symbol.clone(),
        former_symbols: history.former_symbols.clone(),
        security: history.security.clone(),
        dividends: own(&history.dividends, source),
        splits: own_or_all(&history.splits, source),
        fundamentals: own_or_all(&history.fundamentals, source),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: history.decisions.clone(),
        evidence: own(&history.evidence, source),
        dividend_feeds: history.dividend_feeds.clone(),
        prices,
    }
}
