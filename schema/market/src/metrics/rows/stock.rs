//! Stock row of a security. It contains the fields of lists and screeners. It also contains the parts of the security's
//! snapshot: company, prices, dividends and data coverage.

use rust_decimal::Decimal;

use super::next::{next_dividend, percent};
use crate::metrics::arithmetic;
use crate::metrics::arithmetic::change_percent;
use crate::metrics::calendar::sessions_between;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::grower_lists::is_king;
use crate::metrics::dividends::safety::is_suspect;
use crate::row::{
    Company, Coverage, DividendState, Identifiers, JsonColumn, LastDividend, Pricing, Quarantined, Quote,
    ScreenerFigures, Stock, StockDividends, StockFigures, StockRow,
};

pub(crate) fn stock(computed: &ComputedMetrics<'_>, quote: &Quote, quarantined: &[Quarantined]) -> Stock {
    let security = computed.inputs.security();
    let status = computed.income.status;
    let pays = (status != DividendState::Unknown)
        .then_some(status == DividendState::Active && computed.inputs.is_listed);
    let listed = StockRow {
        symbol: quote.symbol.clone(),
        name: quote.name.clone(),
        exchange: quote.exchange.clone(),
        r#type: computed.inputs.security_type,
        sector: quote.sector.clone(),
        industry: security.and_then(|security| security.industry.clone()),
        country: security.and_then(|security| security.country.clone()),
        currency: quote.currency.clone(),
        is_active: computed.inputs.is_listed,
        delisted_on: security
            .and_then(|security| security.delisted_on)
            .filter(|_| !computed.inputs.is_listed),
        price: quote.price,
        price_date: quote.price_date,
        market_cap: quote.market_cap,
        reporting_market_cap: quote
            .market_cap
            .and_then(|cap| computed.inputs.in_reporting_currency(cap, &quote.currency)),
        pays_dividend: pays,
        dividend_yield: quote.dividend_yield,
        yield_basis: computed.income.yield_basis,
        annual_dividend: quote.annual_dividend,
        dividend_currency: quote.dividend_currency.clone(),
        frequency: Some(computed.frequency()),
        next_ex_date: next_dividend(computed).map(|next| next.ex_date),
        increase_streak_years: Some(computed.growth.streak.years),
        held_rows: quarantined.iter().map(|_| 1).sum(),
        updated_at: computed.updated_at,
    };
    Stock {
        listed,
        figures: figures(computed, quote),
        identifiers: JsonColumn(identifiers(computed)),
        company: JsonColumn(company(computed)),
        pricing: JsonColumn(pricing(quote)),
        dividends: JsonColumn(dividends(computed, quote)),
        coverage: JsonColumn(coverage(computed)),
    }
}

fn figures(computed: &ComputedMetrics<'_>, quote: &Quote) -> StockFigures {
    let [growth_1y, growth_3y, growth_5y, growth_10y] = computed.growth.growth.map(percent);
    let screened = ScreenerFigures {
        yield_ttm: percent(computed.income.yield_ttm),
        yield_forward: percent(computed.income.yield_forward),
        payout_ratio: percent(computed.payouts.ratio.ok()),
        growth_1y,
        growth_3y,
        growth_5y,
        growth_10y,
        payment_streak_years: Some(computed.growth.payment_years),
        pe_ratio: quote.pe_ratio,
        beta: percent(computed.returns.beta),
        volume: quote.volume,
        is_dividend_aristocrat: computed.classification.is_aristocrat,
        is_dividend_king: is_king(computed.growth.streak.years, &computed.inputs.rules.lists),
    };
    let indexes = computed.inputs.security().map(|security| security.indexes.clone());
    StockFigures {
        screened,
        price_age_sessions: quote.price_date.map(|date| sessions_between(date, computed.inputs.as_of)),
        yield_suspect: is_suspect(computed.income.dividend_yield, &computed.inputs.rules.safety),
        change_percent: quote.change_percent,
        change_percent_ytd: percent(change_this_year(computed)),
        indexes: JsonColumn(indexes.unwrap_or_default()),
    }
}

/// Change from the last close of the previous year to the latest price, percent. Both prices are adjusted for splits up
/// to the as-of date. `None` if one of them is unknown.
fn change_this_year(computed: &ComputedMetrics<'_>) -> Option<Decimal> {
    let series = computed.inputs.series();
    let new_year = chrono::NaiveDate::from_ymd_opt(chrono::Datelike::year(&computed.inputs.as_of), 1, 1)?;
    let start = series.before(new_year)?;
    change_percent(computed.inputs.price?.close, series.close_on_basis(start, computed.inputs.as_of))
}

fn identifiers(computed: &ComputedMetrics<'_>) -> Identifiers {
    let security = computed.inputs.security();
    let text = |field: fn(&crate::event::Security) -> &Option<String>| {
        security.and_then(|security| field(security).clone())
    };
    Identifiers {
        cik: text(|security| &security.cik),
        figi: text(|security| &security.figi),
        isin: text(|security| &security.isin),
        cusip: text(|security| &security.cusip),
        former_symbols: computed.inputs.history.former_symbols.clone(),
    }
}

fn company(computed: &ComputedMetrics<'_>) -> Company {
    let Some(security) = computed.inputs.security() else { return Company::default() };
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

fn dividends(computed: &ComputedMetrics<'_>, quote: &Quote) -> StockDividends {
    let payments = computed.inputs.payments();
    let last = payments
        .iter()
        .rev()
        .find(|payment| payment.ex_date <= computed.inputs.as_of && payment.class.in_ttm_total());
    StockDividends {
        yield_ttm: percent(computed.income.yield_ttm),
        yield_forward: percent(computed.income.yield_forward),
        annual_amount: quote.annual_dividend,
        currency: quote.dividend_currency.clone(),
        frequency: Some(computed.frequency()),
        payout_ratio: percent(computed.payouts.ratio.ok()),
        growth_5y: percent(computed.growth.growth[2]),
        next: next_dividend(computed),
        last: last.map(|payment| LastDividend {
            ex_date: payment.ex_date,
            payment_date: payment.observation.record.payment_date,
            amount: arithmetic::amount(payment.amount_on_ex_date()),
            r#type: payment.observation.record.r#type,
        }),
    }
}

fn coverage(computed: &ComputedMetrics<'_>) -> Coverage {
    let series = computed.inputs.series();
    let payments = computed.inputs.payments();
    Coverage {
        prices_from: (!series.bars.is_empty()).then(|| series.date(0)),
        prices_to: computed.inputs.price.map(|price| price.date),
        dividends_from: payments.first().map(|payment| payment.ex_date),
        dividends_to: payments.last().map(|payment| payment.ex_date),
    }
}
