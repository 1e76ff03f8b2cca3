//! The end-of-day quote.

use rust_decimal::Decimal;

use super::rounded::{amount, percent};
use crate::bars::{Column, MISSING};
use crate::measure::arithmetic::{change_percent, whole};
use crate::measure::measured::Measured;
use crate::measure::range::{VOLUME_SESSIONS, average_close, average_volume, year_range};
use crate::row::{DividendState, Quote, QuoteSource};
use crate::value::Exact;

/// The quote; prices of the latest session are carried through the splits since.
pub(super) fn quote(measured: &Measured<'_>) -> Quote {
    let series = measured.basis.series();
    let bars = series.bars;
    let security = measured.basis.security();
    let latest = measured.basis.price.map(|price| price.index);
    let carried = |value: i64| {
        let raw = bars.decimal(value).filter(|raw| *raw > Decimal::ZERO)?;
        Some(series.splits.carry(measured.basis.price?.date, measured.basis.as_of).apply(raw))
    };
    let shares = |volume: i64| {
        let carry = series.splits.carry(measured.basis.price?.date, measured.basis.as_of);
        whole(carry.inverse().apply(volume.into()))
    };
    let of_latest = |column: &Column| amount(latest.and_then(|index| carried(column[index])));
    let close = measured.basis.close();
    let previous = latest
        .and_then(|index| index.checked_sub(1))
        .map(|index| series.close_on_basis(index, measured.basis.as_of));
    let range = year_range(&series, measured.basis.as_of);
    Quote {
        symbol: measured.basis.history.symbol.to_string(),
        name: measured.basis.name(),
        exchange: security.and_then(|security| security.exchange.clone()),
        sector: security.and_then(|security| security.sector.clone()),
        currency: measured.basis.currency.clone(),
        price: amount(close),
        open: of_latest(&bars.open),
        day_high: of_latest(&bars.high),
        day_low: of_latest(&bars.low),
        previous_close: amount(previous),
        change: amount(close.zip(previous).and_then(|(close, previous)| close.checked_sub(previous))),
        change_percent: percent(
            close.zip(previous).and_then(|(close, previous)| change_percent(close, previous)),
        ),
        volume: latest.map(|index| bars.volume[index]).filter(|volume| *volume != MISSING).and_then(shares),
        avg_volume_30d: average_volume(&series, VOLUME_SESSIONS, measured.basis.as_of),
        sma_50: amount(average_close(&series, 50, measured.basis.as_of)),
        sma_200: amount(average_close(&series, 200, measured.basis.as_of)),
        year_high: amount(range.map(|(high, _)| high.price)),
        year_high_date: range.map(|(high, _)| high.date),
        year_low: amount(range.map(|(_, low)| low.price)),
        year_low_date: range.map(|(_, low)| low.date),
        market_cap: measured.figures.market_cap.and_then(whole),
        shares_outstanding: measured.figures.shares_outstanding.and_then(whole),
        pe_ratio: percent(measured.figures.pe_ratio),
        eps_ttm: amount(measured.figures.eps_ttm),
        dividend_yield: percent(measured.income.dividend_yield),
        annual_dividend: annual_dividend(measured),
        dividend_currency: dividend_currency(measured),
        price_date: measured.basis.price.map(|price| price.date),
        source: QuoteSource::Eod,
        updated_at: measured.updated_at,
    }
}

/// Dividends a year per share behind the headline yield, in the dividends' currency.
pub(super) fn annual_dividend(measured: &Measured<'_>) -> Option<Exact> {
    amount(measured.income.forward.amount.or(measured.income.dps_ttm))
}

/// Currency of the dividends; `None` when none was ever paid.
pub(super) fn dividend_currency(measured: &Measured<'_>) -> Option<String> {
    let paid_ever = measured.income.status != DividendState::NonPayer;
    paid_ever.then(|| measured.basis.dividend_currency.clone())
}
