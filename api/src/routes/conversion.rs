//! Amounts in the currency that a request asks for with `currency` (R42, R43), and `GET /v1/fx`: exchange rates of two
//! currencies, as the figures use them.
//!
//! A past payment is converted at the rate of the session before its ex-date, and any other payment at the newest rate.
//! Prices and figures of a price are converted at the rate of the day of the price.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::{Datelike, Days, NaiveDate};
use market::decimal::ExactDecimal;
use market::metrics::ExchangeRates;
use market::metrics::calendar::previous_session;
use market::row::{FxRow, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use store::past_facts::FactHistory;
use store::versions::VersionName;
use store::view::View;
use utoipa::ToSchema;

use super::endpoint;
use super::past::security::{facts_error, load_rate_history};
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, Output, Page, PageOptions, ParameterReader, ResponseFormat, SortValue, Sortable,
    parameters,
};
use crate::read::lookup::{PastVersion, find_current_version, find_version};
use crate::read::{DataVersion, ServedGeneration};
use crate::render::envelope::{List, Warning};

/// Amount in the requested currency.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Converted {
    /// Amount in `currency`.
    pub(crate) amount: ExactDecimal,
    /// Requested currency, an ISO 4217 code.
    pub(crate) currency: String,
    /// Exchange rate: units of `currency` for one unit of the original currency. 1 if the currencies are equal.
    rate: ExactDecimal,
    /// Day of the rate; null if the currencies are equal.
    rate_date: Option<NaiveDate>,
    /// Source of the rate; null if the currencies are equal.
    rate_source: Option<String>,
}

impl Converted {
    pub(crate) const COLUMNS: [&'static str; 5] = ["amount", "currency", "rate", "rate_date", "rate_source"];
}

/// Columns of a list whose rows can have `converted`.
#[derive(Debug)]
pub(crate) struct ConvertibleColumns {
    json: Vec<&'static str>,
    csv: Vec<&'static str>,
    /// CSV columns of a request without `currency`.
    original: Vec<&'static str>,
}

impl ConvertibleColumns {
    /// Adds the columns of `converted` to those of a list.
    pub(crate) fn of(original: &[&'static str]) -> Self {
        let with = |added: &[&'static str]| [original, added].concat();
        Self { json: with(&["converted"]), csv: with(&CSV_COLUMNS), original: original.to_vec() }
    }
}

const CSV_COLUMNS: [&str; 5] = [
    "converted.amount",
    "converted.currency",
    "converted.rate",
    "converted.rate_date",
    "converted.rate_source",
];

impl ParameterReader<'_> {
    /// Reads `currency`, the currency to which amounts are converted.
    pub(crate) fn read_target_currency(&mut self) -> Option<String> {
        let currency = self.read_currency("currency");
        self.describe(
            "currency",
            "ISO 4217 currency. Each amount then has `converted`: the amount in this currency, with the exchange rate, its day\n\
             and its source. The original amounts stay.",
        );
        currency
    }

    /// Reads the output options of a list whose rows can have `converted`.
    pub(crate) fn read_convertible_output(
        &mut self,
        columns: &'static ConvertibleColumns,
        currency: Option<&String>,
    ) -> Output {
        self.read_convertible_csv(&columns.json, columns, currency)
    }

    /// Reads the output options of a resource whose CSV rows can have `converted`.
    pub(crate) fn read_convertible_csv(
        &mut self,
        of_json: &'static [&'static str],
        columns: &'static ConvertibleColumns,
        currency: Option<&String>,
    ) -> Output {
        let mut output = self.read_output_with_csv(of_json, &columns.csv);
        if output.format == ResponseFormat::Csv && currency.is_none() {
            output.columns = &columns.original;
        }
        output
    }
}

/// Exchange rates to one currency, as known at the data version of a response.
#[derive(Debug)]
pub(crate) struct Conversion {
    currency: String,
    as_of: NaiveDate,
    rates: ExchangeRates,
}

impl Conversion {
    /// Loads the rates for amounts, each given by its currency and the day of its rate. `currency` is the target, or
    /// the reporting currency if `None`.
    pub(crate) async fn load(
        generation: &ServedGeneration,
        version: &DataVersion,
        currency: Option<&str>,
        amounts: &[(&str, NaiveDate)],
    ) -> Result<Self, ApiError> {
        let position = version.is_repeated.then_some(version.position);
        let name = VersionName { generation: version.generation, sequence: version.sequence, position };
        let Some(as_of) = version.as_of else {
            let currency = currency.unwrap_or("USD").to_owned();
            return Ok(Self { currency, as_of: NaiveDate::MIN, rates: ExchangeRates::NONE });
        };
        let found = find_version(generation, &Knowledge::Version(name)).await?;
        let currency = currency.unwrap_or(&found.market.reporting_currency).to_owned();
        let (mut currencies, mut days) = (BTreeSet::from([currency.clone()]), BTreeSet::from([as_of]));
        for (original, day) in amounts {
            currencies.insert((*original).to_owned());
            days.insert((*day).min(as_of));
        }
        let (first, last) = (days.first().copied().unwrap_or(as_of), days.last().copied().unwrap_or(as_of));
        let rates = load_exchange_rates(generation, &found, currencies, [first, last]).await?;
        Ok(Self { currency, as_of, rates })
    }

