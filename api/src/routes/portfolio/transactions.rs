//! Transactions of an owner and dividends that the owner received, parsed from JSON, CSV or a broker's file. Decimals
//! are exact.
//!
//! Transactions of a saved portfolio as text: CSV with the columns of a transaction, and nothing else of the entered text.
//!
//! Listings of the securities in a broker's file, which names securities by ISIN.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use market::decimal::{ExactDecimal, parse_decimal};
use market::metrics::currency::Currency;
use rust_decimal::Decimal;
use serde_json::json;
use utoipa::ToSchema;

use super::body_lines::{
    CSV_COLUMNS, Line, TRANSACTION_COLUMNS, TRANSACTIONS, csv_lines, is_own_header, json_lines, read_records,
};
use super::brokers::{BrokerFile, broker_names, read_broker_file};
use crate::answer::RequestBody;
use crate::parameters::{
    ParameterError, ParameterErrors, RequestedSymbol, ResponseFormat, SymbolList, parse_date,
};
use crate::read::{AmbiguousSymbol, QueryError, ServedGeneration, lookup};
use crate::render::envelope::Warning;
use crate::render::icalendar::CalendarSource;

const MAX_LINES: usize = 10_000;
/// Maximum number of errors in a response.
const MAX_ERRORS: usize = 100;
/// Maximum length of the name of an account, in characters.
const MAX_ACCOUNT_LENGTH: usize = 64;
/// Maximum number of shares of a transaction, maximum price, and maximum received amount.
const MAX_NUMBER: i64 = 1_000_000_000;

/// Purchases and sales of an owner, and the dividends that the owner received.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents the body")]
pub(crate) struct TransactionList {
    /// Purchases and sales in any order. With the received dividends, 1 to 10,000 lines.
    #[schema(max_items = 10_000)]
    transactions: Vec<TransactionInput>,
    /// Received dividends in any order. The response compares them with the expected payments, as
    /// `meta.reconciliation`.
    #[schema(max_items = 10_000)]
    received: Option<Vec<ReceivedInput>>,
}

/// Purchase or sale of shares. CSV has the same columns.
#[derive(ToSchema)]
#[schema(as = Transaction)]
#[expect(dead_code, reason = "documents the body")]
pub(crate) struct TransactionInput {
    /// Account, at most 64 characters. Each account has its own payments. Default: no account.
    account: Option<String>,
    /// Symbol or identifier, as everywhere in this service. A former symbol is accepted.
    symbol: String,
    /// Trade date. A purchase before the ex-date receives the dividend, a purchase on the ex-date does not.
    date: NaiveDate,
    /// Number of shares, with up to ten decimal places; negative for a sale.
    quantity: ExactDecimal,
    /// Price per share, on the same share basis as the quantity.
    price: Option<ExactDecimal>,
    /// Currency of the price. Default: the currency of the dividends.
    currency: Option<String>,
}

/// Dividend that an owner received. In CSV, a line with `amount` and without `quantity` is a received dividend.
#[derive(ToSchema)]
#[schema(as = ReceivedPayment)]
#[expect(dead_code, reason = "documents the body")]
pub(crate) struct ReceivedInput {
    /// Account, at most 64 characters, as in the transactions. Default: no account.
    account: Option<String>,
    /// Symbol or identifier, as everywhere in this service. A former symbol is accepted.
    symbol: String,
    /// Payment date.
    date: NaiveDate,
    /// Received amount of all shares.
    amount: ExactDecimal,
    /// Currency of the amount. Default: the currency of the dividends.
    currency: Option<String>,
}

/// Purchase or sale of shares.
#[derive(Clone)]
pub(super) struct Transaction {
    /// Place in the body, for errors: `transactions[3]`, or `line 5` of a CSV.
    pub(super) place: String,
    pub(super) account: Option<String>,
    /// Index of the symbol in [`Transactions::symbols`].
    pub(super) symbol: usize,
    pub(super) date: NaiveDate,
    /// Number of shares, negative for a sale.
    pub(super) quantity: Decimal,
    pub(super) price: Option<Decimal>,
    /// Currency of the price; `None` if it is the currency of the dividends.
    pub(super) currency: Option<String>,
}

