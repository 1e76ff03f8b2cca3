//! Proposes a column map: the kind of the rows and the column of each value. The user must add whatever the column
//! names and cells do not show.

use std::collections::BTreeSet;

use market::event::Kind;

use super::cell_words::are_directions;
use super::column_names::{canonical_column, kind_in_name, words_of};
use super::table_profile::{ColumnContent, TableProfile};
use super::wide_layout::{WideLayout, infer_wide_layout};
use crate::format::{is_word_of, normalize_column_name};

/// Order of the price columns in a file without a header.
const PRICE_ORDER: [&str; 5] = ["open", "high", "low", "close", "volume"];
/// Minimum strength of a column name (see [`MappedColumn::strength`]) for deciding the kind of the rows. With a lower
/// strength, more evidence is necessary.
const MIN_DECISIVE_STRENGTH: u8 = 2;

/// Canonical column, such as `close`, and the index of the file's column that contains its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedColumn {
    pub(super) name: &'static str,
    pub(super) index: usize,
    /// Reliability of the column name for this mapping, from 1 (ambiguous) to 3 (unambiguous).
    pub(super) strength: u8,
}

/// Contents of a proposed column map: kind of the rows, mapped columns, and layout of a wide table.
pub(super) struct Proposal {
    /// Kind of the rows; `None` if neither the columns nor the file name show it.
    pub(super) kind: Option<Kind>,
    pub(super) columns: Vec<MappedColumn>,
    pub(super) wide: Option<WideLayout>,
}

impl Proposal {
    /// Decides the kind and the columns from a table and its file name.
    pub(super) fn infer(profile: &TableProfile, label: &str) -> Result<Self, String> {
        let named = kind_in_name(label);
        if let Some(wide) = infer_wide_layout(profile) {
            if wide.fields.is_empty() {
                refuse_other_values(label)?;
            }
            let kind = named.filter(|_| wide.fields.is_empty()).unwrap_or(Kind::Price);
            let columns = wide_columns(profile, kind, &wide);
            return Ok(Self { kind: Some(kind), columns, wide: Some(wide) });
        }
        if profile.header() == 0 {
            return Ok(Self {
                kind: Some(named.unwrap_or(Kind::Price)),
                columns: by_content(profile),
                wide: None,
            });
        }
        refuse_transaction_list(profile, label)?;
        let kind = infer_kind(profile, named);
        let mut columns = kind.map(|kind| columns_of(profile, kind)).unwrap_or_default();
        let mapped: Vec<usize> = columns.iter().map(|column| column.index).collect();
        // If no symbol column is mapped, an unmapped ticker column with several values becomes the symbol column. The
        // file name cannot give the symbol, because it gives one symbol for all rows.
        let symbol = maybe_symbol(profile, &mapped).filter(|index| {
            let cells: BTreeSet<&String> = profile.columns[*index].cells.iter().collect();
            !columns.iter().any(|column| column.name == "symbol") && cells.len() > 1
        });
        columns.extend(symbol.map(|index| MappedColumn { name: "symbol", index, strength: 1 }));
        Ok(Self { kind, columns, wide: None })
    }

    /// Index of the file's column for a canonical column; `None` if the file has no such column.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.index)
    }

    pub(super) fn indexes(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.index).collect()
    }

    /// Canonical column that contains the date of a row: `date` for prices, otherwise `ex_date`.
    pub(super) fn day_column(&self) -> &'static str {
        if self.kind == Some(Kind::Price) { "date" } else { "ex_date" }
    }
}

/// Index of the first unmapped column that contains tickers. It may be the symbol column. `None` if no such column
/// exists. A column is excluded if its name has another meaning, such as currency.
pub(super) fn maybe_symbol(profile: &TableProfile, mapped: &[usize]) -> Option<usize> {
    (0..profile.columns.len()).find(|index| {
        let column = &profile.columns[*index];
        let words = words_of(column.own_name(&profile.layout));
        column.content == ColumnContent::Tickers
            && !mapped.contains(index)
            && !words.iter().any(|word| is_word_of("other ticker column", word))
    })
}

