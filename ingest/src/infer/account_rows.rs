//! Readings of a table that its rows decide.
//!
//! Lists of an account's transactions: the rows with dividends, and the column with the amount of one share. The type of a
//! row decides what its price is: in a row of a dividend, it is the dividend of one share. A total of all shares is never
//! such an amount.
//!
//! Checks of a reading against the rows of the table: products of share counts and amounts, the order of the prices of a
//! bar, and closes that contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use market::decimal::parse_figure;
use market::event::Kind;
use rust_decimal::Decimal;

use super::cell_formats::split_currency_unit;
use super::column_choice::canonical_column;
use super::table_profile::{ColumnContent, ColumnProfile, TableProfile};
use crate::format::{is_word_of, words_of, words_of_topic};
use crate::price::conflicting_prices::{are_in_conflict, column_of_words};

/// Maximum number of different words in a column of types.
const MAX_TYPES: usize = 40;

/// Rows and columns of an account's dividends.
pub(super) struct AccountRows {
    /// Column whose words separate dividends from other transactions.
    pub(super) type_column: Option<usize>,
    /// Words of the type column that mean dividends.
    pub(super) dividend_words: Vec<String>,
    /// True if the list has other transactions too.
    pub(super) has_others: bool,
    pub(super) amount: AmountColumns,
}

/// Columns that may have the amount of one share.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AmountColumns {
    /// The rows or the column's name show it.
    Certain(usize),
    /// Each of these columns may have it.
    Open(Vec<usize>),
    /// No column has it.
    Missing,
}

impl AccountRows {
    /// Examines a table that may be a list of an account's transactions. `None` for other tables.
    pub(super) fn find(profile: &TableProfile, label: &str) -> Option<Self> {
        let is_number = |column: &ColumnProfile| column.content == ColumnContent::Numbers;
        let has_number = |is_wanted: &dyn Fn(&str) -> bool| {
            profile.columns.iter().any(|column| is_number(column) && is_wanted(&column.name))
        };
        let is_type = |column: &ColumnProfile| {
            !is_number(column)
                && !column.content.is_dated()
                && (has_word(column, is_trade) || has_word(column, is_dividend))
                && column.cells.iter().collect::<BTreeSet<_>>().len() <= MAX_TYPES
        };
        let type_column = profile.positions(is_type).first().copied();
        let quantity =
            profile.positions(|column| is_number(column) && is_share_count(&column.name)).first().copied();
        let has_type = |is_word| type_column.is_some_and(|index| has_word(&profile.columns[index], is_word));
        let is_paid =
            |name: &str| canonical_column(Kind::Dividend, name).is_some_and(|(name, _)| name == "amount");
        let has_money = quantity.is_some() || has_number(&|name| is_amount(name) || is_price(name));
        let has_dividends = has_type(is_dividend);
        let is_priced = has_dividends && has_number(&is_price) && !has_number(&is_paid);
        let is_named = words_of(label).iter().any(|word| word.starts_with("transaction"));
        let has_amounts = has_dividends || has_number(&is_paid);
        let is_account =
            has_type(is_trade) && has_money || is_priced || has_amounts && (quantity.is_some() || is_named);
        if !is_account {
            return None;
        }
        let mut dividend_words: Vec<String> = Vec::new();
        for cell in type_column.into_iter().flat_map(|index| &profile.columns[index].cells) {
            if is_dividend(cell) && !dividend_words.contains(cell) {
                dividend_words.push(cell.clone());
            }
        }
        let is_dividend_row = |row: &usize| {
            type_column.is_none_or(|column| dividend_words.contains(&profile.columns[column].rows[*row]))
        };
        let rows: Vec<usize> = (0..profile.row_count()).filter(is_dividend_row).collect();
        let has_others = rows.len() < profile.row_count();
        let amount = amount_columns(profile, &rows, quantity, type_column.is_some());
        Some(Self { type_column, dividend_words, has_others, amount })
    }
}

