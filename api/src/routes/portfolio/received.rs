//! `POST /v1/portfolio/dividends`: dividends that an owner received and will receive, from the owner's transactions.
//!
//! Invariant: the request is not stored, logged or cached. Only its symbols and dates are sent to the database.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use chrono::{Months, NaiveDate};
use market::metrics::prices::adjustment::Splits;
use market::row::TableRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::body_lines::TRANSACTIONS;
use super::distribution_events::{DistributionEvents, LoadedEvents, TaxRates, load_events};
use super::position::IncomeGap;
use super::received_payment::{
    ConvertibleReceived, PaymentPair, ReceivedDividend, pair_payments, write_calendar,
};
use super::received_totals::{ReceivedConverted, ReceivedTotals, first_of_twelve_months, set_yields_on_cost};
use super::reconciliation::{Reconciliation, reconcile};
use super::share_count::{AccountSecurity, exchange_shares, first_days, load_mergers};
use super::transactions::{Transaction, TransactionList, parse_transactions, resolve_listings};
use crate::answer::{Free, HandlerContext, RenderedBody, RequestBody};
use crate::error::ApiError;
use crate::parameters::{Output, ParameterError, ParameterErrors, ResponseFormat, parameters};
use crate::read::DataVersion;
use crate::read::changes::DividendRevisions;
use crate::render::envelope::{ListMeta, Warning};
use crate::render::rows;
use crate::routes::conversion::{Conversion, ConvertibleColumns, payment_rate};
use crate::routes::endpoint;

pub(crate) const PATH: &str = "/v1/portfolio/dividends";
/// Maximum number of payments of a response.
const MAX_PAYMENTS: u32 = 100_000;
static COLUMNS: LazyLock<ConvertibleColumns> =
    LazyLock::new(|| ConvertibleColumns::of(ReceivedDividend::COLUMNS));

parameters! {
    /// Parameters of received dividends.
    pub(crate) struct ReceivedParameters by reader {
        /// First payment date; without a payment date, the ex-date counts. Default: the first transaction, but not
        /// before the first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last payment date. Default: twelve months ahead.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Share basis of the quantities. `trade_date` (default): as traded; later splits change the number of shares.
        /// `today`: adjusted for all splits until today.
        quantity_basis: Option<&'static str> = reader.read_word("quantity_basis", &["trade_date", "today"]),
        /// Accepts sales of more shares than an account has. Dividends on shares sold short are negative.
        short: bool = reader.read_bool_or("short", false),
        /// Tax rates in percent by the security's country of domicile, comma-separated: `US:15,CH:35,*:0`. `*` is the
        /// rate for all other countries. Each payment then has `tax` and `net`.
        tax: Option<TaxRates> = reader.read_tax_rates(),
        currency: Option<String> = reader.read_target_currency(),
        output: Output = reader.with_calendar().read_convertible_output(&COLUMNS, currency.as_ref()),
    }

    const IS_COSTLY: bool = true;
    const IS_PRIVATE: bool = true;
}

/// Dividends that an owner received and will receive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedDividends {
    /// Payments by payment date.
    data: Vec<ConvertibleReceived>,
    /// Sums, unknown symbols, data version and warnings of the response.
    meta: ReceivedMeta,
}

/// Sums, unknown symbols, data version and warnings of received dividends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// Reasons why payments are missing, by symbol.
    gaps: Vec<IncomeGap>,
    /// Sums of the payments.
    totals: ReceivedTotals,
    /// Expected payments compared with the received dividends of the request, by payment date. An expected payment
    /// without a received dividend is listed if it was paid between the first and the last received dividend of its
    /// account. Omitted without received dividends, and in CSV.
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciliation: Option<Vec<Reconciliation>>,
    /// Broker whose file the request has, recognized by its header. Omitted for JSON and for CSV with the columns of a
    /// transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<&'static str>,
}

