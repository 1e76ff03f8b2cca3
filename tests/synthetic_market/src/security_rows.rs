//! CSV rows of one generated security: its reference data (`securities.csv`) and its company figures
//! (`fundamentals.csv`).

use chrono::{Datelike, Days, NaiveDate};
use market::event::SecurityType;
use market::identity::SecurityAddress;

use super::csv_row::CsvRow;
use super::naming::SECTORS;
use super::price_walk::WalkEnd;
use super::security_plan::SecurityPlan;
use super::share_changes::{ShareChanges, scaled};

/// Appends the row of the security to the text of `securities.csv`.
pub(super) fn write_security(plan: &SecurityPlan<'_>, out: &mut Vec<u8>) {
    let sessions = &plan.market.sessions;
    let fund = plan.shape.kind == SecurityType::Etf;
    let employer =
        !matches!(plan.shape.kind, SecurityType::Etf | SecurityType::Preferred | SecurityType::ClosedEndFund);
    let former = plan.former.as_ref().map_or(String::new(), |(former, until)| {
        format!("{former}@{}..{}", sessions.day(plan.start), sessions.day(*until))
    });
    CsvRow::new(out)
        .text(&plan.symbol)
        .text(&plan.name())
        .text(plan.shape.kind.as_str())
        .text(plan.exchange())
        .text(plan.currency())
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
        .text(&isin(plan))
        .text(&former)
        .text(if plan.shape.sp500 { "sp500" } else { "" })
        .text(if plan.is_active() { "active" } else { "delisted" })
        .date((!plan.is_active()).then(|| sessions.day(plan.end)))
        .date(plan.suspension_announced_on())
        .integer(plan.streak_seed.map(|(years, _)| i64::from(years)))
        .integer(plan.streak_seed.map(|(_, through)| i64::from(through)))
        .end();
}

/// ISIN with the country code `ZZ`, which no country has, and the index of the security.
fn isin(plan: &SecurityPlan<'_>) -> String {
    if let Some(familiar) = plan.familiar.filter(|familiar| !familiar.isin.is_empty()) {
        return familiar.isin.to_owned();
    }
    let checked = (0..10).map(|digit| format!("ZZ{:09}{digit}", plan.index));
    checked.into_iter().find(|isin| SecurityAddress::parse(isin).is_ok()).unwrap_or_default()
}

/// Columns that [`write_security`] writes.
pub(super) const SECURITY_COLUMNS: &str = "symbol,name,type,exchange,currency,sector,industry,country,description,\
    website,employees,ipo_date,isin,former_symbols,indexes,status,delisted_on,dividend_suspended_on,streak_seed_years,\
    streak_seed_through";

/// Columns that [`write_fundamentals`] writes.
pub(super) const FUNDAMENTALS_COLUMNS: &str = "symbol,as_of,eps_ttm,eps_as_of,ffo_per_share_ttm,shares_outstanding,\
    shares_as_of,float_shares,market_cap,float_market_cap,avg_daily_value,revenue_ttm,net_income_ttm,\
    operating_cash_flow_ttm,capital_expenditure_ttm,free_cash_flow_ttm,dividends_paid_ttm,book_value_per_share,\
    total_debt,total_equity,enterprise_value,gross_margin,operating_margin,net_margin,roe,current_ratio,\
    interest_coverage,beta,fiscal_period_end,reported_currency";

/// Appends the row of the security to the text of `fundamentals.csv`. `ending` contains the last close, and the average
/// value of the shares traded per day.
pub(super) fn write_fundamentals(
    plan: &SecurityPlan<'_>,
    changes: &ShareChanges,
    ending: WalkEnd,
    out: &mut Vec<u8>,
) {
    // Per-share figures are in millionths of the reported currency, on the share basis of the security's last session.
    let as_of = plan.market.sessions.day(plan.end);
    let reported = |dollars| plan.market.rates.convert_dollars(dollars, plan.reported_currency(), as_of);
    let year = plan.year(as_of.year());
    let [value, dividend] =
        [year.value, year.rate].map(|amount| reported(changes.per_share_at(amount, plan.end)));
    let earnings = match (plan.shape.loss, plan.shape.payout) {
        (true, _) => -value / 25,
        (false, 0) => value / 18,
        (false, payout) => dividend * 100 / payout,
    };
    let cash_flow = if plan.shape.loss { -value / 40 } else { earnings / 10 * 9 };
    let book = value / 3;
    let quarter = quarter_end(as_of);
    let reit = plan.shape.kind == SecurityType::Reit;
    let shares = changes.share_count_at(plan.shares, plan.end);
    let float = shares / 100 * 85;
    let whole = |micros: i64| scaled(shares, micros, 1_000_000);
    let cap = reported(scaled(shares, ending.close, 100));
    let (income, equity, free_cash) = (whole(earnings), whole(book), whole(cash_flow));
    let revenue = income.abs() * 8;
    let (capital, debt) = (revenue / 20, equity / 5 * 4);
    let margin = if plan.shape.loss { -12_500_000 } else { 12_500_000 };
    CsvRow::new(out)
        .text(&plan.symbol)
        .date(as_of)
        .micros(earnings / 100 * 100)
        .date(quarter)
        .micros(reit.then_some(dividend / 75 * 100))
        .integer(shares)
        .date(as_of)
        .integer(float)
        .integer(cap)
        .integer(cap / 100 * 85)
        .integer(reported(ending.daily_value / 100))
        .integer(revenue)
        .integer(income)
        .integer(free_cash + capital)
        .integer(capital)
        .integer(free_cash)
        .integer(whole(dividend))
        .micros(book / 10_000 * 10_000)
        .integer(debt)
        .integer(equity)
        .integer(cap + debt)
        .micros(42_000_000)
        .micros(margin / 2 * 3)
        .micros(margin)
        .micros(scaled(earnings, 100_000_000, book.max(1)) / 10_000 * 10_000)
        .micros(1_400_000)
        .micros(if plan.shape.loss { -2_000_000 } else { 7_500_000 })
        .micros(plan.shape.beta * 10_000)
        .date(quarter)
        .text(plan.reported_currency())
        .end();
}

/// Last day of the calendar quarter before the quarter of `date`.
fn quarter_end(date: NaiveDate) -> NaiveDate {
    let month = (date.month() - 1) / 3 * 3 + 1;
    let next = NaiveDate::from_ymd_opt(date.year(), month, 1).unwrap_or(date);
    next - Days::new(1)
}