/// Dividend that an owner received.
pub(super) struct ReceivedRow {
    /// Place in the body: `received[3]`, or `line 5` of a CSV.
    pub(super) place: String,
    pub(super) account: Option<String>,
    /// Index of the symbol in [`Transactions::symbols`].
    pub(super) symbol: usize,
    /// Payment date.
    pub(super) date: NaiveDate,
    pub(super) amount: Decimal,
    /// Currency of the amount; `None` if it is the currency of the dividends.
    pub(super) currency: Option<String>,
}

/// Transactions and received dividends in the order of the body.
#[derive(Default)]
pub(super) struct Transactions {
    /// Distinct symbols.
    pub(super) symbols: SymbolList,
    pub(super) list: Vec<Transaction>,
    pub(super) received: Vec<ReceivedRow>,
    /// Broker whose file the body is; `None` for the service's own formats.
    pub(super) broker: Option<&'static str>,
    /// Number of rows of a broker's file that are not used, by kind.
    pub(super) unused: BTreeMap<String, usize>,
}

/// Parses the body. All errors are collected, up to [`MAX_ERRORS`].
pub(super) fn parse_transactions(body: &RequestBody) -> Result<Transactions, ParameterErrors> {
    let refused = |error| ParameterErrors::Parameters(vec![error]);
    let (lines, broker, unused) = match body.format {
        ResponseFormat::Csv => read_csv(&body.text).map_err(refused)?,
        _ => (json_lines(&body.text).map_err(refused)?, None, BTreeMap::new()),
    };
    let count = lines.len() + unused.values().sum::<usize>();
    if count == 0 || count > MAX_LINES {
        let error = format!("has {count} lines instead of 1 to {MAX_LINES}");
        let allowed = Some(json!({ "maximum": MAX_LINES }));
        return Err(refused(ParameterError::new(TRANSACTIONS, error, allowed)));
    }
    let mut transactions = Transactions { broker, unused, ..Transactions::default() };
    let (mut errors, mut known_symbols) = (Vec::new(), HashMap::new());
    for mut line in lines {
        transactions.add(&mut line, &mut known_symbols);
        errors.append(&mut line.errors);
        if errors.len() >= MAX_ERRORS {
            errors.truncate(MAX_ERRORS);
            break;
        }
    }
    if errors.is_empty() { Ok(transactions) } else { Err(ParameterErrors::Parameters(errors)) }
}

type CsvLines = (Vec<Line>, Option<&'static str>, BTreeMap<String, usize>);

/// Lines of a CSV in the service's own format, or of a broker's file.
fn read_csv(text: &str) -> Result<CsvLines, ParameterError> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let records = read_records(&text, b',')?;
    let file = if is_own_header(&records) { None } else { read_broker_file(&text)? };
    if let Some(BrokerFile { broker, lines, unused }) = file {
        return Ok((lines, Some(broker), unused));
    }
    Ok((csv_lines(&records).ok_or_else(unknown_header)?, None, BTreeMap::new()))
}

fn unknown_header() -> ParameterError {
    let columns = CSV_COLUMNS.join(", ");
    let error = format!(
        "has no known header; the columns are {columns}: symbol and date are needed, with quantity for a transaction, or \
         amount for a received dividend; the export files of these brokers are recognized by their headers: {}",
        broker_names().join(", ")
    );
    let allowed = Some(json!({ "columns": CSV_COLUMNS, "brokers": broker_names() }));
    ParameterError::new(TRANSACTIONS, error, allowed)
}

impl Transactions {
    /// First day of a transaction or received dividend.
    pub(super) fn first_day(&self) -> Option<NaiveDate> {
        let received = self.received.iter().map(|row| row.date);
        self.list.iter().map(|transaction| transaction.date).chain(received).min()
    }

