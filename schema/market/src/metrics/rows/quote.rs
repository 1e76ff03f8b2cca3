//! End-of-day quote row of a security.

use rust_decimal::Decimal;

use super::rounded::{amount, percent};
use crate::bars::{BarColumn, MISSING};
use crate::metrics::arithmetic::{change_percent, round_to_integer};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::prices::range::{VOLUME_SESSIONS, average_close, average_volume, year_range};
use crate::row::{DividendState, Quote, QuoteSource};

/// End-of-day quote row. Prices of the latest session are adjusted for the splits after the session.
pub(crate) fn quote(computed: &ComputedMetrics<'_>) -> Quote {
    let series = computed.inputs.series();
    let bars = series.bars;
    let security = computed.inputs.security();
    let latest = computed.inputs.price.map(|price| price.index);
    let carried = |value: i64| {
        let raw = bars.decimal(value).filter(|raw| *raw > Decimal::ZERO)?;
        Some(
            series.splits.price_ratio_to_basis(computed.inputs.price?.date, computed.inputs.as_of).apply(raw),
        )
    };
    let shares = |volume: i64| {
        let carry = series.splits.ratio_to_basis(computed.inputs.price?.date, computed.inputs.as_of);
        round_to_integer(carry.inverse().apply(volume.into()))
    };
    let of_latest = |column: &BarColumn| amount(latest.and_then(|index| carried(column[index])));
    let close = computed.inputs.close();
    let previous = latest
        .and_then(|index| index.checked_sub(1))
        .map(|index| series.close_on_basis(index, computed.inputs.as_of));
    let range = year_range(&series, computed.inputs.as_of);
    let has_paid = !matches!(computed.income.status, DividendState::NonPayer | DividendState::Unknown);
    Quote {
        symbol: computed.inputs.history.symbol.to_string(),
        name: computed.inputs.name(),
        exchange: security.and_then(|security| security.exchange.clone()),
        sector: security.and_then(|security| security.sector.clone()),
        currency: computed.inputs.currency.clone(),
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
        avg_volume_30d: average_volume(&series, VOLUME_SESSIONS, computed.inputs.as_of),
        sma_50: amount(average_close(&series, 50, computed.inputs.as_of)),
        sma_200: amount(average_close(&series, 200, computed.inputs.as_of)),
        year_high: amount(range.map(|(high, _)| high.price)),
        year_high_date: range.map(|(high, _)| high.date),
        year_low: amount(range.map(|(_, low)| low.price)),
        year_low_date: range.map(|(_, low)| low.date),
        market_cap: computed.figures.market_cap.and_then(round_to_integer),
        shares_outstanding: computed.figures.shares_outstanding.and_then(round_to_integer),
        pe_ratio: percent(computed.figures.pe_ratio),
        eps_ttm: amount(computed.figures.eps_ttm),
        dividend_yield: percent(computed.income.dividend_yield),
        annual_dividend: amount(computed.income.forward.amount.or(computed.income.dps_ttm)),
        dividend_currency: has_paid.then(|| computed.inputs.dividend_currency.clone()),
        price_date: computed.inputs.price.map(|price| price.date),
        source: QuoteSource::Eod,
        updated_at: computed.updated_at,
    }
}
