//! An ETF's details and positions, out of every observation of them.
//!
//! Fund data: the newest record up to the as-of date, of equal dates the preferred source; what it lacks comes from
//! earlier records of the same source. Positions: one whole snapshot per date, never merged row by row. Premium or
//! discount: close over net asset value of the same day, less one, in percent.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::arithmetic;
use super::market::Market;
use super::policy::{Candidate, preference};
use crate::event::{Action, Etf, Holding, HoldingSnapshot, Kind, SecurityType};
use crate::history::{History, Observation};
use crate::row::{CountryWeight, EtfRow, HoldingRow, Json, Metrics, SectorWeight, Stock};
use crate::value::Exact;

/// What is served about a fund beside its rows as a security.
#[derive(Debug, Clone, PartialEq)]
pub struct Fund {
    /// The fund's row.
    pub etf: EtfRow,
    /// Its newest snapshot, the largest weight first.
    pub holdings: Vec<HoldingRow>,
}

/// The fund of a history; `None` when the security is no ETF.
pub fn fund(history: &History, market: &Market<'_>, stock: &Stock, metrics: &Metrics) -> Option<Fund> {
    if stock.r#type != SecurityType::Etf {
        return None;
    }
    let records = chosen(&history.etf, Kind::Etf, market, |etf| etf.as_of);
    let snapshots = chosen(&history.holdings, Kind::Holding, market, |snapshot| snapshot.as_of);
    let newest = snapshots.last_key_value().map(|(_, snapshot)| *snapshot);
    let etf = details(&data(&records), stock, metrics, newest);
    let holdings = snapshots.values().flat_map(|snapshot| positions(&stock.symbol, snapshot)).collect();
    Some(Fund { etf, holdings })
}

/// The live observation of each date, by the preferred source of those that have one.
fn chosen<'a, T>(
    observations: &'a [Observation<T>],
    kind: Kind,
    market: &Market<'_>,
    date: impl Fn(&T) -> NaiveDate,
) -> BTreeMap<NaiveDate, &'a Observation<T>> {
    let mut newest: BTreeMap<(&str, NaiveDate), &Observation<T>> = BTreeMap::new();
    for observation in observations.iter().filter(|o| date(&o.record) <= market.as_of) {
        let slot = newest.entry((&observation.source, date(&observation.record))).or_insert(observation);
        if observation.version(0) > slot.version(0) {
            *slot = observation;
        }
    }
    let mut chosen: BTreeMap<NaiveDate, &Observation<T>> = BTreeMap::new();
    for ((_, day), observation) in newest.into_iter().filter(|(_, o)| o.action == Action::Put) {
        let candidate = |o: &'a Observation<T>| Candidate { source: &o.source, observed_at: o.observed_at };
        let order = |o: &'a Observation<T>| preference(market.policy, kind, candidate(o), day);
        let slot = chosen.entry(day).or_insert(observation);
        if order(observation) < order(slot) {
            *slot = observation;
        }
    }
    chosen
}