    /// Currency to which amounts are converted.
    pub(crate) fn currency(&self) -> &str {
        &self.currency
    }

    /// Units of the target currency for one unit of `currency` on a day. `None` without a rate.
    pub(crate) fn rate(&self, currency: &str, day: NaiveDate) -> Option<Decimal> {
        self.convert(Decimal::ONE, currency, day).map(|converted| converted.rate.0)
    }

    /// Units of the currency `to` for one unit of `from` on a day. `None` without a rate.
    pub(crate) fn rate_between(&self, from: &str, to: &str, day: NaiveDate) -> Option<Decimal> {
        self.rates.rate(from, to, day, self.as_of).map(|rate| rate.value)
    }

    /// Converts an amount at the rate of a day. `None` without a rate.
    pub(crate) fn convert(&self, amount: Decimal, currency: &str, day: NaiveDate) -> Option<Converted> {
        if currency == self.currency {
            let rate = ExactDecimal(Decimal::ONE);
            let (amount, currency) = (ExactDecimal::amount(amount), currency.to_owned());
            return Some(Converted { amount, currency, rate, rate_date: None, rate_source: None });
        }
        let rate = self.rates.rate(currency, &self.currency, day, self.as_of)?;
        Some(Converted {
            amount: ExactDecimal::amount(rate.convert(amount)?),
            currency: self.currency.clone(),
            rate: ExactDecimal(rate.value),
            rate_date: Some(rate.date),
            rate_source: Some(rate.source()),
        })
    }

    /// Names of the sources of the rates of some amounts, each given by its currency and the day of its rate.
    pub(crate) fn sources(&self, amounts: &[(&str, NaiveDate)]) -> BTreeSet<String> {
        let rates = amounts
            .iter()
            .filter_map(|(currency, day)| self.rates.rate(currency, &self.currency, *day, self.as_of));
        rates.flat_map(|rate| rate.sources).map(str::to_owned).collect()
    }

    /// Warning about the rows without a converted amount.
    pub(crate) fn warning<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a Option<Option<Converted>>>,
    ) -> Option<Warning> {
        let unconverted = rows.into_iter().filter(|converted| **converted == Some(None)).count();
        Warning::unconverted(unconverted, &self.currency)
    }

    /// Converts an amount of a payment.
    pub(crate) fn convert_payment(
        &self,
        amount: Decimal,
        currency: &str,
        ex_date: NaiveDate,
    ) -> Option<Converted> {
        self.convert(amount, currency, payment_day(ex_date, self.as_of))
    }

    /// Amount in the currency `to` that equals `amount` in the target currency, at the newest rate.
    pub(crate) fn threshold(&self, amount: Decimal, to: &str) -> Option<Decimal> {
        if to == self.currency {
            return Some(amount);
        }
        self.rates.rate(&self.currency, to, self.as_of, self.as_of)?.convert(amount)
    }
}

