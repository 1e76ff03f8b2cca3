//! Transaction exports of brokers: recognition by the header line, and conversion of the rows to the service's
//! columns.
//!
//! Rows of brokers' files: the kind of a row, and its values as a line with the service's columns.
//!
//! Text before the header and after the rows is allowed. A header in the middle of a file begins another section.
//!
//! Texts of cells in brokers' files: dates and numbers in the notations of several countries. Numbers stay exact.

mod layout;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, NaiveDate};
use csv::StringRecord;
use market::decimal::parse_decimal;

use super::body_lines::{Line, NumberedRecord, read_records};
use crate::parameters::ParameterError;
use layout::{BROKERS, Broker, Field, NUMBERS, TableColumns, starts_with};

/// Rows of a broker's file.
pub(super) struct BrokerFile {
    /// Name of the broker.
    pub(super) broker: &'static str,
    /// Transactions and received dividends.
    pub(super) lines: Vec<Line>,
    /// Number of rows that are not used, by kind.
    pub(super) unused: BTreeMap<String, usize>,
}

/// Names of the brokers whose files are recognized.
pub(super) fn broker_names() -> Vec<&'static str> {
    BROKERS.iter().map(|broker| broker.broker.as_str()).collect()
}

/// Reads a broker's file, whose lines end with `\n`. `None` if no broker has a header of the file.
pub(super) fn read_broker_file(text: &str) -> Result<Option<BrokerFile>, ParameterError> {
    for delimiter in [b',', b';', b'\t'] {
        let records = read_records(text, delimiter)?;
        let header = records
            .iter()
            .find_map(|(_, record)| BROKERS.iter().find(|broker| broker.find_table(record).is_some()));
        if let Some(broker) = header {
            return Ok(Some(read_rows(broker, &records)));
        }
    }
    Ok(None)
}

fn read_rows(broker: &'static Broker, records: &[NumberedRecord]) -> BrokerFile {
    let mut unused: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |kind: String| *unused.entry(kind).or_default() += 1;
    let (mut tables, mut rows, mut is_inside) = (Vec::new(), Vec::new(), false);
    for (number, record) in records.iter().filter(|(_, record)| !record.iter().all(str::is_empty)) {
        if let Some(columns) = broker.find_table(record) {
            tables.push(columns);
            is_inside = true;
            continue;
        }
        let Some(columns) = tables.last() else { continue };
        if columns.is_header(record) {
            is_inside = false;
        } else if !is_inside {
            count("other section".to_owned());
        } else if columns.is_text(record) {
            count("text".to_owned());
        } else {
            rows.push((tables.len() - 1, *number, record));
        }
    }
    let rows: Vec<(&TableColumns, u64, &StringRecord)> =
        rows.into_iter().filter_map(|(table, number, row)| Some((tables.get(table)?, number, row))).collect();
    let mut numbers = rows.iter().flat_map(|(columns, _, row)| NUMBERS.map(|field| columns.text(row, field)));
    let mark = numbers.find_map(decimal_mark);

    let (mut lines, mut without_order, mut from_text) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_trades = false;
    for (columns, number, record) in rows {
        has_trades |= columns.has(Field::Quantity);
        match columns.read_row(number, record, mark.unwrap_or(columns.table.decimal)) {
            Row::Used(line) => lines.push(line),
            Row::WithoutOrder(line, key, is_sale) => without_order.push((line, key, is_sale)),
            Row::FromText(line) => from_text.push(line),
            Row::Unused(kind) => count(kind),
        }
    }
    let of_side = |side: bool| -> BTreeSet<_> {
        let rows = without_order.iter().filter(|(_, _, is_sale)| *is_sale == side);
        rows.map(|(_, key, _)| key.clone()).collect()
    };
    let splits: BTreeSet<_> = of_side(true).intersection(&of_side(false)).cloned().collect();
    for (line, key, _) in without_order {
        if splits.contains(&key) { count("split".to_owned()) } else { lines.push(line) }
    }
    for line in from_text {
        if has_trades { count("trade of another section".to_owned()) } else { lines.push(line) }
    }
    BrokerFile { broker: &broker.broker, lines, unused }
}

/// Maximum length of a word of a file in the name of a kind, in characters.
const MAX_WORD_LENGTH: usize = 24;

/// Result of reading a row.
pub(super) enum Row {
    Used(Line),
    /// Row without an order, with its security and day, and true for a sale. An opposite row makes it a split.
    WithoutOrder(Line, (String, String), bool),
    /// Trade in the text of a row. A table of trades has it too.
    FromText(Line),
    /// Row that is not used, with its kind.
    Unused(String),
}

/// Use of a row, named by the kinds of a layout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Purchase or sale, whose quantity is signed in the file.
    Signed,
    Purchase,
    Sale,
    Dividend,
}

