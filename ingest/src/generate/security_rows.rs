//! Reference row and company figures of one security.

use chrono::{Datelike, Days, NaiveDate};
use market::event::SecurityType;

use super::csv_row::CsvRow;
use super::naming::SECTORS;
use super::price_walk::WalkEnd;
use super::security_plan::SecurityPlan;
use super::share_changes::{ShareChanges, scaled};
use super::synthetic_market::SyntheticMarket;

/// Appends the `security` row.
pub(super) fn write_security(plan: &SecurityPlan, market: &SyntheticMarket, out: &mut Vec<u8>) {
    let sessions = &market.sessions;
    let fund = plan.shape.kind == SecurityType::Etf;
    let employer =
        !matches!(plan.shape.kind, SecurityType::Etf | SecurityType::Preferred | SecurityType::ClosedEndFund);
    let former = plan.former_symbol(market).map_or(String::new(), |former| {
        let day = |date: Option<NaiveDate>| date.map_or(String::new(), |date| date.to_string());
        format!("{}@{}..{}", former.symbol, day(former.from), day(former.to))
    });
    CsvRow::new(out)
        .text(&plan.symbol)
        .text(&plan.name())
        .text(plan.shape.kind.as_str())
        .text(plan.exchange())
        .text("USD")
        .text(if fund { "" } else { SECTORS[plan.sector].0 })
        .text(if fund { "" } else { plan.industry() })
        .text(plan.country())
        .text(match plan.familiar {
            None => "Synthetic security made by a generator: no real company and no real price.",
            Some(_) => "Synthetic figures under a well-known ticker: no real price and no real dividend.",
        })
        .text(&format!("https://{}.example", plan.symbol.to_lowercase().replace('.', "-")))
        .integer(employer.then_some(plan.shares / 20_000))
        .date(sessions.day(plan.start))
        .text(&former)
        .text(if plan.shape.sp500 { "sp500" } else { "" })
        .text(if plan.is_active() { "active" } else { "delisted" })
        .date((!plan.is_active()).then(|| sessions.day(plan.end)))
        .date(plan.suspension_announced_on(market))
        .integer(plan.streak_seed.map(|(years, _)| i64::from(years)))
        .integer(plan.streak_seed.map(|(_, through)| i64::from(through)))
        .end();
}

/// Columns that [`write_security`] writes.
pub(super) const SECURITY_COLUMNS: &str = "symbol,name,type,exchange,currency,sector,industry,country,description,\
    website,employees,ipo_date,former_symbols,indexes,status,delisted_on,dividend_suspended_on,streak_seed_years,\
    streak_seed_through";

/// Columns that [`write_fundamentals`] writes.
pub(super) const FUNDAMENTALS_COLUMNS: &str = "symbol,as_of,eps_ttm,eps_as_of,ffo_per_share_ttm,shares_outstanding,\
    shares_as_of,float_shares,market_cap,float_market_cap,avg_daily_value,revenue_ttm,net_income_ttm,\
    operating_cash_flow_ttm,capital_expenditure_ttm,free_cash_flow_ttm,dividends_paid_ttm,book_value_per_share,\
    total_debt,total_equity,enterprise_value,gross_margin,operating_margin,net_margin,roe,current_ratio,\
    interest_coverage,beta,fiscal_period_end,reported_currency";

/// Per-share figures in millionths of a dollar, on the share basis of the last session.
struct PerShare {
    earnings: i64,
    dividend: i64,
    cash_flow: i64,
    book: i64,
}

fn per_share(plan: &SecurityPlan, market: &SyntheticMarket, changes: &ShareChanges) -> PerShare {
    let year = plan.year(market.sessions.day(plan.end).year());
    let basis = |amount: i64| changes.per_share_at(amount, plan.end);
    let (value, rate) = (basis(year.value), basis(year.rate));
    let earnings = match (plan.shape.loss, plan.shape.payout) {
        (true, _) => -value / 25,
        (false, 0) => value / 18,
        (false, payout) => rate * 100 / payout,
    };
    let cash_flow = if plan.shape.loss { -value / 40 } else { earnings / 10 * 9 };
    PerShare { earnings, dividend: rate, cash_flow, book: value / 3 }
}

/// Appends the `fundamentals` row.
pub(super) fn write_fundamentals(
    plan: &SecurityPlan,
    market: &SyntheticMarket,
    changes: &ShareChanges,
    ending: WalkEnd,
    out: &mut Vec<u8>,
) {
    let each = per_share(plan, market, changes);
    let as_of = market.sessions.day(plan.end);
    let quarter = quarter_end(as_of);
    let reit = plan.shape.kind == SecurityType::Reit;
    let shares = changes.share_count_at(plan.shares, plan.end);
    let float = shares / 100 * 85;
    let whole = |micros: i64| scaled(shares, micros, 1_000_000);
    let cap = scaled(shares, ending.close, 100);
    let (income, equity, free_cash) = (whole(each.earnings), whole(each.book), whole(each.cash_flow));
    let revenue = income.abs() * 8;
    let (capital, debt) = (revenue / 20, equity / 5 * 4);
    let margin = if plan.shape.loss { -12_500_000 } else { 12_500_000 };
    CsvRow::new(out)
        .text(&plan.symbol)
        .date(as_of)
        .micros(each.earnings / 100 * 100)
        .date(quarter)
        .micros(reit.then_some(each.dividend / 75 * 100))
        .integer(shares)
        .date(as_of)
        .integer(float)
        .integer(cap)
        .integer(cap / 100 * 85)
        .integer(ending.daily_value / 100)
        .integer(revenue)
        .integer(income)
        .integer(free_cash + capital)
        .integer(capital)
        .integer(free_cash)
        .integer(whole(each.dividend))
        .micros(each.book / 10_000 * 10_000)
        .integer(debt)
        .integer(equity)
        .integer(cap + debt)
        .micros(42_000_000)
        .micros(margin / 2 * 3)
        .micros(margin)
        .micros(scaled(each.earnings, 100_000_000, each.book.max(1)) / 10_000 * 10_000)
        .micros(1_400_000)
        .micros(if plan.shape.loss { -2_000_000 } else { 7_500_000 })
        .micros(plan.shape.beta * 10_000)
        .date(quarter)
        .text("USD")
        .end();
}

/// Last day of the newest quarter that ended on or before a date.
fn quarter_end(date: NaiveDate) -> NaiveDate {
    let month = (date.month() - 1) / 3 * 3 + 1;
    let next = NaiveDate::from_ymd_opt(date.year(), month, 1).unwrap_or(date);
    next - Days::new(1)
}
