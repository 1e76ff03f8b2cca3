//! Fund data and holdings of the synthetic ETFs.

use market::event::{Frequency, SecurityType};

use super::csv_row::CsvRow;
use super::naming::SECTORS;
use super::price_walk::WalkEnd;
use super::security_plan::{SecurityPlan, sector_of};
use super::security_shape::shape_of;
use super::share_changes::{ShareChanges, scaled};

/// Columns that [`write_etf`] writes.
pub(super) const ETF_COLUMNS: &str = "symbol,as_of,issuer,asset_class,category,strategy,index_name,domicile,\
    inception_date,expense_ratio,aum,nav,nav_date,sec_yield_30d,is_leveraged,is_inverse,leverage_factor,\
    related_symbol,turnover";

/// Columns that [`write_holdings`] writes.
pub(super) const HOLDING_COLUMNS: &str =
    "etf_symbol,as_of,name,weight,symbol,asset_type,market_value,currency,sector,country";

/// Appends the `etf` row.
pub(super) fn write_etf(plan: &SecurityPlan<'_>, changes: &ShareChanges, ending: WalkEnd, out: &mut Vec<u8>) {
    let beta = plan.shape.beta;
    let (leveraged, inverse) = (beta.abs() > 100, beta < 0);
    let geared = leveraged || inverse;
    let bonds = plan.shape.frequency() == Some(Frequency::Monthly);
    let as_of = plan.market.sessions.day(plan.end);
    let flag = |set: bool| if set { "true" } else { "false" };
    CsvRow::new(out)
        .text(&plan.symbol)
        .date(as_of)
        .text("Synthetic Fund House")
        .text(if bonds { "Fixed Income" } else { "Equity" })
        .text(if plan.index == 0 { "Benchmark" } else { plan.shape.label })
        .text(if geared { "daily geared" } else { "passive" })
        .text(if bonds { "Synthetic Bond Index" } else { "Synthetic Market Index" })
        .text(plan.country())
        .date(plan.market.sessions.day(plan.start))
        .micros(if geared { 950_000 } else { 90_000 + (plan.index % 5) as i64 * 60_000 })
        .integer(assets(plan, changes, ending))
        .micros(ending.close * 10_000)
        .date(as_of)
        .micros((!geared).then_some(plan.shape.dividend_yield * 9_500))
        .text(flag(leveraged))
        .text(flag(inverse))
        .micros(geared.then_some(beta * 10_000))
        .text(if geared { "SPY" } else { "" })
        .integer(3 + (plan.index % 7) as i64 * 4)
        .end();
}

/// Total assets in the currency of the prices.
fn assets(plan: &SecurityPlan<'_>, changes: &ShareChanges, ending: WalkEnd) -> i64 {
    scaled(changes.share_count_at(plan.shares, plan.end), ending.close, 100)
}

/// Cash weight of a fund, in hundredths of a percent.
const CASH: i64 = 50;
/// Number of sessions between the two snapshots of a fund.
const SNAPSHOT_GAP: usize = 63;

/// Appends two complete snapshots of a fund's holdings, and returns the number of rows. The weights of the snapshots
/// differ.
pub(super) fn write_holdings(
    plan: &SecurityPlan<'_>,
    changes: &ShareChanges,
    ending: WalkEnd,
    out: &mut Vec<u8>,
) -> u64 {
    if !plan.shape.holdings {
        return 0;
    }
    let constituents = constituents(plan);
    let assets = assets(plan, changes, ending);
    let older = plan.end.saturating_sub(SNAPSHOT_GAP).max(plan.start);
    for (position, tilt) in [(older, 3), (plan.end, 1)] {
        let weights = weights(constituents.len() as i64, tilt);
        for (holding, weight) in constituents.iter().zip(weights) {
            position_row(plan, position, assets, weight, Some(holding), out);
        }
        position_row(plan, position, assets, CASH, None, out);
    }
    2 * (constituents.len() as u64 + 1)
}

fn position_row(
    fund: &SecurityPlan<'_>,
    at: usize,
    assets: i64,
    weight: i64,
    security: Option<&SecurityPlan<'_>>,
    out: &mut Vec<u8>,
) {
    let name = security.map_or_else(|| "Synthetic US Dollar Cash".to_owned(), SecurityPlan::name);
    CsvRow::new(out)
        .text(&fund.symbol)
        .date(fund.market.sessions.day(at))
        .text(&name)
        .micros(weight * 10_000)
        .text(security.map_or("", |security| security.symbol_at(at)))
        .text(if security.is_some() { "equity" } else { "cash" })
        .integer(assets / 10_000 * weight)
        .text(fund.currency())
        .text(security.map_or("", |security| SECTORS[security.sector].0))
        .text(security.map_or("US", SecurityPlan::country))
        .end();
}

/// Securities in a fund: the first suitable securities after the index of the fund. After the last index, the search
/// continues at index 0. A sector fund contains only securities of its sector.
fn constituents<'a>(fund: &SecurityPlan<'a>) -> Vec<SecurityPlan<'a>> {
    let market = fund.market;
    let (wanted, scanned) = if fund.index == 0 { (100, 5_000) } else { (30, 2_000) };
    let candidates = (1..market.symbols.min(scanned)).map(|step| (fund.index + step) % market.symbols);
    let fits = |index: &u64| {
        let shape = shape_of(*index);
        let abroad = fund.shape.label != "International Fund" || shape.kind == SecurityType::Adr;
        let in_sector = fund.shape.sector.is_none_or(|sector| sector_of(*index) == sector);
        shape.is_investable() && in_sector && abroad
    };
    candidates.filter(fits).take(wanted).map(|index| SecurityPlan::new(index, market)).collect()
}

/// Decreasing weights in hundredths of a percent. A larger `tilt` makes the weights more equal. The weights and the
/// cash weight add up to exactly 100 %.
fn weights(count: i64, tilt: i64) -> Vec<i64> {
    let shares: Vec<i64> = (0..count).map(|number| (count - number) + tilt * count).collect();
    let (total, whole) = (shares.iter().sum::<i64>().max(1), 10_000 - CASH);
    let mut weights: Vec<i64> = shares.iter().map(|share| share * whole / total).collect();
    let missing = whole - weights.iter().sum::<i64>();
    if let Some(first) = weights.first_mut() {
        *first += missing;
    }
    weights
}
