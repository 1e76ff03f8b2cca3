//! Proposes a column map: the kind of the rows and the column of each value. The user must add whatever the column
//! names and cells do not show.

use std::collections::BTreeSet;

use market::event::Kind;

use super::account_rows::{AccountRows, AmountColumns};
use super::cell_formats::is_ticker;
use super::column_choice::{
    CONFIRMED, MappedColumn, WideLayout, columns_of, has_bar, infer_kind, infer_wide_layout, kind_in_name,
    rival_columns, taxed_columns,
};
use super::table_profile::{ColumnContent, ColumnProfile, TableProfile, names_symbols};
use crate::format::{is_word_of, normalize_column_name, words_of};

/// Orders of the price columns in a file without a header, the most frequent first.
const PRICE_ORDERS: [[&str; 5]; 2] =
    [["open", "high", "low", "close", "volume"], ["open", "close", "high", "low", "volume"]];

/// Contents of a proposed column map: kind of the rows, mapped columns, and layout of a wide table.
#[derive(Default)]
pub(super) struct Proposal {
    /// Kind of the rows; `None` if neither the columns nor the file name show it.
    pub(super) kind: Option<Kind>,
    pub(super) columns: Vec<MappedColumn>,
    pub(super) wide: Option<WideLayout>,
    /// Canonical columns with more than one possible reading. The map has none of these readings; the user chooses.
    pub(super) open: Vec<OpenQuestion>,
    /// Column of the file and the words of the rows to read; `None` if all rows are read.
    pub(super) only: Option<(usize, Vec<String>)>,
}

/// Canonical column for which several readings remain.
pub(super) struct OpenQuestion {
    pub(super) name: &'static str,
    /// Readings: canonical columns, each with the index of the file's column.
    pub(super) readings: Vec<(&'static str, usize)>,
    pub(super) reason: String,
}

impl OpenQuestion {
    fn new(name: &'static str, columns: &[usize], reason: impl Into<String>) -> Self {
        let readings = columns.iter().map(|index| (name, *index)).collect();
        Self { name, readings, reason: reason.into() }
    }
}

impl Proposal {
    /// Decides the kind and the columns from a table and its file name.
    pub(super) fn infer(profile: &TableProfile, label: &str) -> Result<Self, String> {
        let named = kind_in_name(label);
        if let Some(wide) = infer_wide_layout(profile) {
            let has_fields = !wide.fields.is_empty();
            let words = words_of(label);
            if let Some(word) = words.iter().find(|word| !has_fields && is_word_of("other file", word)) {
                return Err(format!(
                    "is a table with a column for each symbol; the word {word} in its name shows that the cells are not prices"
                ));
            }
            let kind = named.filter(|_| !has_fields).or(Some(Kind::Price));
            let mut proposal = Self { kind, ..Self::default() };
            // The column that identifies a line: the date, or in a table with a column for each date the symbol.
            let (name, index) = match wide.pattern {
                "{date}" => ("symbol", Some(0)),
                _ => (
                    proposal.day_column(),
                    profile.columns.iter().position(|column| column.content.is_dated()),
                ),
            };
            proposal.columns.extend(index.map(|index| MappedColumn { name, index, strength: 1 }));
            proposal.wide = Some(wide);
            return Ok(proposal);
        }
        if profile.header() == 0 {
            let (kind, columns) = (named.or(Some(Kind::Price)), by_content(profile));
            return Ok(Self { kind, columns, ..Self::default() });
        }
        let account = if has_bar(profile) { None } else { AccountRows::find(profile, label) };
        let mut proposal = match account {
            Some(account) => Self::of_account(profile, account)?,
            None => {
                let kind = infer_kind(profile, named);
                let columns = kind.map(|kind| columns_of(profile, kind)).unwrap_or_default();
                Self { kind, columns, ..Self::default() }
            }
        };
        proposal.find_symbols(profile, named.is_some());
        proposal.open_doubts(profile);
        Ok(proposal)
    }