/// Currency of a payment, and a day whose rates its conversion needs.
pub(crate) fn payment_rate(currency: &str, ex_date: NaiveDate) -> (&str, NaiveDate) {
    (currency, previous_session(ex_date))
}

/// Day of the rate of a payment (R42).
fn payment_day(ex_date: NaiveDate, as_of: NaiveDate) -> NaiveDate {
    if ex_date > as_of { as_of } else { previous_session(ex_date) }
}

impl Warning {
    /// Warning about `count` amounts without an exchange rate; `None` if `count` is 0.
    pub(crate) fn unconverted(count: usize, currency: &str) -> Option<Self> {
        let message = format!("{count} amounts have no exchange rate to {currency}");
        (count > 0).then_some(Self { code: "unconverted", message, param: Some("currency") })
    }
}

/// Days before and after a day on which rates are loaded: a rate is used for a week, and its neighbours decide if it
/// is held.
const MARGIN: Days = Days::new(17);

/// Loads the exchange rates between some currencies from one day to another, as known at a data version.
pub(crate) async fn load_exchange_rates(
    generation: &ServedGeneration,
    version: &PastVersion,
    currencies: BTreeSet<String>,
    [from, to]: [NaiveDate; 2],
) -> Result<ExchangeRates, ApiError> {
    let first = from.checked_sub_days(MARGIN).unwrap_or(from).year();
    let last = to.checked_add_days(MARGIN).unwrap_or(to).year();
    let facts: FactHistory =
        load_rate_history(generation, &version.fact_set, currencies, first..=last).await?;
    let (view, policy) = (View::at(version.facts_sequence), version.inputs()?.0.clone());
    run_low_priority(move || facts.at(&view, &policy).map(|facts| facts.rates().clone()))
        .await?
        .map_err(facts_error)
}

const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["date"],
    order: &[("date", Direction::Descending)],
};

parameters! {
    /// Parameters of exchange rates.
    pub(crate) struct FxParameters by reader {
        /// Base currency, an ISO 4217 code: the rates are for one unit of it. Required.
        base: String = reader.read_required_currency("base"),
        /// Quote currency, an ISO 4217 code: the rates are in units of it. Required.
        quote: String = reader.read_required_currency("quote"),
        /// First day. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last day. Default: the newest day with a rate.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(FxRow::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;
}

impl Sortable for FxRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.source)
    }
}

endpoint! {
    /// Exchange rates
    ///
    /// Newest first, one row per day with a new rate. The rates are those with which dividends and prices in different
    /// currencies are compared (R41). The rate of two currencies without own rates is computed from the inverse pair,
    /// else through the euro, else through the US dollar. Without any such rate, the list is empty.
    get "/v1/fx", tag "Prices", returns "A page of exchange rates",
    rates(Access<Free, FxParameters>) -> List<FxRow> { respond(render) }
}

async fn render(context: HandlerContext<FxParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let version = match context.find_version(asked.knowledge.as_ref()).await? {
        Some(found) => found,
        None => find_current_version(&context.generation).await?.into(),
    };
    let currencies = BTreeSet::from([asked.base.clone(), asked.quote.clone()]);
    let (from, to) = (context.first_day(asked.start_date), asked.end_date.unwrap_or(NaiveDate::MAX));
    let rates = load_exchange_rates(&context.generation, &version, currencies, [from, to]).await?;
    let (base, quote) = (asked.base.clone(), asked.quote.clone());
    let rows = run_low_priority(move || -> Vec<FxRow> {
        let rates = rates.series(&base, &quote, from, to);
        rates
            .map(|rate| FxRow {
                date: rate.date,
                base: base.clone(),
                quote: quote.clone(),
                rate: ExactDecimal(rate.value),
                through: rate.through.map(str::to_owned),
                source: rate.source(),
            })
            .collect()
    });
    let rows = rows.await?;
    context.render_page(&asked.output, &asked.page, version.version(), &rows, |meta| {
        meta.set_depth(context.depth_without(asked.start_date), context.today);
    })
}
