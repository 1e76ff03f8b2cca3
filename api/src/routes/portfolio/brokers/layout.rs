//! Layouts of the tables in brokers' files. Each broker has one TOML file, which lists the names of the columns in
//! several languages, and the words for the kinds of rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use csv::StringRecord;
use serde::Deserialize;

/// Layouts of all brokers, in alphabetical order.
pub(super) static BROKERS: LazyLock<Vec<Broker>> =
    LazyLock::new(|| TEXTS.into_iter().flat_map(toml::from_str).collect());

const TEXTS: [&str; 6] = [
    include_str!("degiro.toml"),
    include_str!("fidelity.toml"),
    include_str!("interactive-brokers.toml"),
    include_str!("schwab.toml"),
    include_str!("trade-republic.toml"),
    include_str!("trading-212.toml"),
];

/// Tables in the files of a broker.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Broker {
    /// Name of the broker.
    pub(super) broker: String,
    table: Vec<Table>,
}

/// Layout of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Possible names of each needed column, best first. `Price >` is the column without a name after `Price`.
    columns: BTreeMap<Field, Vec<String>>,
    /// Possible names of the other columns.
    #[serde(default)]
    optional: BTreeMap<Field, Vec<String>>,
    /// Currency of prices and amounts without a column.
    pub(super) currency: Option<String>,
    /// Formats of dates, such as `DD-MM-YYYY`. A time may follow.
    pub(super) dates: Vec<String>,
    /// Text before the date that counts, if a cell has two dates.
    pub(super) date_after: Option<String>,
    /// Decimal mark of a number that fits two notations, such as `1.234`, unless another number of the file shows it.
    #[serde(default = "point")]
    pub(super) decimal: char,
    /// Words of the rows to read, by column. Only rows with one of the words are read.
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
    /// Kind of rows without a security. If it is absent, such a row is an error.
    pub(super) without_symbol: Option<String>,
    /// Beginnings of symbols that are not read, by the kind of their rows.
    #[serde(default)]
    pub(super) unused_symbols: BTreeMap<String, String>,
    /// True if quantity, price and currency of a trade are in the text of the action: `Buy 10 COLA@60.5 USD`.
    #[serde(default)]
    pub(super) has_trade_text: bool,
    /// Words of the action by the kind of the row. A word with `*` at its end is the beginning of an action.
    #[serde(default)]
    kinds: BTreeMap<String, Vec<String>>,
}

fn point() -> char {
    '.'
}

/// Value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Field {
    Account,
    /// ISIN or symbol of the security.
    Symbol,
    /// Day of a trade, and of a payment without a payment date.
    Date,
    PaymentDate,
    Quantity,
    Price,
    /// Currency of the price, and of an amount without a currency.
    Currency,
    Amount,
    AmountCurrency,
    /// Text that decides the kind of the row.
    Action,
    /// Id of an order. Opposite rows without an order are a split.
    Order,
    /// Column that is only in files of this broker. It is not read.
    Mark,
}

/// Numbers of a row.
pub(super) const NUMBERS: [Field; 3] = [Field::Quantity, Field::Price, Field::Amount];

/// Columns of one table in a file.
pub(super) struct TableColumns {
    pub(super) table: &'static Table,
    /// Places of the columns, with their names, best first.
    places: BTreeMap<Field, Vec<(usize, &'static str)>>,
    only: Vec<(usize, &'static str, &'static [String])>,
    /// Number of columns.
    width: usize,
}

impl Broker {
    /// Columns of the first table whose needed columns are all in a header.
    pub(super) fn find_table(&'static self, header: &StringRecord) -> Option<TableColumns> {
        self.table.iter().find_map(|table| table.find_columns(header))
    }
}

impl Table {
    fn find_columns(&'static self, header: &StringRecord) -> Option<TableColumns> {
        let mut places = BTreeMap::new();
        for (field, names) in &self.columns {
            let found: Vec<_> =
                names.iter().filter_map(|name| Some((place(header, name)?, name.as_str()))).collect();
            if found.is_empty() {
                return None;
            }
            places.insert(*field, found);
        }
        for (field, names) in &self.optional {
            let found = names.iter().filter_map(|name| Some((place(header, name)?, name.as_str())));
            places.insert(*field, found.collect());
        }
        let only = self.only.iter();
        let only =
            only.filter_map(|(name, words)| Some((place(header, name)?, name.as_str(), words.as_slice())));
        Some(TableColumns { table: self, places, only: only.collect(), width: header.len() })
    }

    /// Kind of a row with an action: that of the longest word that fits.
    pub(super) fn kind(&'static self, action: &str) -> Option<&'static str> {
        let words = self.kinds.iter().flat_map(|(kind, words)| words.iter().map(move |word| (word, kind)));
        let fitting = words.filter(|(word, _)| match word.strip_suffix('*') {
            Some(beginning) => starts_with(action, beginning),
            None => action.eq_ignore_ascii_case(word),
        });
        fitting.max_by_key(|(word, _)| word.len()).map(|(_, kind)| kind.as_str())
    }
}

/// Place of a column in a header.
fn place(header: &StringRecord, name: &str) -> Option<usize> {
    let find = |name: &str| header.iter().position(|column| column.eq_ignore_ascii_case(name));
    match name.strip_suffix(" >") {
        None => find(name),
        Some(name) => {
            let next = find(name)? + 1;
            header.get(next).filter(|column| column.is_empty()).map(|_| next)
        }
    }
}

pub(super) fn starts_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

impl TableColumns {
    /// Text of a value in a row: that of the first column that is not empty. Empty without a column.
    pub(super) fn text<'r>(&self, row: &'r StringRecord, field: Field) -> &'r str {
        let places = self.places.get(&field).into_iter().flatten();
        let mut cells = places.filter_map(|(place, _)| row.get(*place));
        cells.find(|cell| !cell.is_empty()).unwrap_or_default()
    }

    /// Name of the column of a value, for errors. A value without a column is in the text of the action.
    pub(super) fn name(&self, field: Field) -> &'static str {
        let places = self.places.get(&field).or_else(|| self.places.get(&Field::Action));
        places.and_then(|places| places.first()).map_or("", |(_, name)| name)
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.places.contains_key(&field)
    }

    /// True if a row is the header of another section: a cell has the name of its column.
    pub(super) fn is_header(&self, row: &StringRecord) -> bool {
        let mut places = self.places.values().flatten();
        places.any(|(place, name)| row.get(*place).is_some_and(|cell| cell.eq_ignore_ascii_case(name)))
    }

    /// True if a row is a line of text, such as a disclaimer or the rest of a long name.
    pub(super) fn is_text(&self, row: &StringRecord) -> bool {
        let is_single = row.iter().filter(|cell| !cell.is_empty()).count() == 1;
        let is_unnamed = [Field::Date, Field::Symbol].iter().all(|field| self.text(row, *field).is_empty());
        is_single || is_unnamed || row.len() * 2 < self.width
    }

    /// Column and word of a row that is not read, because the column has another word than the words to read.
    pub(super) fn excluding_word<'r>(&self, row: &'r StringRecord) -> Option<(&'static str, &'r str)> {
        let words =
            self.only.iter().map(|(place, name, words)| (*name, row.get(*place).unwrap_or_default(), words));
        let mut excluding =
            words.filter(|(_, word, words)| !words.iter().any(|known| known.eq_ignore_ascii_case(word)));
        excluding.next().map(|(name, word, _)| (name, word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_can_be_read() {
        for text in TEXTS {
            toml::from_str::<Broker>(text).expect("a layout");
        }
        assert_eq!(BROKERS.len(), TEXTS.len());
    }
}
