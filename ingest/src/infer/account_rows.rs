//! Lists of an account's transactions: the rows with dividends, and the column with the amount of one share.
//!
//! The type of a row decides what its price is: in a row of a dividend, it is the dividend of one share. A total of all
//! shares is never such an amount.

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
        let columns = || profile.columns.iter().enumerate();
        let is_typed = |column: &ColumnProfile| has_word(column, is_trade) || has_word(column, is_dividend);
        let is_type =
            |column: &ColumnProfile| !is_number(column) && !column.content.is_dated() && is_typed(column);
        let type_column = columns().find(|(_, column)| is_type(column) && has_few_words(column));
        let quantity = columns().find(|(_, column)| is_number(column) && is_share_count(&column.name));
        let has_trades = type_column.is_some_and(|(_, column)| has_word(column, is_trade));
        let is_named = words_of(label).iter().any(|word| word.starts_with("transaction"));
        let is_paid = |column: &ColumnProfile| {
            canonical_column(Kind::Dividend, &column.name).is_some_and(|(name, _)| name == "amount")
        };
        let is_money = |column: &ColumnProfile| is_amount(&column.name) || is_price(&column.name);
        let has_numbers = |is_wanted: &dyn Fn(&ColumnProfile) -> bool| {
            profile.columns.iter().any(|column| is_number(column) && is_wanted(column))
        };
        let has_trades = has_trades && (quantity.is_some() || has_numbers(&is_money));
        let has_dividends = type_column.is_some_and(|(_, column)| has_word(column, is_dividend));
        let is_priced =
            has_dividends && has_numbers(&|column| is_price(&column.name)) && !has_numbers(&is_paid);
        let has_amounts = has_numbers(&is_paid) || has_dividends;
        if !has_trades && !is_priced && !(has_amounts && (quantity.is_some() || is_named)) {
            return None;
        }
        let mut dividend_words: Vec<String> = Vec::new();
        for cell in type_column.iter().flat_map(|(_, column)| &column.cells) {
            if is_dividend(cell) && !dividend_words.contains(cell) {
                dividend_words.push(cell.clone());
            }
        }
        let type_column = type_column.map(|(index, _)| index);
        let is_dividend_row = |row: &usize| {
            type_column.is_none_or(|column| dividend_words.contains(&profile.columns[column].rows[*row]))
        };
        let rows: Vec<usize> = (0..profile.row_count()).filter(is_dividend_row).collect();
        let has_others = rows.len() < profile.row_count();
        let quantity = quantity.map(|(index, _)| index);
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
    let numbers: Vec<usize> = (0..profile.columns.len())
        .filter(|index| {
            profile.columns[*index].content == ColumnContent::Numbers && profile.has_values(*index, rows)
        })
        .collect();
    let name = |index: &usize| profile.columns[*index].name.as_str();
    let explicit: Vec<usize> = numbers.iter().copied().filter(|index| is_per_share(name(index))).collect();
    let dividends: Vec<usize> = explicit
        .iter()
        .copied()
        .filter(|index| words_of(name(index)).iter().any(|word| is_dividend(word)))
        .collect();
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
    let proven: Vec<usize> = numbers
        .iter()
        .copied()
        .filter(|index| (is_amount(name(index)) || is_price(name(index))) && products(*index, false))
        .collect();
    if let [one] = proven[..] {
        return AmountColumns::Certain(one);
    }
    let prices: Vec<usize> = numbers.iter().copied().filter(|index| is_price(name(index))).collect();
    let totals: Vec<usize> =
        numbers.iter().copied().filter(|index| is_amount(name(index)) && !prices.contains(index)).collect();
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

fn has_few_words(column: &ColumnProfile) -> bool {
    let mut words: Vec<&String> = column.cells.iter().collect();
    words.sort_unstable();
    words.dedup();
    words.len() <= MAX_TYPES
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
