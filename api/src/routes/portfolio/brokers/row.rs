//! Rows of brokers' files: the kind of a row, and its values as a line with the service's columns.

use csv::StringRecord;

use super::cell_text::{parse_broker_date, plain_number, split_trade_text};
use super::layout::{Field, TableColumns, starts_with};
use crate::routes::portfolio::body_lines::Line;

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