    /// Currency of the first row of a symbol that has one.
    pub(super) fn currency_of(&self, symbol: usize) -> Option<&str> {
        let traded = self.list.iter().filter(|one| one.symbol == symbol);
        let received = self.received.iter().filter(|one| one.symbol == symbol);
        let currencies = traded.map(|one| &one.currency).chain(received.map(|one| &one.currency));
        currencies.flatten().next().map(String::as_str)
    }

    /// Adds the transaction or the received dividend of a line. Errors stay in the line.
    fn add(&mut self, line: &mut Line, known_symbols: &mut HashMap<String, usize>) {
        let account = line.read("account", parse_account);
        let symbol = line.require("symbol", parse_symbol);
        let date = line.require("date", |text| parse_date(text).ok_or("is not a date, YYYY-MM-DD".into()));
        let number = if line.is_received {
            line.require("amount", parse_number)
        } else {
            line.require("quantity", parse_quantity)
        };
        let unit = line.read("currency", |text| Currency::parse(text).ok_or("is not a currency".into()));
        let price = line.read("price", parse_price);
        let (Some(symbol), Some(date), Some(number)) = (symbol, date, number) else { return };
        let symbol = *known_symbols.entry(symbol.text.to_ascii_uppercase()).or_insert_with(|| {
            self.symbols.0.push(symbol);
            self.symbols.0.len() - 1
        });
        let to_major = |amount| unit.as_ref().map_or(amount, |unit| unit.to_major(amount));
        let price = price.map(to_major);
        let (amount, place) = (to_major(number), line.place.clone());
        let currency = unit.map(|unit| unit.code);
        if line.is_received {
            self.received.push(ReceivedRow { place, account, symbol, date, amount, currency });
        } else {
            let transaction = Transaction { place, account, symbol, date, quantity: number, price, currency };
            self.list.push(transaction);
        }
    }
}

fn parse_account(text: &str) -> Result<String, String> {
    let is_name = text.chars().count() <= MAX_ACCOUNT_LENGTH && !text.chars().any(char::is_control);
    let error = format!("is not a name of at most {MAX_ACCOUNT_LENGTH} characters");
    if is_name { Ok(text.to_owned()) } else { Err(error) }
}

fn parse_symbol(text: &str) -> Result<RequestedSymbol, String> {
    let symbol = RequestedSymbol::parse_item(TRANSACTIONS, text).map_err(|error| error.to_string())?;
    symbol.ok_or_else(|| "is not a symbol of 1 to 24 ASCII characters".to_owned())
}

fn parse_quantity(text: &str) -> Result<Decimal, String> {
    let quantity = parse_number(text)?;
    if quantity.is_zero() { Err("is 0".to_owned()) } else { Ok(quantity) }
}

fn parse_price(text: &str) -> Result<Decimal, String> {
    let price = parse_number(text)?;
    if price < Decimal::ZERO { Err("is negative".to_owned()) } else { Ok(price) }
}

/// Parses a number of at most ten decimal places, from -[`MAX_NUMBER`] to [`MAX_NUMBER`].
fn parse_number(text: &str) -> Result<Decimal, String> {
    let number = parse_decimal(text).map_err(|error| error.to_string())?;
    if number.rounded {
        return Err("has more than ten decimal places".to_owned());
    }
    if number.value.abs() > Decimal::from(MAX_NUMBER) {
        return Err(format!("exceeds {MAX_NUMBER}"));
    }
    Ok(number.value)
}