/// Finds the amount of one share in the rows of dividends.
fn amount_columns(
    profile: &TableProfile,
    rows: &[usize],
    quantity: Option<usize>,
    has_types: bool,
) -> AmountColumns {
    let mut numbers = profile.positions(|column| column.content == ColumnContent::Numbers);
    numbers.retain(|index| profile.has_values(*index, rows));
    let name = |index: &usize| profile.columns[*index].name.as_str();
    let named = |is_wanted: &dyn Fn(&str) -> bool| -> Vec<usize> {
        numbers.iter().copied().filter(|index| is_wanted(name(index))).collect()
    };
    let explicit = named(&is_per_share);
    let dividends = named(&|name| is_per_share(name) && words_of(name).iter().any(|word| is_dividend(word)));
    if let [one] = if dividends.is_empty() { explicit.as_slice() } else { dividends.as_slice() } {
        return AmountColumns::Certain(*one);
    }
    let products = |amount: usize, is_taxed: bool| {
        let others = numbers.iter().copied().filter(move |total| *total != amount);
        let quantity = quantity.filter(|quantity| *quantity != amount);
        quantity.is_some_and(|quantity| {
            others
                .filter(|total| *total != quantity)
                .any(|total| profile.is_product(Product { quantity, amount, total }, rows, is_taxed))
        })
    };
    let mut proven = named(&|name| is_amount(name) || is_price(name));
    proven.retain(|index| products(*index, false));
    if let [one] = proven[..] {
        return AmountColumns::Certain(one);
    }
    let prices = named(&is_price);
    let totals = named(&|name| is_amount(name) && !is_price(name));
    match prices[..] {
        // With the number of shares next to it, the price of a dividend is that of one share. A total that is not the
        // product contradicts it.
        [price] if has_types && quantity.is_some_and(|quantity| profile.has_values(quantity, rows)) => {
            if totals.is_empty() || products(price, true) {
                return AmountColumns::Certain(price);
            }
            AmountColumns::Open([&[price], totals.as_slice()].concat())
        }
        [] if quantity.is_some() || totals.len() < 2 => AmountColumns::Missing,
        _ if has_types => AmountColumns::Open([prices.as_slice(), totals.as_slice()].concat()),
        _ => AmountColumns::Missing,
    }
}

fn has_word(column: &ColumnProfile, is_word: fn(&str) -> bool) -> bool {
    column.cells.iter().any(|cell| is_word(cell))
}

/// True for the type of a trade: `Market buy`, `Kauf`.
fn is_trade(cell: &str) -> bool {
    let words = words_of(cell);
    words.len() <= 4 && words.iter().any(|word| is_word_of("trade", word))
}

/// True for the type of a cash dividend: `Dividend (Ordinary)`, `Ausschüttung`. Its tax and its reinvestment are other
/// types.
pub(super) fn is_dividend(cell: &str) -> bool {
    let lower = cell.trim().to_lowercase();
    let has = |topic: &str| words_of_topic(topic).iter().any(|word| lower.contains(word));
    cell.len() <= 60
        && (has("type of a dividend") || is_word_of("code of a dividend", &lower))
        && !has("no type of a dividend")
}

/// True if the name of a column means the number of shares of the account: `Shares`, `No. of shares`.
fn is_share_count(name: &str) -> bool {
    let words = words_of(name);
    let other = ["from", "to", "old", "new", "traded", "outstanding", "price", "per", "value"];
    words.len() <= 3
        && words.iter().any(|word| is_word_of("share count", word))
        && !words.iter().any(|word| other.contains(&word.as_str()))
        && !name.contains('/')
}

/// True if the name of a column says that its amounts are of one share.
pub(super) fn is_per_share(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_currency = words_of(&lower).iter().any(|word| ["currency", "ccy"].contains(&word.as_str()));
    !is_currency && words_of_topic("amount of one share").iter().any(|part| lower.contains(part))
}

fn is_amount(name: &str) -> bool {
    words_of(name).iter().any(|word| is_word_of("amount", word))
}

fn is_price(name: &str) -> bool {
    words_of(name).iter().any(|word| ["price", "kurs", "rate", "preis", "cours"].contains(&word.as_str()))
}

/// Maximum percentage of rows that may contradict a reading.
const MAX_CONTRADICTIONS_PERCENT: usize = 10;
/// Tolerances of a product: relative, and absolute for a total that is rounded to cents.
const PRODUCT_TOLERANCE: Decimal = Decimal::from_parts(5, 0, 0, false, 3);
const CENT_TOLERANCE: Decimal = Decimal::from_parts(6, 0, 0, false, 3);
/// Smallest share of a total that is left after taxes.
const LEAST_AFTER_TAX: Decimal = Decimal::from_parts(6, 0, 0, false, 1);
/// Tolerance of the order of a bar's prices, for rounded digits.
const BAR_TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 3);

/// Columns of an amount of one share, the number of shares, and the total of all shares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub(super) quantity: usize,
    pub(super) amount: usize,
    pub(super) total: usize,
}

/// Rows with two closes for one symbol and day.
pub(super) struct RepeatedDays {
    pub(super) rows: usize,
    /// Column whose words differ between the rows, and its words in file order.
    pub(super) column: Option<(String, Vec<String>)>,
}

impl TableProfile {
    pub(super) fn row_count(&self) -> usize {
        self.columns.iter().map(|column| column.rows.len()).max().unwrap_or_default()
    }

    /// Number in a cell, by the notation of the table.
    pub(super) fn number(&self, column: usize, row: usize) -> Option<Decimal> {
        let cell = self.columns.get(column)?.rows.get(row)?;
        let (bare, _) = split_currency_unit(cell.trim_matches(['-', '+', ' ']));
        let (decimal, thousands) = (if self.notation.comma { ',' } else { '.' }, self.notation.thousands);
        let grouped = |c: &char| Some(*c) == thousands || thousands == Some(' ') && c.is_whitespace();
        let plain: String =
            bare.chars().filter(|c| !grouped(c)).map(|c| if c == decimal { '.' } else { c }).collect();
        parse_figure(&plain).ok().map(|number| number.value)
    }

