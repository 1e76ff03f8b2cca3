//! Dividends, splits and spin-offs of the securities of an owner, loaded from one snapshot.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use market::event::DividendType;
use market::metrics::prices::adjustment::{Ratio, SplitEvent, Splits};
use market::row::{DividendRow, SplitRow, SplitType, StockRow};
use rust_decimal::Decimal;

use super::position::{HOLDINGS, IncomeGap, remove_translations};
use super::tax::TaxRates;
use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};
use crate::render::envelope::Warning;

const RECEIVED: &str = include_str!("../../../queries/portfolio/received.sql");
const SPLITS: &str = include_str!("../../../queries/portfolio/splits.sql");

/// Dividends and splits of a security.
#[derive(Debug, Default)]
pub(super) struct DistributionEvents {
    /// Cash dividends by ex-date.
    pub(super) dividends: Vec<DividendRow>,
    pub(super) splits: Splits,
    /// Ex-dates of spin-offs in ascending order.
    pub(super) spin_offs: Vec<NaiveDate>,
    /// Tax rate in percent; `None` without tax.
    pub(super) tax_rate: Option<Decimal>,
}

/// Events of the securities, with their data version.
pub(super) struct LoadedEvents {
    pub(super) version: DataVersion,
    pub(super) events: HashMap<String, DistributionEvents>,
    /// Number of dividend rows.
    pub(super) row_count: usize,
    pub(super) gaps: Vec<IncomeGap>,
    /// Warning about the securities without a tax rate.
    pub(super) tax_warning: Option<Warning>,
}

/// Loads the dividends with payment dates from one day to another, at most `max_rows`, and all splits. `since` has the
/// securities with the first day on which they may be owned.
pub(super) async fn load_events(
    generation: &ServedGeneration,
    since: &BTreeMap<&str, NaiveDate>,
    [first, last]: [NaiveDate; 2],
    max_rows: i64,
    tax: Option<&TaxRates>,
) -> Result<LoadedEvents, QueryError> {
    let symbols: Vec<String> = since.keys().map(|symbol| (*symbol).to_owned()).collect();
    let days: Vec<NaiveDate> = since.values().copied().collect();
    let mut client = generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    let (version, stocks) =
        lookup::find_by_symbol::<StockRow>(generation, &transaction, HOLDINGS, &symbols).await?;
    let statement = transaction.prepare_cached(RECEIVED).await?;
    let dividends = transaction.query(&statement, &[&symbols, &days, &first, &last, &max_rows]).await?;
    let statement = transaction.prepare_cached(SPLITS).await?;
    let splits = transaction.query(&statement, &[&symbols]).await?;

    let mut events: HashMap<String, DistributionEvents> = HashMap::new();
    add_splits(&mut events, lookup::rows_with_symbol(&splits)?);
    let mut rows = lookup::rows_with_symbol(&dividends)?;
    remove_translations(&mut rows, |symbol| stocks.get(symbol)?.dividend_currency.as_ref());
    add_dividends(&mut events, rows);
    let (mut gaps, mut untaxed) = (Vec::new(), Vec::new());
    for stock in symbols.iter().filter_map(|symbol| stocks.get(symbol)) {
        gaps.extend(IncomeGap::of_unknown_dividends(stock));
        if let Some(tax) = tax {
            let rate = tax.rate(stock.country.as_deref());
            untaxed.extend(rate.is_none().then_some(stock.symbol.as_str()));
            events.entry(stock.symbol.clone()).or_default().tax_rate = Some(rate.unwrap_or_default());
        }
    }
    let tax_warning = untaxed_warning(&untaxed);
    Ok(LoadedEvents { version, events, row_count: dividends.len(), gaps, tax_warning })
}

fn add_splits(events: &mut HashMap<String, DistributionEvents>, rows: Vec<SplitRow>) {
    let mut splits: HashMap<String, Vec<SplitEvent>> = HashMap::new();
    for row in rows {
        if row.r#type == SplitType::SpinOff {
            events.entry(row.symbol.clone()).or_default().spin_offs.push(row.ex_date);
        }
        let ratio = Ratio { from: row.from_shares.0, to: row.to_shares.0 };
        let is_price_only = row.r#type.is_price_only();
        let event = SplitEvent { ex_date: row.ex_date, ratio, is_price_only };
        splits.entry(row.symbol).or_default().push(event);
    }
    for (symbol, splits) in splits {
        events.entry(symbol).or_default().splits = Splits::new(splits);
    }
}

fn add_dividends(events: &mut HashMap<String, DistributionEvents>, rows: Vec<DividendRow>) {
    for row in rows {
        let security = events.entry(row.symbol.clone()).or_default();
        match row.r#type {
            DividendType::SpinOff => security.spin_offs.push(row.ex_date),
            _ => security.dividends.push(row),
        }
    }
    for security in events.values_mut() {
        security.spin_offs.sort_unstable();
    }
}

/// Warning about securities without a tax rate; `None` if each has one.
fn untaxed_warning(symbols: &[&str]) -> Option<Warning> {
    let message = match symbols {
        [] => return None,
        [symbol] => format!("{symbol} has no tax rate; its tax is 0"),
        [first, ..] => {
            format!("{} securities have no tax rate, for example {first}; their tax is 0", symbols.len())
        }
    };
    Some(Warning { code: "no_tax_rate", message, param: Some("tax") })
}
