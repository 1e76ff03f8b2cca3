//! The stock row: headline figures, screeners' figures and the parts of the snapshot.

use rust_decimal::Decimal;

use super::next::next;
use super::quote::{annual_dividend, dividend_currency};
use super::rounded::percent;
use crate::measure::arithmetic::{self, change_percent};
use crate::measure::calendar::sessions_between;
use crate::measure::lists::is_king;
use crate::measure::measured::Measured;
use crate::measure::safety::is_suspect;
use crate::row::{
    Company, Coverage, DividendState, Figures, Identifiers, Json, LastDividend, Pricing, Quarantined, Quote,
    ScreenerFigures, Stock, StockDividends, StockRow,
};

/// The stock row of a measured security.
pub(super) fn stock(measured: &Measured<'_>, quote: &Quote, held: &[Quarantined]) -> Stock {
    let security = measured.basis.security();
    let pays = measured.income.status == DividendState::Active && measured.basis.is_listed;
    let listed = StockRow {
        symbol: quote.symbol.clone(),
        name: quote.name.clone(),
        exchange: quote.exchange.clone(),
        r#type: measured.basis.security_type,
        sector: quote.sector.clone(),
        industry: security.and_then(|security| security.industry.clone()),
        country: security.and_then(|security| security.country.clone()),
        currency: quote.currency.clone(),
        is_active: measured.basis.is_listed,
        delisted_on: security.and_then(|security| security.delisted_on).filter(|_| !measured.basis.is_listed),
        price: quote.price,
        price_date: quote.price_date,
        market_cap: quote.market_cap,
        pays_dividend: pays,
        dividend_yield: quote.dividend_yield,
        yield_basis: measured.income.yield_basis,
        annual_dividend: quote.annual_dividend,
        dividend_currency: quote.dividend_currency.clone(),
        frequency: Some(measured.basis.rhythm.frequency),
        next_ex_date: next(measured).map(|next| next.ex_date),
        increase_streak_years: Some(measured.progress.streak.years),
        held_rows: held.iter().map(|_| 1).sum(),
        updated_at: measured.updated_at,
    };
    Stock {
        listed,
        figures: figures(measured, quote),
        identifiers: Json(identifiers(measured)),
        company: Json(company(measured)),
        pricing: Json(pricing(quote)),
        dividends: Json(dividends(measured)),
        coverage: Json(coverage(measured)),
    }
}

fn figures(measured: &Measured<'_>, quote: &Quote) -> Figures {
    let [growth_1y, growth_3y, growth_5y, growth_10y] = measured.progress.growth.map(percent);
    let screened = ScreenerFigures {
        yield_ttm: percent(measured.income.yield_ttm),
        yield_forward: percent(measured.income.yield_forward),
        payout_ratio: percent(measured.payouts.ratio.ok()),
        growth_1y,
        growth_3y,
        growth_5y,
        growth_10y,
        payment_streak_years: Some(measured.progress.payment_years),
        pe_ratio: quote.pe_ratio,
        beta: percent(measured.returns.beta),
        volume: quote.volume,
        is_dividend_aristocrat: measured.verdicts.is_aristocrat,
        is_dividend_king: is_king(measured.progress.streak.years, &measured.basis.rules.lists),
    };
    let indexes = measured.basis.security().map(|security| security.indexes.clone());
    Figures {
        screened,
        price_age_sessions: quote.price_date.map(|date| sessions_between(date, measured.basis.as_of)),
        yield_suspect: is_suspect(measured.income.dividend_yield, &measured.basis.rules.safety),
        change_percent: quote.change_percent,
        change_percent_ytd: percent(change_this_year(measured)),
        indexes: Json(indexes.unwrap_or_default()),
    }
}

/// Since the last close of the year before the as-of date's, on one share basis.
fn change_this_year(measured: &Measured<'_>) -> Option<Decimal> {
    let series = measured.basis.series();
    let new_year = chrono::NaiveDate::from_ymd_opt(chrono::Datelike::year(&measured.basis.as_of), 1, 1)?;
    let start = series.before(new_year)?;
    change_percent(measured.basis.price?.close, series.close_on_basis(start, measured.basis.as_of))
}

fn identifiers(measured: &Measured<'_>) -> Identifiers {
    let security = measured.basis.security();
    let text = |field: fn(&crate::event::Security) -> &Option<String>| {
        security.and_then(|security| field(security).clone())
    };
    Identifiers {
        cik: text(|security| &security.cik),
        figi: text(|security| &security.figi),
        isin: text(|security| &security.isin),
        cusip: text(|security| &security.cusip),
        former_symbols: measured.basis.history.former_symbols.clone(),
    }
}

fn company(measured: &Measured<'_>) -> Company {
    let Some(security) = measured.basis.security() else { return Company::default() };
    Company {
        description: security.description.clone(),
        ceo: security.ceo.clone(),
        employees: security.employees,
        website: security.website.clone(),
        ipo_date: security.ipo_date,
    }
}

fn pricing(quote: &Quote) -> Pricing {
    Pricing {
        price: quote.price,
        open: quote.open,
        day_high: quote.day_high,
        day_low: quote.day_low,
        previous_close: quote.previous_close,
        change: quote.change,
        change_percent: quote.change_percent,
        volume: quote.volume,
        avg_volume_30d: quote.avg_volume_30d,
        sma_50: quote.sma_50,
        sma_200: quote.sma_200,
        year_high: quote.year_high,
        year_high_date: quote.year_high_date,
        year_low: quote.year_low,
        year_low_date: quote.year_low_date,
        price_date: quote.price_date,
    }
}

fn dividends(measured: &Measured<'_>) -> StockDividends {
    let payments = measured.basis.payments();
    let last = payments
        .iter()
        .rev()
        .find(|payment| payment.ex_date <= measured.basis.as_of && payment.class.in_ttm_total());
    StockDividends {
        yield_ttm: percent(measured.income.yield_ttm),
        yield_forward: percent(measured.income.yield_forward),
        annual_amount: annual_dividend(measured),
        currency: dividend_currency(measured),
        frequency: Some(measured.basis.rhythm.frequency),
        payout_ratio: percent(measured.payouts.ratio.ok()),
        growth_5y: percent(measured.progress.growth[2]),
        next: next(measured),
        last: last.map(|payment| LastDividend {
            ex_date: payment.ex_date,
            payment_date: payment.observation.record.payment_date,
            amount: arithmetic::amount(payment.amount),
            r#type: payment.observation.record.r#type,
        }),
    }
}

fn coverage(measured: &Measured<'_>) -> Coverage {
    let series = measured.basis.series();
    let payments = measured.basis.payments();
    Coverage {
        prices_from: (!series.bars.is_empty()).then(|| series.date(0)),
        prices_to: measured.basis.price.map(|price| price.date),
        dividends_from: payments.first().map(|payment| payment.ex_date),
        dividends_to: payments.last().map(|payment| payment.ex_date),
    }
}
