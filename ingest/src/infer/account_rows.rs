//! Lists of an account's transactions: the rows with dividends, and the column with the amount of one share.
//!
//! The type of a row decides what its price is: in a row of a dividend, it is the dividend of one share. A total of all
//! shares is never such an amount.

use std::collections::BTreeSet;

use market::event::Kind;

use super::column_choice::canonical_column;
use super::row_checks::Product;
use super::table_profile::{ColumnContent, ColumnProfile, TableProfile};
use crate::format::{is_word_of, words_of, words_of_topic};

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