endpoint! {
    /// Dividends received
    ///
    /// Dividends that an owner received and will receive, from purchases and sales. The quantity of a payment is the
    /// sum of the transactions before the ex-date, carried through splits and mergers. Projected payments are included
    /// and marked. Received dividends are compared with the expected payments. Nothing of the request is stored. The
    /// body of at most 1 MiB is JSON, CSV with the columns of a transaction and `amount`, or the transaction export of a
    /// broker: DEGIRO, Fidelity, Interactive Brokers (Flex), Schwab, Trade Republic or Trading 212.
    /// `format=ics` is a calendar with an event for each ex-date and each payment date.
    post "/v1/portfolio/dividends", tag "Portfolio", reads TransactionList, returns "The payments",
    dividends(Access<Free, ReceivedParameters>) -> ReceivedDividends { respond_to_body(render_dividends) }
}

async fn render_dividends(
    context: HandlerContext<ReceivedParameters>,
    body: RequestBody,
) -> Result<RenderedBody, ApiError> {
    let (asked, today) = (&context.parameters, context.today);
    let mut transactions = parse_transactions(&body)?;
    let calendar = body.calendar;
    drop(body.text);
    let (resolved, listing_warnings) = resolve_listings(&context.generation, &mut transactions).await?;
    let first = transactions.first_day().unwrap_or(today);
    let window = Window {
        start: asked.start_date.unwrap_or_else(|| first.max(context.first_day_of_tier_history())),
        end: asked.end_date.unwrap_or_else(|| today.checked_add_months(Months::new(12)).unwrap_or(today)),
    };
    let unknown = transactions.symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    let missing: Vec<String> = unknown.map(|(symbol, _)| symbol.text.clone()).collect();
    let named = transactions.symbols.0.iter().zip(&resolved);
    let names: Vec<String> =
        named.map(|(symbol, found)| found.as_ref().unwrap_or(&symbol.text).clone()).collect();
    let basis = (asked.quantity_basis == Some("today")).then_some(today);
    let mut owned = group_by_account(transactions.list, &resolved, basis);
    let mergers = load_mergers(&context.generation, &owned).await?;
    let since = first_days(&owned, &mergers);
    let days = [window.start.min(first_of_twelve_months(today)), window.end.max(today)];
    let loaded =
        load_events(&context.generation, &since, days, i64::from(MAX_PAYMENTS) + 1, asked.tax.as_ref())
            .await?;
    if loaded.row_count > MAX_PAYMENTS as usize {
        return Err(too_many_payments());
    }
    let merger_warnings = exchange_shares(&mut owned, &mergers, &loaded.events)
        .ok_or_else(|| refused(TRANSACTIONS, "has too large amounts"))?;
    if !asked.short {
        require_shares(&owned, &loaded.events)?;
    }

    let mut all = Vec::new();
    for one in &owned {
        let Some(events) = loaded.events.get(&one.symbol) else { continue };
        let payments =
            events.payments_to(one).ok_or_else(|| refused(TRANSACTIONS, "has too large amounts"))?;
        all.extend(payments);
        if all.len() > MAX_PAYMENTS as usize {
            return Err(too_many_payments());
        }
    }
    all.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
    let payments: Vec<&ReceivedDividend> =
        all.iter().filter(|payment| window.includes(payment.day())).collect();
    if asked.output.format == ResponseFormat::Calendar {
        let symbols = payments.iter().map(|payment| payment.symbol.as_str());
        let position = loaded.version.position.0;
        let revisions = DividendRevisions::read(&context.generation, symbols, position).await?;
        let body = write_calendar(&payments, &revisions, &calendar).text.into();
        return Ok(RenderedBody { body, version: loaded.version, next_cursor: None });
    }
    let mut totals = ReceivedTotals::of(payments.iter().copied());
    set_yields_on_cost(&mut totals.symbols, &all, &owned, &loaded.events, today);
    let (rows, converted) = convert(&context, &loaded.version, &payments).await?;
    totals.converted = converted;
    let (received, outside): (Vec<_>, Vec<_>) =
        transactions.received.into_iter().partition(|row| window.includes(row.date));
    let mut reconciliation = None;
    if asked.output.format == ResponseFormat::Json && received.len() + outside.len() > 0 {
        let pairs = pair_payments(&all, received, &names, |day| window.includes(day));
        reconciliation = Some(compare(&context, &loaded, pairs).await?);
    }

    let mut gaps: Vec<IncomeGap> = missing.iter().map(|symbol| IncomeGap::unknown(symbol)).collect();
    gaps.extend(loaded.gaps);
    let mut list = ListMeta::new(&loaded.version, rows.len(), MAX_PAYMENTS.into(), None);
    list.set_missing(missing);
    list.warnings.iter_mut().for_each(|warning| warning.param = Some(TRANSACTIONS));
    list.warnings.extend(spin_off_warnings(&owned, &loaded.events, &window));
    list.warnings.extend(listing_warnings);
    list.warnings.extend(merger_warnings);
    list.warnings.extend(loaded.tax_warning);
    list.warnings.extend(unused_rows_warning(&transactions.unused));
    list.warnings.extend(outside_warning(outside.len()));
    list.set_depth(context.depth_without(asked.start_date), today);
    let meta = ReceivedMeta { list, gaps, totals, reconciliation, broker: transactions.broker };
    let body = rows::render_list(&asked.output, &rows, &meta)?;
    Ok(RenderedBody { body, version: loaded.version, next_cursor: None })
}

