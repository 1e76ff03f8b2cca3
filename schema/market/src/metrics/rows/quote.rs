//! End-of-day quote row of a security.
//!
//! Fundamentals row of a security.

use rust_decimal::Decimal;

use super::next::{amount, percent};
use crate::bars::{BarColumn, MISSING};
use crate::event::Fundamentals;
use crate::metrics::arithmetic::{change_percent, percent_of, quotient, round_to_integer};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::computed::company::in_reports;
use crate::metrics::prices::range::{VOLUME_SESSIONS, average_close, average_volume, year_range};
use crate::metrics::valuation::price_to;
use crate::row::{DividendState, FundamentalsRow, Quote, QuoteSource};

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

/// Row of company figures. `None` for a provisional security (without a reference record) that has no reported figures.
pub(crate) fn fundamentals(computed: &ComputedMetrics<'_>) -> Option<FundamentalsRow> {
    let reported = computed.inputs.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let security = computed.inputs.security();
    if reported.is_none() && security.is_none() {
        return None;
    }
    let figure = |field: fn(&Fundamentals) -> Option<Decimal>| reported.and_then(field);
    let company = &computed.figures;
    let price = computed.inputs.close();
    let positive = |value: Option<Decimal>| value.filter(|value| *value > Decimal::ZERO);
    let ratio = |a: Option<Decimal>, b: Option<Decimal>| a.zip(b).and_then(|(a, b)| quotient(a, b));
    let share_of =
        |a: Option<Decimal>, b: Option<Decimal>| a.zip(positive(b)).and_then(|(a, b)| percent_of(a, b));
    let (revenue, income) = (figure(|f| f.revenue_ttm), figure(|f| f.net_income_ttm));
    let equity = figure(|f| f.total_equity);
    let in_reports = |value: Option<Decimal>| in_reports(value, company.report_rate);
    Some(FundamentalsRow {
        symbol: computed.inputs.history.symbol.to_string(),
        name: computed.inputs.name(),
        sector: security.and_then(|security| security.sector.clone()),
        industry: security.and_then(|security| security.industry.clone()),
        country: security.and_then(|security| security.country.clone()),
        website: security.and_then(|security| security.website.clone()),
        employees: security.and_then(|security| security.employees),
        ipo_date: security.and_then(|security| security.ipo_date),
        market_cap: company.market_cap.and_then(round_to_integer),
        enterprise_value: figure(|f| f.enterprise_value).and_then(round_to_integer),
        shares_outstanding: company.shares_outstanding.and_then(round_to_integer),
        float_shares: company.float_shares.and_then(round_to_integer),
        pe_ratio: percent(company.pe_ratio),
        forward_pe: percent(figure(|f| f.forward_pe)),
        peg_ratio: percent(figure(|f| f.peg_ratio)),
        pb_ratio: percent(price_to(in_reports(price), company.book_value_per_share)),
        ps_ratio: percent(
            figure(|f| f.ps_ratio).or_else(|| ratio(in_reports(company.market_cap), positive(revenue))),
        ),
        ev_to_ebitda: percent(figure(|f| f.ev_to_ebitda)),
        eps_ttm: amount(company.eps_ttm),
        book_value_per_share: amount(company.book_value_per_share),
        fcf_per_share: amount(ratio(company.free_cash_flow, positive(company.shares_outstanding))),
        revenue_ttm: amount(revenue),
        net_income_ttm: amount(income),
        free_cash_flow_ttm: amount(company.free_cash_flow),
        gross_margin: percent(figure(|f| f.gross_margin)),
        operating_margin: percent(figure(|f| f.operating_margin)),
        net_margin: percent(figure(|f| f.net_margin).or_else(|| share_of(income, revenue))),
        roe: percent(figure(|f| f.roe).or_else(|| share_of(income, equity))),
        roa: percent(figure(|f| f.roa)),
        payout_ratio: percent(computed.payouts.ratio.ok()),
        fcf_payout_ratio: percent(computed.payouts.fcf),
        debt_to_equity: percent(ratio(figure(|f| f.total_debt), positive(equity))),
        current_ratio: percent(figure(|f| f.current_ratio)),
        interest_coverage: percent(figure(|f| f.interest_coverage)),
        beta: percent(figure(|f| f.beta).or(computed.returns.beta)),
        fiscal_period_end: reported.and_then(|figures| figures.fiscal_period_end),
        reported_currency: reported.and_then(|figures| figures.reported_currency.clone()),
        as_of: reported.map(|figures| figures.as_of),
        updated_at: computed.updated_at,
    })
}