impl Use {
    /// Use of the rows of a kind, and true for transfers of shares or cash. `None` for rows that are not used.
    fn of_kind(kind: &str) -> Option<(Self, bool)> {
        Some(match kind {
            "trade" => (Self::Signed, false),
            "purchase" => (Self::Purchase, false),
            "sale" => (Self::Sale, false),
            "dividend" => (Self::Dividend, false),
            "transfer" => (Self::Signed, true),
            "transfer_in" => (Self::Purchase, true),
            "transfer_out" => (Self::Sale, true),
            _ => return None,
        })
    }
}

impl TableColumns {
    /// Reads a row. `mark` is the decimal mark of a number that fits two notations.
    pub(super) fn read_row(&self, number: u64, row: &StringRecord, mark: char) -> Row {
        if let Some((column, word)) = self.excluding_word(row) {
            let word: String = word.chars().take(MAX_WORD_LENGTH).collect();
            return Row::Unused(format!("{column} {word}"));
        }
        let action = self.text(row, Field::Action);
        let kind = if self.has(Field::Action) { self.table.kind(action) } else { Some("trade") };
        let kind = kind.unwrap_or("unknown");
        let Some((used, is_transfer)) = Use::of_kind(kind) else { return Row::Unused(kind.to_owned()) };
        if let Some(kind) = self.unused_symbol(self.text(row, Field::Symbol)) {
            return Row::Unused(kind.to_owned());
        }
        let mut line = Line::new(format!("line {number}"), used == Use::Dividend);
        for (column, field) in [("account", Field::Account), ("symbol", Field::Symbol)] {
            line.set(column, self.name(field), self.text(row, field).to_owned());
        }
        if used == Use::Dividend {
            self.read_dividend(&mut line, row, mark);
            return Row::Used(line);
        }
        let trade = split_trade_text(action).filter(|_| self.table.has_trade_text);
        let [quantity, price, currency] = trade.unwrap_or_else(|| {
            [Field::Quantity, Field::Price, Field::Currency].map(|field| self.text(row, field))
        });
        let quantity = plain_number(quantity, mark);
        if is_transfer && !quantity.contains(|char| matches!(char, '1'..='9')) {
            return Row::Unused("transfer of cash".to_owned());
        }
        let is_sale = used == Use::Sale || used == Use::Signed && quantity.starts_with('-');
        let sign = if is_sale { "-" } else { "" };
        let unsigned = quantity.trim_start_matches('-');
        let signed = if unsigned.is_empty() { String::new() } else { format!("{sign}{unsigned}") };
        self.set_date(&mut line, row, Field::Date);
        line.set("quantity", self.name(Field::Quantity), signed);
        line.set("price", self.name(Field::Price), plain_number(price, mark));
        self.set_currency(&mut line, Field::Currency, currency);
        if trade.is_some() {
            Row::FromText(line)
        } else if self.has(Field::Order) && self.text(row, Field::Order).is_empty() {
            let key = [Field::Symbol, Field::Date].map(|field| self.text(row, field).to_owned());
            Row::WithoutOrder(line, key.into(), is_sale)
        } else {
            Row::Used(line)
        }
    }

    /// Kind of the rows of a security that are not used; `None` if they are used.
    fn unused_symbol(&self, symbol: &str) -> Option<&'static str> {
        if symbol.is_empty() {
            return self.table.without_symbol.as_deref();
        }
        let mut kinds = self.table.unused_symbols.iter();
        kinds.find(|(_, beginning)| starts_with(symbol, beginning)).map(|(kind, _)| kind.as_str())
    }

    fn read_dividend(&self, line: &mut Line, row: &StringRecord, mark: char) {
        let has = |field: Field| !self.text(row, field).is_empty();
        let dated = if has(Field::PaymentDate) { Field::PaymentDate } else { Field::Date };
        self.set_date(line, row, dated);
        line.set("amount", self.name(Field::Amount), plain_number(self.text(row, Field::Amount), mark));
        let currency = if has(Field::AmountCurrency) { Field::AmountCurrency } else { Field::Currency };
        self.set_currency(line, currency, self.text(row, currency));
    }

    fn set_date(&self, line: &mut Line, row: &StringRecord, field: Field) {
        let text = self.text(row, field);
        let separator = self.table.date_after.as_deref();
        let text = separator.and_then(|separator| text.split_once(separator)).map_or(text, |(_, date)| date);
        let date = parse_broker_date(text, &self.table.dates);
        line.set("date", self.name(field), date.map(|date| date.to_string()).unwrap_or_default());
        if date.is_none() {
            line.add_error("date", format!("is not a date, {}", self.table.dates.join(" or ")));
        }
    }

    fn set_currency(&self, line: &mut Line, field: Field, currency: &str) {
        let known = Some(currency).filter(|currency| !currency.is_empty());
        let currency = known.or(self.table.currency.as_deref()).unwrap_or_default();
        line.set("currency", self.name(field), currency.to_owned());
    }
}

