//! Transactions of an owner: purchases and sales, parsed from JSON or CSV. Decimals are exact.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use market::decimal::{ExactDecimal, parse_decimal};
use market::metrics::currency::Currency;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::answer::RequestBody;
use crate::parameters::{
    ParameterError, ParameterErrors, RequestedSymbol, ResponseFormat, SymbolList, parse_date,
};

const MAX_TRANSACTIONS: usize = 10_000;
/// Maximum number of errors in a response.
const MAX_ERRORS: usize = 100;
/// Maximum length of the name of an account, in characters.
const MAX_ACCOUNT_LENGTH: usize = 64;
/// Maximum number of shares of a transaction, and maximum price.
const MAX_NUMBER: i64 = 1_000_000_000;
const COLUMNS: [&str; 6] = ["account", "symbol", "date", "quantity", "price", "currency"];
/// Name of the list, in the body and in errors.
const LIST: &str = "transactions";

/// Purchases and sales of an owner.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents the body")]
pub(crate) struct TransactionList {
    /// Purchases and sales in any order, at least one.
    #[schema(max_items = 10_000, min_items = 1)]
    transactions: Vec<TransactionInput>,
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

/// Transactions in the order of the body.
#[derive(Default)]
pub(super) struct Transactions {
    /// Distinct symbols.
    pub(super) symbols: SymbolList,
    pub(super) list: Vec<Transaction>,
}

/// Error at a place of the body.
pub(super) fn body_error(param: impl Into<String>, error: impl Into<String>) -> ParameterError {
    ParameterError { param: param.into(), error: error.into(), allowed: None }
}

/// Parses the body. All errors are collected, up to [`MAX_ERRORS`].
pub(super) fn parse_transactions(body: &RequestBody) -> Result<Transactions, ParameterErrors> {
    let refused = |error| ParameterErrors::Parameters(vec![error]);
    let lines = match body.format {
        ResponseFormat::Json => json_lines(&body.text),
        ResponseFormat::Csv => csv_lines(&body.text),
    };
    let lines = lines.map_err(refused)?;
    if lines.is_empty() || lines.len() > MAX_TRANSACTIONS {
        let error = format!("has {} lines instead of 1 to {MAX_TRANSACTIONS}", lines.len());
        let allowed = Some(json!({ "maximum": MAX_TRANSACTIONS }));
        return Err(refused(ParameterError { allowed, ..body_error(LIST, error) }));
    }
    let (mut transactions, mut errors) = (Transactions::default(), Vec::new());
    let mut known_symbols = HashMap::new();
    for mut line in lines {
        if let Some((transaction, symbol)) = line.parse() {
            let index = *known_symbols.entry(symbol.text.to_ascii_uppercase()).or_insert_with(|| {
                transactions.symbols.0.push(symbol);
                transactions.symbols.0.len() - 1
            });
            transactions.list.push(Transaction { symbol: index, ..transaction });
        }
        errors.append(&mut line.errors);
        if errors.len() >= MAX_ERRORS {
            errors.truncate(MAX_ERRORS);
            break;
        }
    }
    if errors.is_empty() { Ok(transactions) } else { Err(ParameterErrors::Parameters(errors)) }
}

/// Texts of one transaction, by column.
struct Line {
    place: String,
    cells: BTreeMap<String, String>,
    errors: Vec<ParameterError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonBody {
    transactions: Vec<BTreeMap<String, Option<Box<RawValue>>>>,
}

fn json_lines(text: &str) -> Result<Vec<Line>, ParameterError> {
    let body: JsonBody =
        serde_json::from_str(text).map_err(|error| body_error(LIST, format!("cannot be read: {error}")))?;
    let mut lines = Vec::new();
    for (number, members) in body.transactions.into_iter().enumerate() {
        let mut line = Line { place: format!("{LIST}[{number}]"), cells: BTreeMap::new(), errors: vec![] };
        for (column, value) in members {
            let Some(value) = value else { continue };
            match cell_text(&value) {
                Some(text) => line.add_cell(&column, &text),
                None => line.add_error(&column, "is neither a text nor a number"),
            }
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Text of a JSON string or number; `None` for any other value. The digits of a number stay as they are.
fn cell_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
        _ => None,
    }
}

fn csv_lines(text: &str) -> Result<Vec<Line>, ParameterError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let unreadable = |error: csv::Error| body_error(LIST, format!("cannot be read: {error}"));
    let header = reader.headers().map_err(unreadable)?.clone();
    let mut lines = Vec::new();
    for record in reader.into_records() {
        let record = record.map_err(unreadable)?;
        let number = record.position().map_or(0, |start| line_number(text, start));
        let mut line = Line { place: format!("line {number}"), cells: BTreeMap::new(), errors: vec![] };
        for (column, cell) in header.iter().zip(&record) {
            line.add_cell(column, cell);
        }
        if record.len() > header.len() {
            let error = format!("has {} cells, but the header has {}", record.len(), header.len());
            line.errors.push(body_error(line.place.as_str(), error));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Number of the line with a record. The reader's position is that of the line breaks before the record.
fn line_number(text: &str, start: &csv::Position) -> u64 {
    let start_byte = usize::try_from(start.byte()).unwrap_or(text.len());
    let breaks = text.bytes().skip(start_byte).take_while(|byte| matches!(byte, b'\r' | b'\n'));
    start.line() + breaks.filter(|byte| *byte == b'\n').map(|_| 1).sum::<u64>()
}

impl Line {
    fn add_error(&mut self, column: &str, error: impl Into<String>) {
        let column: String = column.chars().take(MAX_ACCOUNT_LENGTH).collect();
        self.errors.push(body_error(format!("{}.{column}", self.place), error));
    }

    /// Adds the text of a column. An empty text is an absent value.
    fn add_cell(&mut self, column: &str, text: &str) {
        if !COLUMNS.contains(&column) {
            self.add_error(column, format!("is not a column; the columns are {}", COLUMNS.join(", ")));
        } else if !text.trim().is_empty() {
            self.cells.insert(column.to_owned(), text.trim().to_owned());
        }
    }

    /// Value of a column, parsed by `parse`; `None` if it is absent or invalid.
    fn read<T>(&mut self, column: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let parsed = parse(self.cells.get(column)?);
        parsed.map_err(|error| self.add_error(column, error)).ok()
    }

    /// Value of a required column.
    fn require<T>(&mut self, column: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let has_error = self.errors.iter().any(|error| error.param.ends_with(&format!(".{column}")));
        if !has_error && !self.cells.contains_key(column) {
            self.add_error(column, "is required");
        }
        self.read(column, parse)
    }

    /// Transaction of the line, and its symbol. `None` if the line has an error.
    fn parse(&mut self) -> Option<(Transaction, RequestedSymbol)> {
        let account = self.read("account", parse_account);
        let symbol = self.require("symbol", parse_symbol);
        let date = self.require("date", |text| parse_date(text).ok_or("is not a date, YYYY-MM-DD".into()));
        let quantity = self.require("quantity", parse_quantity);
        let unit = self.read("currency", |text| Currency::parse(text).ok_or("is not a currency".into()));
        let price = self.read("price", parse_price);
        let transaction = Transaction {
            place: self.place.clone(),
            account,
            symbol: 0,
            date: date?,
            quantity: quantity?,
            price: price.map(|price| unit.as_ref().map_or(price, |unit| unit.to_major(price))),
            currency: unit.map(|unit| unit.code),
        };
        Some((transaction, symbol?))
    }
}

fn parse_account(text: &str) -> Result<String, String> {
    let is_name = text.chars().count() <= MAX_ACCOUNT_LENGTH && !text.chars().any(char::is_control);
    let error = format!("is not a name of at most {MAX_ACCOUNT_LENGTH} characters");
    if is_name { Ok(text.to_owned()) } else { Err(error) }
}

fn parse_symbol(text: &str) -> Result<RequestedSymbol, String> {
    let symbol = RequestedSymbol::parse_item(LIST, text).map_err(|error| error.to_string())?;
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