fn refused(param: &str, error: &str) -> ApiError {
    ParameterErrors::Parameters(vec![ParameterError::new(param, error, None)]).into()
}

fn too_many_payments() -> ApiError {
    refused("start_date", &format!("gives more than {MAX_PAYMENTS} payments; request a shorter range"))
}

/// Payment dates of a response.
struct Window {
    start: NaiveDate,
    end: NaiveDate,
}

impl Window {
    fn includes(&self, day: NaiveDate) -> bool {
        (self.start..=self.end).contains(&day)
    }
}

/// Transactions of each known security in each account.
fn group_by_account(
    transactions: Vec<Transaction>,
    resolved: &[Option<String>],
    basis: Option<NaiveDate>,
) -> Vec<AccountSecurity> {
    let mut groups: BTreeMap<(String, Option<String>), Vec<Transaction>> = BTreeMap::new();
    for transaction in transactions {
        if let Some(Some(symbol)) = resolved.get(transaction.symbol) {
            groups.entry((symbol.clone(), transaction.account.clone())).or_default().push(transaction);
        }
    }
    let groups = groups.into_iter();
    groups.map(|((symbol, account), list)| AccountSecurity::new(account, symbol, list, basis)).collect()
}

/// Fails if an account sells more shares than it has.
fn require_shares(
    owned: &[AccountSecurity],
    events: &HashMap<String, DistributionEvents>,
) -> Result<(), ApiError> {
    let none = Splits::default();
    let oversold = owned.iter().filter_map(|one| {
        let sale = one.find_oversale(events.get(&one.symbol).map_or(&none, |events| &events.splits))?;
        let error = "sells more shares than the account has; short=true accepts this";
        Some(ParameterError::new(format!("{}.quantity", sale.place), error, None))
    });
    let errors: Vec<_> = oversold.collect();
    if errors.is_empty() { Ok(()) } else { Err(ParameterErrors::Parameters(errors).into()) }
}