/// Kind of rows that the columns indicate. If the columns indicate several kinds or none, the kind in the file name
/// (`named`) decides.
fn infer_kind(profile: &TableProfile, named: Option<Kind>) -> Option<Kind> {
    let strength = |kind: Kind, name: &str| {
        let columns = columns_of(profile, kind);
        columns.iter().find(|column| column.name == name).map_or(0, |column| column.strength)
    };
    let price = strength(Kind::Price, "close");
    let bar = ["open", "high", "low"].iter().all(|name| strength(Kind::Price, name) > 0);
    let figures = has_company_figures(profile);
    let amount = if figures { 0 } else { strength(Kind::Dividend, "amount") };
    let dated = strength(Kind::Dividend, "ex_date") > 0 || strength(Kind::Dividend, "record_date") > 0;
    let sides = strength(Kind::Split, "from").min(strength(Kind::Split, "to"));
    let split = sides.max(strength(Kind::Split, "ratio"));
    // If the name of the ex-date column is unambiguous, an amount column is decisive for dividends. It is not decisive
    // in a table with columns for old and new shares, because such a table may contain splits.
    let ex_dated = strength(Kind::Dividend, "ex_date") > MIN_DECISIVE_STRENGTH && amount > 0 && sides == 0;
    let found = [
        (Kind::Price, if bar { price.max(MIN_DECISIVE_STRENGTH) } else { price }),
        (Kind::Dividend, if ex_dated { amount.max(MIN_DECISIVE_STRENGTH) } else { amount }),
        (Kind::Split, split),
    ];
    let at_least = |min_strength: u8| {
        found.into_iter().filter(move |(_, strength)| *strength >= min_strength).map(|(kind, _)| kind)
    };
    let decide = |min_strength: u8| {
        let mut kinds = at_least(min_strength);
        let first = kinds.next();
        named.filter(|named| at_least(min_strength).any(|kind| kind == *named)).or(first)
    };
    decide(MIN_DECISIVE_STRENGTH)
        .or_else(|| named.filter(|kind| at_least(1).any(|found| found == *kind)))
        .or_else(|| {
            // Ambiguous column names decide only if they indicate exactly one kind. Dividends also need a date column,
            // and a file name that shows no kind.
            let sole = at_least(1).count() == 1;
            decide(1).filter(|kind| sole && (*kind != Kind::Dividend || dated && named.is_none()))
        })
        .or(named)
}

/// Best column of the file for each canonical column of a kind. A column is used only if its cells fit: a column for
/// `ex_date` must contain dates.
pub(super) fn columns_of(profile: &TableProfile, kind: Kind) -> Vec<MappedColumn> {
    let mut columns: Vec<MappedColumn> = Vec::new();
    for (index, column) in profile.columns.iter().enumerate() {
        let Some((name, strength)) = canonical_column(kind, column.own_name(&profile.layout)) else {
            continue;
        };
        let fits = match name {
            "direction" => are_directions(&column.cells),
            "symbol" | "currency" | "type" => !column.content.is_dated() && !column.cells.is_empty(),
            "ratio" => matches!(column.content, ColumnContent::Numbers | ColumnContent::Text),
            "amount" => column.content == ColumnContent::Numbers && is_per_share(column.sample()),
            name if is_date(name) => column.content.is_dated() || is_unix(column.sample()),
            _ => matches!(column.content, ColumnContent::Numbers | ColumnContent::Empty),
        };
        let found = MappedColumn { name, index, strength };
        match columns.iter_mut().find(|known| known.name == name) {
            _ if !fits => {}
            Some(known) if known.strength < strength => *known = found,
            Some(_) => {}
            None => columns.push(found),
        }
    }
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    if has("from") && has("to") {
        columns.retain(|column| !matches!(column.name, "ratio" | "direction"));
    }
    // A column named `factor` or `multiplier` may apply to shares or prices. Without a column for the direction of the
    // split, this column is not a split ratio.
    let bare = |column: &MappedColumn| column.name == "ratio" && column.strength == 1;
    if !columns.iter().any(|column| column.name == "direction") {
        columns.retain(|column| !bare(column));
    }
    if kind == Kind::Price && !columns.iter().any(|column| column.name == "date") {
        let dated = |index: &usize| profile.columns[*index].content.is_dated();
        let dates: Vec<usize> = (0..profile.columns.len()).filter(dated).collect();
        if let [index] = dates[..] {
            columns.push(MappedColumn { name: "date", index, strength: 1 });
        }
    }
    columns.sort_by_key(|column| column.index);
    columns
}

/// True if a number may be an amount per share: it has at most six integer digits.
fn is_per_share(cell: &str) -> bool {
    let whole = cell.split(['.', ',']).next().unwrap_or_default();
    whole.bytes().filter(u8::is_ascii_digit).count() <= 6
}

/// True for a table of company figures such as market capitalization. The dividend in such a table is the sum of a
/// year, so the rows are not dividend payments.
fn has_company_figures(profile: &TableProfile) -> bool {
    profile
        .columns
        .iter()
        .any(|column| is_word_of("company figure", &normalize_column_name(column.own_name(&profile.layout))))
}