    /// Proposal for the dividends in a list of an account's transactions.
    fn of_account(profile: &TableProfile, account: AccountRows) -> Result<Self, String> {
        const REFUSAL: &str = "looks like the transactions of an account: its amounts are for all shares of the account, but a map needs the amount of one share";
        let (kind, columns) = (Some(Kind::Dividend), columns_of(profile, Kind::Dividend));
        let mut proposal = Self { kind, columns, ..Self::default() };
        proposal.columns.retain(|column| {
            !matches!(column.name, "amount" | "type") && Some(column.index) != account.type_column
        });
        match account.amount {
            AmountColumns::Missing => return Err(REFUSAL.to_owned()),
            AmountColumns::Open(columns) => proposal.open.push(OpenQuestion::new(
                "amount",
                &columns,
                "the amount of one share is not certain: the rows do not confirm it by the number of shares",
            )),
            AmountColumns::Certain(index) => {
                proposal.columns.push(MappedColumn { name: "amount", index, strength: CONFIRMED });
                let currency = format!("currency ({})", profile.columns[index].name.to_lowercase());
                let is_its = |column: &ColumnProfile| column.name.to_lowercase() == currency;
                if let Some(index) = profile.columns.iter().position(is_its) {
                    proposal.columns.retain(|column| column.name != "currency");
                    proposal.columns.push(MappedColumn { name: "currency", index, strength: 3 });
                }
            }
        }
        if let Some(column) = account.type_column {
            proposal.only = Some((column, account.dividend_words)).filter(|_| account.has_others);
            let generic = |column: &&MappedColumn| column.name == "ex_date" && column.strength < 3;
            if let Some(MappedColumn { index, .. }) = proposal.columns.iter().find(generic).copied() {
                proposal.columns.retain(|column| column.name != "ex_date");
                proposal.open.push(OpenQuestion {
                    name: "ex_date",
                    readings: vec![("ex_date", index), ("payment_date", index)],
                    reason: "the date of a transaction is usually the day of payment".to_owned(),
                });
            }
        }
        proposal.columns.sort_by_key(|column| column.index);
        Ok(proposal)
    }

    /// Finds the symbol column, if no column is named so. A column of tickers becomes the symbol column if it has
    /// several values, or if the file has the name of a kind. The name of the file gives one symbol for all rows.
    fn find_symbols(&mut self, profile: &TableProfile, is_named_by_kind: bool) {
        if self.column("symbol").is_some() {
            return;
        }
        let tickers = ticker_columns(profile, self);
        let has_several = |index: &usize| {
            let cells: BTreeSet<&String> = profile.columns[*index].cells.iter().collect();
            cells.len() > 1 || is_named_by_kind || self.only.is_some()
        };
        match tickers[..] {
            [index] if has_several(&index) => {
                self.columns.push(MappedColumn { name: "symbol", index, strength: 1 });
            }
            [_, _, ..] if tickers.iter().any(has_several) => {
                self.open.push(OpenQuestion::new(
                    "symbol",
                    &tickers,
                    "several columns have cells like symbols",
                ));
            }
            _ => {
                let mut numbers = profile.positions(|column| {
                    column.content == ColumnContent::Numbers
                        && names_symbols(column.own_name(&profile.layout))
                });
                numbers.retain(|index| !self.indexes().contains(index));
                if let Some(index) = numbers.first() {
                    let reason = "its cells are numbers, and a number is rarely a symbol: with the column, give the symbols in [aliases.symbol], or a suffix in [symbols]";
                    self.open.push(OpenQuestion::new("symbol", &[*index], reason));
                }
            }
        }
    }

    /// True if the rows are of several securities, but the map has no symbol column. The name of the file then gives no
    /// symbol.
    pub(super) fn has_several_symbols(&self, profile: &TableProfile) -> bool {
        let names_securities = |column: &&ColumnProfile| {
            let name = column.own_name(&profile.layout);
            names_symbols(name) || is_word_of("security identifier", &normalize_column_name(name))
        };
        let has_several = |column: &ColumnProfile| column.cells.iter().collect::<BTreeSet<_>>().len() > 1;
        self.open.iter().any(|question| question.name == "symbol")
            || profile.columns.iter().filter(names_securities).any(has_several)
    }

