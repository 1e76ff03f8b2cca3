//! Dividends, splits and spin-offs of the securities of an owner, loaded from one snapshot.
//!
//! Withholding tax at the rates of the request, by the security's country of domicile.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use market::decimal::{parse_decimal, round};
use market::event::DividendType;
use market::metrics::prices::adjustment::{Ratio, SplitEvent, Splits};
use market::reference::Country;
use market::row::{DividendRow, SplitRow, SplitType, StockRow};
use rust_decimal::Decimal;

use super::position::{HOLDINGS, IncomeGap, remove_translations};
use crate::parameters::ParameterReader;
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

/// Maximum length of the tax rates, in characters.
const MAX_LENGTH: usize = 1_024;
/// Key of the rate for all other countries.
const OTHERS: &str = "*";
/// Currencies without a minor unit, and currencies whose minor unit is a thousandth (ISO 4217).
const NO_PLACES: [&str; 16] = [
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF",
    "XPF",
];
const THREE_PLACES: [&str; 7] = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"];

/// Tax rates by country code, in percent.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaxRates(BTreeMap<String, Decimal>);

impl ParameterReader<'_> {
    /// Reads `tax`: comma-separated `COUNTRY:PERCENT`.
    pub(super) fn read_tax_rates(&mut self) -> Option<TaxRates> {
        let text = self.read_text("tax", MAX_LENGTH)?;
        let rates = TaxRates::parse(&text);
        rates.map_err(|error| self.add_error("tax", error, None)).ok()
    }
}

impl TaxRates {
    fn parse(text: &str) -> Result<Self, String> {
        let mut rates = BTreeMap::new();
        for item in text.split(',').map(str::trim) {
            let error = || format!("has an item {item:?} that is not like US:15 or *:0");
            let (name, percent) = item.split_once(':').ok_or_else(error)?;
            let country = Country::find(name).map(|country| country.code).filter(|_| name.len() == 2);
            let key = if name == OTHERS { OTHERS } else { country.ok_or_else(error)? };
            let percent = parse_decimal(percent).map_err(|_| error())?.value;
            if !(Decimal::ZERO..=Decimal::ONE_HUNDRED).contains(&percent) {
                return Err(format!("has an item {item:?} that is not from 0 to 100 percent"));
            }
            if rates.insert(key.to_owned(), percent).is_some() {
                return Err(format!("has more than one rate for {key}"));
            }
        }
        Ok(Self(rates))
    }

    /// Tax rate of a country, in percent; `None` if the request has no rate for it.
    pub(super) fn rate(&self, country: Option<&str>) -> Option<Decimal> {
        country.and_then(|country| self.0.get(country)).or_else(|| self.0.get(OTHERS)).copied()
    }
}

/// Decimal places of the minor unit of a currency.
pub(super) fn minor_places(currency: &str) -> u32 {
    match currency {
        currency if NO_PLACES.contains(&currency) => 0,
        currency if THREE_PLACES.contains(&currency) => 3,
        _ => 2,
    }
}

/// Tax on an amount, rounded half away from zero to the minor unit of the currency.
pub(super) fn tax_on(gross: Decimal, percent: Decimal, currency: &str) -> Decimal {
    round(gross * percent / Decimal::ONE_HUNDRED, minor_places(currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_has_its_own_rate_or_that_of_all_others() {
        let rates = TaxRates::parse("US:15, ch:35,*:0.5").expect("rates");
        for (country, rate) in
            [(Some("US"), "15"), (Some("CH"), "35"), (Some("Nowhere"), "0.5"), (None, "0.5")]
        {
            assert_eq!(rates.rate(country), rate.parse().ok(), "{country:?}");
        }
        assert_eq!(TaxRates::parse("US:15").expect("rates").rate(None), None);
        for text in ["US", "US:", "US:x", "US:101", "US:-1", "USA:1", "XX:1", "US:1,US:2", ",US:1", "US:1:2"]
        {
            assert!(TaxRates::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tax_is_rounded_half_away_from_zero_to_the_minor_unit() {
        for (gross, currency, tax) in [
            ("0.1", "USD", "0.02"),
            ("-0.1", "USD", "-0.02"),
            ("0.09", "USD", "0.01"),
            ("10", "JPY", "2"),
            ("9", "JPY", "1"),
            ("0.01", "KWD", "0.002"),
        ] {
            let number = |text: &str| text.parse::<Decimal>().expect("a number");
            assert_eq!(tax_on(number(gross), number("15"), currency), number(tax), "{gross} {currency}");
        }
    }
}