/// Parses a date in one of some formats, such as `DD-MM-YYYY`. A time may follow.
fn parse_broker_date(text: &str, formats: &[String]) -> Option<NaiveDate> {
    let parse = |format: &String| {
        let format = format.replace("YYYY", "%Y").replace("MM", "%m").replace("DD", "%d");
        let (date, rest) = NaiveDate::parse_and_remainder(text, &format).ok()?;
        let is_whole = rest.is_empty() || rest.starts_with([' ', 'T', ',', ';']);
        Some(date).filter(|date| is_whole && (1..=9_999).contains(&date.year()))
    };
    formats.iter().find_map(parse)
}

/// Decimal mark of a number; `None` if the number fits two notations, such as `1.234`, or has no mark.
pub(super) fn decimal_mark(text: &str) -> Option<char> {
    let (whole, fraction) = text.rsplit_once(['.', ','])?;
    let mark = text[whole.len()..].chars().next()?;
    let other = if mark == '.' { ',' } else { '.' };
    let whole = whole.trim_start_matches(|char: char| !char.is_ascii_digit());
    let digits = fraction.chars().take_while(char::is_ascii_digit).count();
    if whole.contains(other) {
        Some(mark)
    } else if whole.contains(mark) {
        Some(other)
    } else if digits != 3 || whole.len() > 3 || whole.is_empty() || whole.starts_with('0') {
        Some(mark)
    } else {
        None
    }
}

/// Number without currency signs and marks between thousands, with a decimal point and at most ten decimal places.
/// `default` is the decimal mark of a number that fits two notations. A text that is not a number is returned as it is.
fn plain_number(text: &str, default: char) -> String {
    let is_sign = |char: char| matches!(char, '$' | '€' | '£' | '\'' | '’') || char.is_whitespace();
    let number: String = text.chars().filter(|char| !is_sign(*char)).collect();
    let mark = decimal_mark(&number).unwrap_or(default);
    let (whole, fraction) =
        number.split_once(mark).map_or((number.as_str(), None), |(whole, fraction)| (whole, Some(fraction)));
    let mut groups = whole.trim_start_matches(['-', '+']).split(if mark == '.' { ',' } else { '.' });
    let (first, rest): (_, Vec<&str>) = (groups.next().unwrap_or_default(), groups.collect());
    if !rest.is_empty() && (first.len() > 3 || rest.iter().any(|group| group.len() != 3)) {
        return text.to_owned();
    }
    let sign = if whole.starts_with('-') { "-" } else { "" };
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    let number = parse_decimal(&format!("{sign}{first}{}{fraction}", rest.concat()));
    number.map_or(text.to_owned(), |number| number.value.to_string())
}

/// Quantity, price and currency in the text of a trade: `Buy 10 COLA@60.5 USD`, `Kauf 5 zu je 33,9 USD`.
fn split_trade_text(text: &str) -> Option<[&str; 3]> {
    let (trade, price) = text.split_once('@').or_else(|| text.split_once(" zu je "))?;
    let mut price = price.split_whitespace();
    Some([trade.split_whitespace().nth(1)?, price.next()?, price.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_notation() {
        for (text, default, number) in [
            ("-1.234,50", '.', "-1234.5"),
            ("$1,259.59", '.', "1259.59"),
            ("-$694.48", '.', "-694.48"),
            ("500,135", '.', "500135"),
            ("500,135", ',', "500.135"),
            ("0,039", '.', "0.039"),
            ("1 950,6", '.', "1950.6"),
            ("1'950.60", '.', "1950.6"),
            ("1.234.567", '.', "1234567"),
            ("10", ',', "10"),
            ("+7", '.', "7"),
            ("0.10434099999999999", ',', "0.104341"),
            ("", '.', ""),
            ("12,34.567", '.', "12,34.567"),
            ("Processing", '.', "Processing"),
        ] {
            assert_eq!(plain_number(text, default), number, "{text} {default}");
        }
    }

    #[test]
    fn dates_may_have_a_time() {
        let formats = ["YYYYMMDD".to_owned(), "DD-MM-YYYY".to_owned()];
        let day = NaiveDate::from_ymd_opt(2024, 2, 5);
        for text in ["20240205", "20240205;103000", "05-02-2024", "5-2-2024 10:30"] {
            assert_eq!(parse_broker_date(text, &formats), day, "{text}");
        }
        for text in ["2024-02-05", "20240231", "20240205x", "", "05-02-0000"] {
            assert_eq!(parse_broker_date(text, &formats), None, "{text}");
        }
    }
}