    /// Removes the columns whose reading the rows contradict, or another column makes doubtful.
    fn open_doubts(&mut self, profile: &TableProfile) {
        let Some(kind) = self.kind else { return };
        let bar = ["open", "high", "low", "close"].map(|name| self.column(name));
        if let [Some(open), Some(high), Some(low), Some(close)] = bar
            && !profile.is_bar([open, high, low, close])
        {
            self.columns.retain(|column| !["open", "high", "low", "close"].contains(&column.name));
            self.open.push(OpenQuestion {
                name: "close",
                readings: vec![("open", open), ("high", high), ("low", low), ("close", close)],
                reason: "the prices of many rows are not between low and high".to_owned(),
            });
        }
        for name in ["amount", "close", "ex_date", "date"] {
            let Some(chosen) = self.columns.iter().find(|column| column.name == name).copied() else {
                continue;
            };
            if name == "amount" && profile.has_other_amount_in_text(chosen.index) {
                self.columns.retain(|column| column.name != name);
                let reason = "a text of the row has another amount of one share, so that this one is a total";
                self.open.push(OpenQuestion::new(name, &[], reason));
                continue;
            }
            let mut rivals = rival_columns(profile, kind, chosen);
            if name == "amount" && self.only.is_none() && chosen.strength < 3 {
                rivals.extend(taxed_columns(profile, chosen.index));
            }
            if !rivals.is_empty() {
                rivals.insert(0, chosen.index);
                self.columns.retain(|column| column.name != name);
                self.open.push(OpenQuestion::new(name, &rivals, "several columns may have it"));
            }
        }
    }

    /// Index of the file's column for a canonical column; `None` if the file has no such column.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.index)
    }

    pub(super) fn indexes(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.index).collect()
    }

    /// First cell of a column with a value, in the rows that are read.
    pub(super) fn sample<'a>(&self, profile: &'a TableProfile, index: usize) -> &'a str {
        let column = &profile.columns[index];
        let Some((selecting, words)) = &self.only else { return column.sample() };
        let mut rows = column.rows.iter().zip(&profile.columns[*selecting].rows);
        let found = rows.find(|(cell, word)| words.contains(word) && !cell.is_empty());
        found.map_or("", |(cell, _)| cell)
    }

    /// Canonical column that contains the date of a row: `date` for prices, otherwise `ex_date`.
    pub(super) fn day_column(&self) -> &'static str {
        if self.kind == Some(Kind::Price) { "date" } else { "ex_date" }
    }
}

/// Unmapped columns that contain tickers, of which one may be the symbol column. A column is excluded if its name has
/// another meaning, such as currency. Columns with the names of symbol columns exclude all others.
pub(super) fn ticker_columns(profile: &TableProfile, proposal: &Proposal) -> Vec<usize> {
    let mut found = profile.positions(|column| {
        let has_tickers = match &proposal.only {
            None => column.content == ColumnContent::Tickers,
            Some((selecting, selected)) => {
                let rows = column.rows.iter().zip(&profile.columns[*selecting].rows);
                let mut cells = rows.filter(|(_, word)| selected.contains(word)).map(|(cell, _)| cell);
                column.name != profile.columns[*selecting].name && cells.all(|cell| is_ticker(cell))
            }
        };
        let words = words_of(column.own_name(&profile.layout));
        has_tickers && !words.iter().any(|word| is_word_of("other ticker column", word))
    });
    found.retain(|index| !proposal.indexes().contains(index));
    let is_named = |index: &&usize| names_symbols(profile.columns[**index].own_name(&profile.layout));
    found.iter().find(is_named).map_or(found.clone(), |named| vec![*named])
}

/// Columns of a price table without a header, inferred from the contents of the columns.
fn by_content(profile: &TableProfile) -> Vec<MappedColumn> {
    let first = |is_wanted: &dyn Fn(&ColumnContent) -> bool| {
        profile.positions(|column| is_wanted(&column.content)).first().copied()
    };
    let symbol = first(&|content| *content == ColumnContent::Tickers);
    let date = first(&ColumnContent::is_dated);
    let numbers =
        profile.positions(|column| column.content == ColumnContent::Numbers && column.sample() != "0");
    let names: &[&str] = match numbers.len() {
        0 => &[],
        1 => &["close"],
        2 => &["close", "volume"],
        3 => &PRICE_ORDERS[0],
        // The rows decide the order of the prices. If they contradict each order, no price is mapped.
        _ => {
            let is_bar = |order: &&[&str; 5]| {
                let position = |name: &str| order.iter().position(|known| *known == name).unwrap_or_default();
                profile.is_bar(["open", "high", "low", "close"].map(|name| numbers[position(name)]))
            };
            PRICE_ORDERS.iter().find(is_bar).map_or(&[], <[&str; 5]>::as_slice)
        }
    };
    let named =
        [("symbol", symbol), ("date", date)].into_iter().filter_map(|(name, index)| Some((name, index?)));
    let columns = named.chain(names.iter().copied().zip(numbers.iter().copied()));
    columns.map(|(name, index)| MappedColumn { name, index, strength: 1 }).collect()
}
