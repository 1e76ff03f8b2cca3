//! Conversion of computed metrics to rows. Figures are rounded only in this conversion.

mod dividend;
mod id;
mod metrics;
mod next;
mod quote;
mod split;
mod stock;

use std::sync::Arc;

use crate::bars::Bars;
use crate::day::date_of;
use crate::event::{DecidedRow, Kind, line_column};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::merge::{dividend_row, split_row};
use crate::metrics::prices::adjustment::AdjustmentFactor;
use crate::row::{self, FundamentalsRow, QuarantineReason, Quarantined, SplitStatus};

pub(crate) use dividend::fingerprints as dividend_fingerprints;
pub(crate) use metrics::metrics;

/// Converts computed metrics to all rows.
pub(crate) fn derived(computed: ComputedMetrics<'_>) -> DerivedRows {
    let dividends = dividend::dividends(&computed);
    DerivedRows { dividends, ..without_dividends(computed) }
}

/// Converts computed metrics to all rows except dividends.
pub(crate) fn without_dividends(mut computed: ComputedMetrics<'_>) -> DerivedRows {
    let quote = quote::quote(&computed);
    let quarantined = quarantined(&computed);
    let payments = &computed.inputs.merged.dividends.payments;
    DerivedRows {
        stock: stock::stock(&computed, &quote, &quarantined),
        fundamentals: quote::fundamentals(&computed),
        metrics: metrics(&computed, &quarantined),
        has_dividends: !payments.is_empty() || !computed.upcoming.projections.is_empty(),
        dividends: Vec::new(),
        splits: split::splits(&computed),
        factors: computed.inputs.ex_days.iter().map(AdjustmentFactor::from).collect(),
        bars: std::mem::take(&mut computed.inputs.merged.prices.bars),
        quote,
        quarantined,
    }
}

/// Quarantined rows of a security, by kind and day.
pub(crate) fn quarantined(computed: &ComputedMetrics<'_>) -> Vec<Quarantined> {
    quarantined_with_keys(computed).into_iter().map(|(row, _)| row).collect()
}

/// Quarantined rows by kind and day. Each has the key that a review decision uses to identify the row.
pub(crate) fn quarantined_with_keys(computed: &ComputedMetrics<'_>) -> Vec<(Quarantined, DecidedRow)> {
    let symbol = computed.inputs.history.symbol.to_string();
    let merged = &computed.inputs.merged;
    let mut rows: Vec<(Quarantined, DecidedRow)> = Vec::new();
    let mut add = |decided: DecidedRow, reason: QuarantineReason, message: &str, line: u64| {
        let row = Quarantined {
            symbol: symbol.clone(),
            kind: decided.kind.to_string(),
            date: decided.date,
            id: decided.row_id.clone(),
            reason: reason.to_string(),
            message: message.to_owned(),
            source: decided.source.clone(),
            line: line_column(line),
        };
        rows.push((row, decided));
    };
    for held in &merged.dividends.quarantined {
        let observation = &computed.inputs.history.dividends[held.index];
        add(dividend_row(observation), held.reason, &held.message, observation.line);
    }
    for held in &merged.splits.quarantined {
        let observation = &computed.inputs.history.splits[held.index];
        add(split_row(observation), held.reason, &held.message, observation.line);
    }
    for held in &merged.prices.quarantined {
        let (kind, source, date) = (Kind::Price, held.source.clone(), Some(date_of(held.day)));
        let decided = DecidedRow { kind, source, row_id: None, date, value: held.close };
        add(decided, held.reason, &held.message, held.line);
    }
    let key = |(row, _): &(Quarantined, DecidedRow)| {
        (row.kind.clone(), row.date, row.source.clone(), row.id.clone(), row.line)
    };
    rows.sort_by_cached_key(key);
    rows
}

/// All rows of one security.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedRows {
    /// Row of the security in lists and screeners.
    pub stock: row::Stock,
    /// End-of-day quote: latest price and headline yield.
    pub quote: row::Quote,
    /// Company figures; `None` for a provisional security without reported figures.
    pub fundamentals: Option<FundamentalsRow>,
    /// Dividend metrics.
    pub metrics: row::Metrics,
    /// True if a dividend was paid, is declared or is projected.
    pub has_dividends: bool,
    /// Dividends, sorted by ex-date. Cancelled dividends, and projections of the next 366 days, are included.
    pub dividends: Vec<row::DividendRow>,
    /// Splits, sorted by ex-date. Announced and cancelled splits are included.
    pub splits: Vec<row::SplitRow>,
    /// Raw bars up to the as-of date, one per session. Their versions (revision and observation time) are not derived,
    /// and must not be used.
    pub bars: Arc<Bars>,
    /// Adjustment factors up to the as-of date, sorted by ex-date.
    pub factors: Vec<AdjustmentFactor>,
    /// Quarantined rows with their reasons.
    pub quarantined: Vec<row::Quarantined>,
}

impl DerivedRows {
    /// True if the security has at least one row that is not withdrawn. Quarantined rows count. Securities without such
    /// a row are not listed.
    pub fn has_live_rows(&self) -> bool {
        !self.bars.is_empty()
            || self.fundamentals.is_some()
            || !self.quarantined.is_empty()
            || self.has_dividends
            || self.splits.iter().any(|row| row.status != SplitStatus::Cancelled)
    }

    /// Company figures as responses show them. Some figures that are missing in the row, such as the sector, are taken
    /// from the stock row. Without a row of company figures, all figures come from the stock row.
    pub fn served_fundamentals(&self) -> FundamentalsRow {
        let (listed, figures) = (&self.stock.listed, &self.stock.figures.screened);
        let row = self.fundamentals.clone().unwrap_or_else(|| FundamentalsRow {
            symbol: listed.symbol.clone(),
            name: listed.name.clone(),
            updated_at: listed.updated_at,
            ..FundamentalsRow::default()
        });
        FundamentalsRow {
            sector: row.sector.or_else(|| listed.sector.clone()),
            industry: row.industry.or_else(|| listed.industry.clone()),
            country: row.country.or_else(|| listed.country.clone()),
            market_cap: row.market_cap.or(listed.market_cap),
            pe_ratio: row.pe_ratio.or(figures.pe_ratio),
            payout_ratio: row.payout_ratio.or(figures.payout_ratio),
            beta: row.beta.or(figures.beta),
            ..row
        }
    }
}