    /// True if a column has a value above zero in at least half of the rows.
    pub(super) fn has_values(&self, column: usize, rows: &[usize]) -> bool {
        let valued = |row: &&usize| self.number(column, **row).is_some_and(|number| number > Decimal::ZERO);
        !rows.is_empty() && rows.iter().filter(valued).count() * 2 >= rows.len()
    }

    /// True if the total is the product in every row that has the three numbers. With `is_taxed`, the total may also be
    /// smaller by taxes. A row with one share proves nothing.
    pub(super) fn is_product(&self, product: Product, rows: &[usize], is_taxed: bool) -> bool {
        let mut proofs = 0;
        for row in rows {
            let number = |column: usize| self.number(column, *row).filter(|number| !number.is_zero());
            let (Some(quantity), Some(amount), Some(total)) =
                (number(product.quantity), number(product.amount), number(product.total))
            else {
                continue;
            };
            let Some(expected) = quantity.checked_mul(amount) else { return false };
            let tolerance = total * PRODUCT_TOLERANCE + CENT_TOLERANCE;
            let is_after_tax = is_taxed && total < expected && total >= expected * LEAST_AFTER_TAX;
            if (expected - total).abs() > tolerance && !is_after_tax {
                return false;
            }
            proofs += usize::from(quantity != Decimal::ONE);
        }
        proofs > 0
    }

    /// True if the texts of most rows name an amount `per share`, but another than the column has.
    pub(super) fn has_other_amount_in_text(&self, amount: usize) -> bool {
        let (mut named, mut others) = (0, 0);
        for row in 0..self.row_count() {
            let Some(expected) = self.number(amount, row) else { continue };
            let cells = self.columns.iter().filter_map(|column| column.rows.get(row));
            let texts = cells.map(|cell| cell.to_lowercase()).filter(|cell| cell.contains("per share"));
            for text in texts {
                let mut numbers = text
                    .split(|c: char| !c.is_ascii_digit() && c != '.')
                    .filter_map(|part| parse_figure(part.trim_matches('.')).ok());
                named += 1;
                others += usize::from(!numbers.any(|number| number.value == expected));
            }
        }
        named > 0 && others * 2 > named
    }

    /// True if open and close are between low and high in nearly all rows. `bar` has the columns of open, high, low and
    /// close.
    pub(super) fn is_bar(&self, bar: [usize; 4]) -> bool {
        let (mut rows, mut contradictions) = (0, 0);
        for row in 0..self.row_count() {
            let number = |column: usize| self.number(column, row).filter(|number| !number.is_zero());
            let [Some(open), Some(high), Some(low), Some(close)] = bar.map(number) else { continue };
            let slack = high * BAR_TOLERANCE;
            let is_within = |price: Decimal| price >= low - slack && price <= high + slack;
            rows += 1;
            contradictions += usize::from(high < low || !is_within(open) || !is_within(close));
        }
        contradictions * 100 <= rows * MAX_CONTRADICTIONS_PERCENT
    }

    /// Rows whose close differs by more than 0.5 % from an earlier row of the same symbol and day; `None` without such
    /// rows.
    pub(super) fn repeated_days(
        &self,
        symbol: Option<usize>,
        date: usize,
        close: usize,
    ) -> Option<RepeatedDays> {
        let mut first_rows: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut pairs: Vec<[usize; 2]> = Vec::new();
        for row in 0..self.row_count() {
            let cell = |column: usize| self.columns[column].rows.get(row).map_or("", String::as_str);
            let first = *first_rows.entry((symbol.map_or("", cell), cell(date))).or_insert(row);
            if let (Some(one), Some(other)) = (self.number(close, first), self.number(close, row))
                && are_in_conflict(one, other)
            {
                pairs.push([first, row]);
            }
        }
        let record = |row: usize| -> Vec<String> {
            self.columns.iter().map(|column| column.rows.get(row).cloned().unwrap_or_default()).collect()
        };
        let records: Vec<[Vec<String>; 2]> = pairs.iter().map(|pair| pair.map(record)).collect();
        let records: Vec<[&[String]; 2]> =
            records.iter().map(|[one, other]| [one.as_slice(), other.as_slice()]).collect();
        let column = column_of_words(self.columns.len(), &records).map(|column| {
            let mut words: Vec<String> = Vec::new();
            for record in records.iter().flatten() {
                if !words.contains(&record[column]) {
                    words.push(record[column].clone());
                }
            }
            (self.columns[column].name.clone(), words)
        });
        (!pairs.is_empty()).then_some(RepeatedDays { rows: pairs.len(), column })
    }
}
