//! Fund rows of an ETF: details, holdings and weights. Module `records` chooses the records from which they are derived.
//!
//! The premium (positive) or discount (negative) is close / net asset value - 1, in percent. The close and the net
//! asset value must be of the same day.

mod records;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use records::{merged_record, preferred_by_date};
use rust_decimal::Decimal;

use super::arithmetic;
use super::context::DerivationContext;
use crate::decimal::ExactDecimal;
use crate::event::{Etf, Holding, HoldingSnapshot, Kind, SecurityType};
use crate::history::{History, Observation};
use crate::row::{CountryWeight, EtfRow, HoldingRow, JsonColumn, Metrics, SectorWeight, Stock};

/// Rows that only ETFs have: the fund details and the holdings.
#[derive(Debug, Clone, PartialEq)]
pub struct FundRows {
    /// Fund details.
    pub etf: EtfRow,
    /// Holdings of all snapshots, sorted by date, then by descending weight.
    pub holdings: Vec<HoldingRow>,
}

/// Fund rows of a history; `None` if the security is not an ETF.
pub fn fund(
    history: &History,
    context: &DerivationContext<'_>,
    stock: &Stock,
    metrics: &Metrics,
) -> Option<FundRows> {
    if stock.listed.r#type != SecurityType::Etf {
        return None;
    }
    let snapshots = preferred_by_date(&history.holdings, Kind::Holding, context, |snapshot| snapshot.as_of);
    let newest = snapshots.last_key_value().map(|(_, snapshot)| *snapshot);
    let etf = details(&merged_record(&history.etf, context), stock, metrics, newest);
    let holdings =
        snapshots.values().flat_map(|snapshot| positions(&stock.listed.symbol, snapshot)).collect();
    Some(FundRows { etf, holdings })
}

fn details(
    data: &Option<Etf>,
    stock: &Stock,
    metrics: &Metrics,
    newest: Option<&Observation<HoldingSnapshot>>,
) -> EtfRow {
    let text = |field: fn(&Etf) -> &Option<String>| data.as_ref().and_then(|etf| field(etf).clone());
    let number = |field: fn(&Etf) -> Option<Decimal>| data.as_ref().and_then(field);
    let holdings = newest.map(|snapshot| snapshot.record.holdings.as_slice()).unwrap_or_default();
    EtfRow {
        listed: stock.listed.clone(),
        issuer: text(|etf| &etf.issuer),
        asset_class: text(|etf| &etf.asset_class),
        category: text(|etf| &etf.category),
        strategy: text(|etf| &etf.strategy),
        index_name: text(|etf| &etf.index_name),
        domicile: text(|etf| &etf.domicile),
        inception_date: data.as_ref().and_then(|etf| etf.inception_date),
        expense_ratio: number(|etf| etf.expense_ratio).map(arithmetic::percent),
        aum: number(|etf| etf.aum).map(arithmetic::amount),
        nav: number(|etf| etf.nav).map(arithmetic::amount),
        nav_date: data.as_ref().and_then(|etf| etf.nav_date),
        premium_discount: premium(data.as_ref(), stock),
        distribution_yield_ttm: metrics.yield_ttm,
        sec_yield_30d: number(|etf| etf.sec_yield_30d).map(arithmetic::percent),
        is_leveraged: data.as_ref().and_then(|etf| etf.is_leveraged),
        is_inverse: data.as_ref().and_then(|etf| etf.is_inverse),
        leverage_factor: number(|etf| etf.leverage_factor).map(arithmetic::percent),
        related_symbol: data.as_ref().and_then(|etf| etf.related_symbol.as_ref()).map(ToString::to_string),
        holdings_count: newest.and_then(|snapshot| i32::try_from(snapshot.record.holdings.len()).ok()),
        holdings_as_of: newest.map(|snapshot| snapshot.record.as_of),
        top_10_weight: newest.and_then(|snapshot| top_weight(&snapshot.record.holdings)),
        turnover: number(|etf| etf.turnover).map(arithmetic::percent),
        sector_weights: JsonColumn(
            weights(holdings, |holding| &holding.sector)
                .map(|(sector, weight)| SectorWeight { sector, weight })
                .collect(),
        ),
        country_weights: JsonColumn(
            weights(holdings, |holding| &holding.country)
                .map(|(country, weight)| CountryWeight { country, weight })
                .collect(),
        ),
    }
}

/// Premium (positive) or discount (negative) of the close to the net asset value, percent. `None` if the close or the
/// net asset value is unknown, or if the two are of different days.
fn premium(data: Option<&Etf>, stock: &Stock) -> Option<ExactDecimal> {
    let etf = data?;
    let nav = arithmetic::keep_positive(etf.nav)?;
    let same_day = stock.listed.price_date == etf.nav_date;
    let close = stock.listed.price.filter(|_| same_day)?;
    let ratio = close.0.checked_div(nav)?.checked_sub(Decimal::ONE)?;
    Some(arithmetic::percent(ratio.checked_mul(Decimal::ONE_HUNDRED)?))
}

fn by_weight(holdings: &[Holding]) -> Vec<&Holding> {
    let mut sorted: Vec<&Holding> = holdings.iter().collect();
    sorted.sort_by_key(|holding| (Reverse(holding.weight), holding.symbol.clone(), holding.name.clone()));
    sorted
}

/// Total weight of the ten largest holdings, percent; `None` without holdings.
fn top_weight(holdings: &[Holding]) -> Option<ExactDecimal> {
    if holdings.is_empty() {
        return None;
    }
    let sum = by_weight(holdings)
        .iter()
        .take(10)
        .try_fold(Decimal::ZERO, |sum, holding| sum.checked_add(holding.weight));
    sum.map(arithmetic::percent)
}

/// Total weight of each group of holdings, for example of each sector. `name` returns the name of the group of a
/// holding. Holdings without a group are left out. The group with the largest weight is first.
fn weights<'a>(
    holdings: &'a [Holding],
    name: impl Fn(&'a Holding) -> &'a Option<String>,
) -> impl Iterator<Item = (String, ExactDecimal)> {
    let mut sums: BTreeMap<&str, Decimal> = BTreeMap::new();
    for holding in holdings {
        if let Some(name) = name(holding) {
            let sum = sums.entry(name).or_default();
            *sum = sum.checked_add(holding.weight).unwrap_or(*sum);
        }
    }
    let mut sorted: Vec<(String, Decimal)> =
        sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sorted.into_iter().map(|(name, sum)| (name, arithmetic::percent(sum)))
}

fn positions(etf_symbol: &str, snapshot: &Observation<HoldingSnapshot>) -> Vec<HoldingRow> {
    let rows =
        by_weight(&snapshot.record.holdings).into_iter().zip(1i32..).map(|(holding, rank)| HoldingRow {
            etf_symbol: etf_symbol.to_owned(),
            rank,
            symbol: holding.symbol.as_ref().map(ToString::to_string),
            name: holding.name.clone(),
            asset_type: holding.asset_type.clone(),
            weight: arithmetic::percent(holding.weight),
            shares: holding.shares.map(arithmetic::amount),
            market_value: holding.market_value.map(arithmetic::amount),
            currency: holding.currency.clone(),
            isin: holding.isin.clone(),
            cusip: holding.cusip.clone(),
            figi: holding.figi.clone(),
            sector: holding.sector.clone(),
            country: holding.country.clone(),
            as_of: snapshot.record.as_of,
        });
    rows.collect()
}