/// The newest record, with what it lacks from earlier ones of its source.
fn data(records: &BTreeMap<NaiveDate, &Observation<Etf>>) -> Option<Etf> {
    let (_, newest) = records.last_key_value()?;
    let mut merged = Map::new();
    for record in records.values().rev().filter(|record| record.source == newest.source) {
        if let Ok(Value::Object(fields)) = serde_json::to_value(&record.record) {
            fields.into_iter().for_each(|(name, value)| {
                merged.entry(name).or_insert(value);
            });
        }
    }
    serde_json::from_value(Value::Object(merged)).ok()
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
        symbol: stock.symbol.clone(),
        name: stock.name.clone(),
        exchange: stock.exchange.clone(),
        r#type: stock.r#type,
        sector: stock.sector.clone(),
        industry: stock.industry.clone(),
        country: stock.country.clone(),
        currency: stock.currency.clone(),
        is_active: stock.is_active,
        delisted_on: stock.delisted_on,
        price: stock.price,
        price_date: stock.price_date,
        market_cap: stock.market_cap,
        pays_dividend: stock.pays_dividend,
        dividend_yield: stock.dividend_yield,
        yield_basis: stock.yield_basis,
        annual_dividend: stock.annual_dividend,
        dividend_currency: stock.dividend_currency.clone(),
        frequency: stock.frequency,
        next_ex_date: stock.next_ex_date,
        increase_streak_years: stock.increase_streak_years,
        held_rows: stock.held_rows,
        updated_at: stock.updated_at,
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
        nav_date: data.as_ref().and_then(|etf| etf.nav_date.or(etf.nav.map(|_| etf.as_of))),
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
        sector_weights: Json(
            weights(holdings, |holding| &holding.sector)
                .map(|(sector, weight)| SectorWeight { sector, weight })
                .collect(),
        ),
        country_weights: Json(
            weights(holdings, |holding| &holding.country)
                .map(|(country, weight)| CountryWeight { country, weight })
                .collect(),
        ),
    }
}

/// Only a close of the net asset value's own day can be compared with it.
fn premium(data: Option<&Etf>, stock: &Stock) -> Option<Exact> {
    let etf = data?;
    let nav = etf.nav.filter(|nav| *nav > Decimal::ZERO)?;
    let same_day = stock.price_date == etf.nav_date.or(Some(etf.as_of));
    let close = stock.price.filter(|_| same_day)?;
    let ratio = close.0.checked_div(nav)?.checked_sub(Decimal::ONE)?;
    Some(arithmetic::percent(ratio.checked_mul(Decimal::ONE_HUNDRED)?))
}

fn by_weight(holdings: &[Holding]) -> Vec<&Holding> {
    let mut sorted: Vec<&Holding> = holdings.iter().collect();
    sorted.sort_by_key(|holding| (Reverse(holding.weight), holding.symbol.clone(), holding.name.clone()));
    sorted
}

/// The weight of the ten largest positions; `None` without any.
fn top_weight(holdings: &[Holding]) -> Option<Exact> {
    if holdings.is_empty() {
        return None;
    }
    let sum = by_weight(holdings)
        .iter()
        .take(10)
        .try_fold(Decimal::ZERO, |sum, holding| sum.checked_add(holding.weight));
    sum.map(arithmetic::percent)
}

/// Sums of weights by a name, largest first; positions without it are left out.
fn weights<'a>(
    holdings: &'a [Holding],
    name: impl Fn(&'a Holding) -> &'a Option<String>,
) -> impl Iterator<Item = (String, Exact)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(name: &str, weight: Decimal, sector: Option<&str>) -> Holding {
        let record = serde_json::json!({ "name": name, "weight": weight, "sector": sector });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn weights_are_summed_by_name_and_the_ten_largest_counted() {
        let mut holdings: Vec<Holding> = (0..11).map(|_| holding("Small", dec!(5), Some("Energy"))).collect();
        holdings.push(holding("Large", dec!(30.12345), Some("Health Care")));
        holdings.push(holding("Cash", dec!(14.5), None));
        assert_eq!(top_weight(&holdings), Some(Exact::from(dec!(84.6235))));
        assert_eq!(top_weight(&[]), None);
        let sectors: Vec<(String, Exact)> = weights(&holdings, |holding| &holding.sector).collect();
        let expected = [("Energy", dec!(55)), ("Health Care", dec!(30.1235))];
        assert_eq!(sectors, expected.map(|(name, weight)| (name.to_owned(), Exact::from(weight))));
    }

    #[test]
    fn positions_are_ranked_by_weight_then_name() {
        let holdings =
            [holding("B", dec!(1), None), holding("A", dec!(1), None), holding("C", dec!(2), None)];
        let names: Vec<&str> = by_weight(&holdings).iter().map(|holding| holding.name.as_str()).collect();
        assert_eq!(names, ["C", "A", "B"]);
    }
}