/// Order of the payments: by payment date, symbol, ex-date, type, id and account.
fn sort_key(payment: &ReceivedDividend) -> impl Ord + '_ {
    let ReceivedDividend { symbol, ex_date, r#type, id, account, .. } = payment;
    (payment.day(), symbol, *ex_date, r#type.as_str(), id, account)
}

/// Payments of the response with their amounts in the requested currency, and the sums of these amounts.
async fn convert(
    context: &HandlerContext<ReceivedParameters>,
    version: &DataVersion,
    payments: &[&ReceivedDividend],
) -> Result<(Vec<ConvertibleReceived>, Option<ReceivedConverted>), ApiError> {
    let Some(currency) = &context.parameters.currency else {
        let original = |payment: &&ReceivedDividend| ConvertibleReceived {
            payment: (*payment).clone(),
            converted: None,
        };
        return Ok((payments.iter().map(original).collect(), None));
    };
    let amounts: BTreeSet<_> =
        payments.iter().map(|payment| payment_rate(&payment.currency, payment.ex_date)).collect();
    let amounts: Vec<_> = amounts.into_iter().collect();
    let conversion = Conversion::load(&context.generation, version, Some(currency), &amounts).await?;
    let (mut rows, mut converted) = (Vec::new(), Vec::new());
    for payment in payments {
        converted.extend(payment.convert(&conversion));
        let amount = conversion.convert_payment(payment.gross.0, &payment.currency, payment.ex_date);
        rows.push(ConvertibleReceived { payment: (*payment).clone(), converted: Some(amount) });
    }
    let total = ReceivedConverted::of(conversion.currency(), &converted, rows.len() - converted.len());
    Ok((rows, Some(total)))
}

/// Compares received with expected payments, with the exchange rates between their currencies.
async fn compare(
    context: &HandlerContext<ReceivedParameters>,
    loaded: &LoadedEvents,
    pairs: Vec<PaymentPair>,
) -> Result<Vec<Reconciliation>, ApiError> {
    let currencies = pairs.iter().filter_map(|pair| Some((pair.currencies()?, pair.day()?)));
    let amounts: BTreeSet<(&str, NaiveDate)> =
        currencies.flat_map(|((from, to), day)| [(from, day), (to, day)]).collect();
    let mut rates = None;
    if !amounts.is_empty() {
        let amounts: Vec<_> = amounts.into_iter().collect();
        rates = Some(Conversion::load(&context.generation, &loaded.version, None, &amounts).await?);
    }
    let tax = |symbol: &str| loaded.events.get(symbol)?.tax_rate;
    let rate = |from: &str, to: &str, day| rates.as_ref()?.rate_between(from, to, day);
    Ok(reconcile(pairs, tax, rate))
}

/// Warning about the rows of a broker's file that are not used, by kind; `None` without such rows.
fn unused_rows_warning(unused: &BTreeMap<String, usize>) -> Option<Warning> {
    let kinds: Vec<String> = unused.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let message = format!("Rows of the file that are not used: {}", kinds.join(", "));
    (!unused.is_empty()).then_some(Warning { code: "unused_rows", message, param: Some(TRANSACTIONS) })
}

/// Warning about received dividends before or after the requested days; `None` if `count` is 0.
fn outside_warning(count: usize) -> Option<Warning> {
    let message =
        format!("Received dividends outside of the requested days, which are not compared: {count}");
    (count > 0).then_some(Warning { code: "outside_range", message, param: Some(TRANSACTIONS) })
}

/// Warnings about spin-offs to an owner, whose shares are not among the transactions.
fn spin_off_warnings(
    owned: &[AccountSecurity],
    events: &HashMap<String, DistributionEvents>,
    window: &Window,
) -> Vec<Warning> {
    let mut found = BTreeSet::new();
    for one in owned {
        let days = events.get(&one.symbol).into_iter().flat_map(|events| events.spin_offs_to(one));
        found.extend(days.filter(|day| window.includes(*day)).map(|day| (day, &one.symbol)));
    }
    let warning = |(day, symbol)| Warning {
        code: "spin_off",
        message: format!(
            "{symbol} had a spin-off on {day}; add the received shares as a transaction to get their dividends"
        ),
        param: Some(TRANSACTIONS),
    };
    found.into_iter().map(warning).collect()
}