/// Finds the canonical symbol of each symbol; `None` for an unknown one. If a broker's file names a security with several
/// listings, a listing in the currency of the security's first row is used, with a warning.
pub(super) async fn resolve_listings(
    generation: &ServedGeneration,
    transactions: &mut Transactions,
) -> Result<(Vec<Option<String>>, Vec<Warning>), QueryError> {
    let mut warnings = Vec::new();
    if transactions.broker.is_some() {
        let resolved = lookup::find_symbols(generation, &transactions.symbols).await?;
        let unknown = transactions.symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
        let shared = lookup::find_shared(generation, unknown.map(|(symbol, _)| symbol)).await?;
        for AmbiguousSymbol { symbol, listings } in shared {
            let place = transactions.symbols.0.iter().position(|known| known.text == symbol.text);
            let currency = place.and_then(|place| transactions.currency_of(place));
            let matching = listings.iter().filter(|listing| currency == Some(listing.currency.as_str()));
            let Some((place, listing)) = place.zip(matching.min_by_key(|listing| &listing.symbol)) else {
                continue;
            };
            let message = format!("{} has several listings; {listing} is used", symbol.text);
            warnings.push(Warning { code: "several_listings", message, param: Some(TRANSACTIONS) });
            if let Ok(Some(known)) = RequestedSymbol::parse_item(TRANSACTIONS, &listing.symbol) {
                transactions.symbols.0[place] = known;
            }
        }
    }
    Ok((lookup::resolve_symbols(generation, &transactions.symbols).await?, warnings))
}

/// Maximum number of errors in a message.
const MAX_SHOWN_ERRORS: usize = 10;

/// Parses CSV transactions, and writes them with the columns that the endpoint reads. Also returns their number. In a
/// broker's file, the chosen listing replaces an ISIN of several listings. An error has one line for each faulty value.
pub(crate) async fn normalize_transactions(
    text: String,
    generation: &ServedGeneration,
) -> Result<(String, usize), String> {
    let mut transactions = parse(text)?;
    resolve_listings(generation, &mut transactions).await.map_err(|error| error.to_string())?;
    write(&transactions)
}

fn write(transactions: &Transactions) -> Result<(String, usize), String> {
    if transactions.list.is_empty() {
        return Err("transactions has no purchase and no sale".to_owned());
    }
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(TRANSACTION_COLUMNS);
    for one in &transactions.list {
        let symbol = transactions.symbols.0.get(one.symbol).map_or("", |symbol| symbol.text.as_str());
        let cells = [
            one.account.clone().unwrap_or_default(),
            symbol.to_owned(),
            one.date.to_string(),
            one.quantity.normalize().to_string(),
            one.price.map(|price| price.normalize().to_string()).unwrap_or_default(),
            one.currency.clone().unwrap_or_default(),
        ];
        let _ = writer.write_record(cells);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    Ok((String::from_utf8_lossy(&bytes).into_owned(), transactions.list.len()))
}

/// Distinct symbols of CSV transactions.
pub(crate) fn transaction_symbols(text: String) -> Result<SymbolList, String> {
    Ok(parse(text)?.symbols)
}

fn parse(text: String) -> Result<Transactions, String> {
    let body = RequestBody { format: ResponseFormat::Csv, text, calendar: CalendarSource::default() };
    parse_transactions(&body).map_err(describe)
}

fn describe(errors: ParameterErrors) -> String {
    let ParameterErrors::Parameters(errors) = errors else { return String::new() };
    let lines = errors.iter().take(MAX_SHOWN_ERRORS).map(|error| format!("{} {}", error.param, error.error));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_columns_and_values_of_the_transactions() {
        let text = "quantity,symbol,date,price,currency,account\n1e2,ko,2021-03-01,5120,GBX,\"my, account\"\n-0.50,isin:US1912161007,2021-04-01,,,\n";
        let expected = "account,symbol,date,quantity,price,currency\n\"my, account\",ko,2021-03-01,100,51.2,GBP\n,isin:US1912161007,2021-04-01,-0.5,,\n";
        let normalize = |text: &str| write(&parse(text.to_owned())?);
        let (saved, count) = normalize(text).expect("valid transactions");
        assert_eq!((saved.as_str(), count), (expected, 2));
        assert_eq!(normalize(&saved).expect("valid transactions").0, saved);
        assert!(normalize("symbol,date,quantity\nKO,2021-03-01,x\n").is_err());
    }
}