fn is_date(name: &str) -> bool {
    name == "date" || name.ends_with("_date")
}

/// True if a cell looks like a Unix time in seconds or milliseconds, in 1973 or later. Earlier times have fewer digits.
pub(super) fn is_unix(cell: &str) -> bool {
    matches!(cell.len(), 9 | 10 | 12 | 13) && cell.bytes().all(|byte| byte.is_ascii_digit())
}

/// Column that identifies the rows of a wide table. In a table with a column for each date, it is the symbol column,
/// otherwise the date column.
fn wide_columns(profile: &TableProfile, kind: Kind, wide: &WideLayout) -> Vec<MappedColumn> {
    if wide.pattern == "{date}" {
        return vec![MappedColumn { name: "symbol", index: 0, strength: 1 }];
    }
    let date = profile.columns.iter().position(|column| column.content.is_dated());
    let name = if kind == Kind::Price { "date" } else { "ex_date" };
    date.map(|index| MappedColumn { name, index, strength: 1 }).into_iter().collect()
}

/// Columns of a price table without a header, inferred from the contents of the columns.
fn by_content(profile: &TableProfile) -> Vec<MappedColumn> {
    let mut columns = Vec::new();
    let mut add = |name, index: usize| columns.push(MappedColumn { name, index, strength: 1 });
    let position = |wanted: &dyn Fn(&ColumnContent) -> bool| {
        profile.columns.iter().position(|column| wanted(&column.content))
    };
    if let Some(symbol) = position(&|content| *content == ColumnContent::Tickers) {
        add("symbol", symbol);
    }
    if let Some(date) = position(&ColumnContent::is_dated) {
        add("date", date);
    }
    let is_value = |index: &usize| {
        let column = &profile.columns[*index];
        column.content == ColumnContent::Numbers && column.sample() != "0"
    };
    let numbers: Vec<usize> = (0..profile.columns.len()).filter(is_value).collect();
    match numbers.as_slice() {
        [] => {}
        [only] => add("close", *only),
        [close, volume] => {
            add("close", *close);
            add("volume", *volume);
        }
        many => PRICE_ORDER.into_iter().zip(many).for_each(|(name, index)| add(name, *index)),
    }
    columns
}

/// Refuses a wide table if a word of the file name shows that the cells are not prices.
fn refuse_other_values(label: &str) -> Result<(), String> {
    match words_of(label).into_iter().find(|word| is_word_of("other file", word)) {
        Some(word) => Err(format!(
            "is a table with a column for each symbol; the word {word} in its name shows that the cells are not prices"
        )),
        None => Ok(()),
    }
}

/// Refuses a list of an account's transactions, because its amounts are for all shares held and not per share.
fn refuse_transaction_list(profile: &TableProfile, label: &str) -> Result<(), String> {
    let is_share_count = |name: &str| {
        let words = words_of(name);
        words.len() <= 2
            && words.iter().any(|word| is_word_of("share count", word))
            && !words
                .iter()
                .any(|word| ["from", "to", "old", "new", "traded", "outstanding"].contains(&word.as_str()))
    };
    let per_share = |name: &str| {
        let lower = name.to_lowercase();
        ["per share", "per_share", "pershare", "/share", "/sh", "dps", "per unit"]
            .iter()
            .any(|word| lower.contains(word))
    };
    let has_trades = |column: &super::table_profile::ColumnProfile| {
        column.content != ColumnContent::Numbers
            && column.cells.iter().any(|cell| is_word_of("trade", &cell.to_lowercase()))
    };
    let bar = ["open", "high", "low", "close"];
    let is_bar =
        bar.iter().all(|name| columns_of(profile, Kind::Price).iter().any(|column| column.name == *name));
    let amounts = columns_of(profile, Kind::Dividend).iter().any(|column| column.name == "amount");
    let has_share_counts = profile
        .columns
        .iter()
        .any(|column| column.content == ColumnContent::Numbers && is_share_count(&column.name));
    let is_named_transactions = words_of(label).iter().any(|word| word.starts_with("transaction"));
    let explicit = profile.columns.iter().any(|column| per_share(&column.name));
    let trades = profile.columns.iter().any(has_trades);
    if !is_bar && !explicit && (trades || amounts && (has_share_counts || is_named_transactions)) {
        return Err("looks like the transactions of an account: its amounts are for all shares of the account, but a map needs the amount of one share".to_owned());
    }
    Ok(())
}
