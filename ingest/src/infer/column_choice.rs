//! Choice of the kind of a table's rows, and of the column for each canonical column, by the names of the columns and
//! their cells. The canonical columns are the columns of this program's own CSV format.
//!
//! Wide tables: the columns are named by symbols (`AAPL`), by symbol and field (`AAPL_close`), or by dates.

use std::collections::BTreeSet;

use market::event::Kind;
use market::metrics::currency::Currency;
use rust_decimal::Decimal;

use super::cell_formats::{are_directions, cell_date_parser, is_ticker};
use super::table_profile::{ColumnContent, ColumnProfile, TableProfile};
use crate::format::{
    canonical_column_of, factor_in_name, is_word_of, meaning_of, normalize_column_name, without_remark,
    words_of,
};

/// Strength of a mapping that the rows confirm.
pub(super) const CONFIRMED: u8 = 4;

/// Canonical column, such as `close`, and the index of the file's column that contains its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedColumn {
    pub(super) name: &'static str,
    pub(super) index: usize,
    /// Reliability of the column name for this mapping, from 1 (ambiguous) to 3 (unambiguous). [`CONFIRMED`] if the rows
    /// confirm the mapping.
    pub(super) strength: u8,
}

/// Minimum strength of a column name (see [`MappedColumn::strength`]) for deciding the kind of the rows. With a lower
/// strength, more evidence is necessary.
const MIN_DECISIVE_STRENGTH: u8 = 2;

/// Kind of rows that the columns indicate. If the columns indicate several kinds or none, the kind in the file name
/// (`named`) decides.
pub(super) fn infer_kind(profile: &TableProfile, named: Option<Kind>) -> Option<Kind> {
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
    let found = [
        (Kind::Price, if bar { price.max(MIN_DECISIVE_STRENGTH) } else { price }),
        (Kind::Dividend, amount),
        (Kind::Split, split),
    ];
    let at_least = |min_strength: u8| -> Vec<Kind> {
        let kinds = found.into_iter().filter(|(_, strength)| *strength >= min_strength);
        kinds.map(|(kind, _)| kind).collect()
    };
    let is_named = |kinds: &[Kind]| named.is_some_and(|named| kinds.contains(&named));
    let (decisive, possible) = (at_least(MIN_DECISIVE_STRENGTH), at_least(1));
    match possible[..] {
        _ if is_named(&decisive) || decisive.is_empty() && is_named(&possible) => named,
        _ if !decisive.is_empty() => decisive.first().copied(),
        // Ambiguous column names decide only if they indicate exactly one kind. Dividends also need a date column, and
        // a file name that shows no kind.
        [sole] if sole != Kind::Dividend || dated && named.is_none() => Some(sole),
        _ => named,
    }
}

/// Best column of the file for each canonical column of a kind. A column is used only if its cells fit: a column for
/// `ex_date` must contain dates.
pub(super) fn columns_of(profile: &TableProfile, kind: Kind) -> Vec<MappedColumn> {
    let mut columns: Vec<MappedColumn> = Vec::new();
    for (index, column) in profile.columns.iter().enumerate() {
        let Some((name, strength)) = canonical_column(kind, column.own_name(&profile.layout)) else {
            continue;
        };
        let found = MappedColumn { name, index, strength };
        match columns.iter_mut().find(|known| known.name == name) {
            _ if !fits(name, column) => {}
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
    columns.sort_by_key(|column| column.index);
    columns
}

/// True if the cells of a column fit a canonical column.
fn fits(name: &str, column: &ColumnProfile) -> bool {
    match name {
        "direction" => are_directions(&column.cells),
        "symbol" => matches!(column.content, ColumnContent::Tickers | ColumnContent::Text),
        "currency" => {
            !column.cells.is_empty() && column.cells.iter().all(|cell| Currency::parse(cell).is_some())
        }
        "type" => !column.content.is_dated() && !column.cells.is_empty(),
        "ratio" => matches!(column.content, ColumnContent::Numbers | ColumnContent::Text),
        "amount" => {
            column.content == ColumnContent::Numbers
                && !is_percentage(column)
                && has_few_digits(column.sample())
        }
        name if is_date(name) => column.content.is_dated() || is_unix(column.sample()),
        _ => {
            matches!(column.content, ColumnContent::Numbers | ColumnContent::Empty) && !is_percentage(column)
        }
    }
}

/// True for percentages, by the column's name or by its cells.
pub(super) fn is_percentage(column: &ColumnProfile) -> bool {
    column.name.contains('%') || column.cells.iter().any(|cell| cell.ends_with('%'))
}

/// True if a number may be an amount per share: it has at most six integer digits.
fn has_few_digits(cell: &str) -> bool {
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

/// Other columns that may be the chosen column as well: their names are as reliable, and their values differ.
pub(super) fn rival_columns(profile: &TableProfile, kind: Kind, chosen: MappedColumn) -> Vec<usize> {
    let rows = &profile.columns[chosen.index].rows;
    profile.positions(|column| {
        let meaning = canonical_column(kind, column.own_name(&profile.layout));
        column.rows != *rows && meaning == Some((chosen.name, chosen.strength)) && fits(chosen.name, column)
    })
}

/// Columns whose amounts are like the chosen ones before or after a tax: in every row larger by up to 70 %.
pub(super) fn taxed_columns(profile: &TableProfile, chosen: usize) -> Vec<usize> {
    let is_amount =
        |name: &str| words_of(name).iter().any(|word| is_word_of("amount", word) || word == "div");
    let mut amounts = profile.positions(|column| is_amount(&column.name));
    amounts.retain(|index| {
        let pairs = (0..profile.row_count())
            .filter_map(|row| profile.number(chosen, row).zip(profile.number(*index, row)));
        let (mut pairs, mut is_larger) = (pairs, false);
        pairs.all(|(amount, other)| {
            is_larger |= other > amount;
            other >= amount && other * Decimal::TEN <= amount * Decimal::from(17)
        }) && is_larger
    });
    amounts
}

/// True for a table with the four prices of a bar.
pub(super) fn has_bar(profile: &TableProfile) -> bool {
    let columns = columns_of(profile, Kind::Price);
    ["open", "high", "low", "close"].iter().all(|name| columns.iter().any(|column| column.name == *name))
}

/// Canonical column for a vendor's column name, and the reliability of the name, from 1 (ambiguous) to 3
/// (unambiguous). `None` if the name is unknown. A remark in brackets and a unit, as in `close_usd`, change nothing.
pub(super) fn canonical_column(kind: Kind, name: &str) -> Option<(&'static str, u8)> {
    // A number of another size, such as thousands of shares or an amount for ten shares, does not fit.
    let all_words = words_of(&name.replace(['(', ')', '[', ']', '\''], " "));
    let scaled = canonical_column_of(kind, &normalize_column_name(without_remark(name)))
        .filter(|(column, _)| factor_in_name(column, name).is_some());
    if scaled.is_some() {
        return scaled;
    }
    if all_words.iter().any(|word| is_word_of("scale in a name", word)) {
        return None;
    }
    let find = |name: &str| canonical_column_of(kind, &normalize_column_name(name));
    let mut words = words_of(name);
    find(name).or_else(|| find(without_remark(name))).or_else(|| {
        let last = words.pop()?;
        meaning_of("unit in a name", &last).filter(|_| last.len() > 1)?;
        find(&words.concat())
    })
}

/// Kind of rows that the words of a file name indicate; `None` if no word indicates a kind.
pub(super) fn kind_in_name(label: &str) -> Option<Kind> {
    let name = label.rsplit(['/', '\\']).next().unwrap_or(label);
    let words = words_of(name);
    let is_named = |kind: &Kind| {
        let topic = format!("file of {kind}s");
        words.iter().any(|word| is_word_of(&topic, word))
    };
    [Kind::Dividend, Kind::Split, Kind::Price].into_iter().find(is_named)
}

/// Pattern of the column names in a wide table, for example `{symbol}_{field}`.
#[derive(Default)]
pub(super) struct WideLayout {
    pub(super) pattern: &'static str,
    /// Price fields of the table: canonical name, and the vendor's word in the column names. Empty if the pattern has
    /// no `{field}`.
    pub(super) fields: Vec<(&'static str, String)>,
    /// Columns that do not follow the pattern. The map skips them.
    pub(super) skip: Vec<String>,
}

const FIELD_PATTERNS: [(&str, char, bool); 7] = [
    ("{field}|{symbol}", '|', true),
    ("{symbol}|{field}", '|', false),
    ("{symbol}.{field}", '.', false),
    ("{symbol}_{field}", '_', false),
    ("{field}_{symbol}", '_', true),
    ("{symbol} {field}", ' ', false),
    ("{symbol}-{field}", '-', false),
];

/// Infers the pattern of the column names; `None` if the table is not wide.
pub(super) fn infer_wide_layout(profile: &TableProfile) -> Option<WideLayout> {
    if let Some(formats) = &profile.dates_across {
        let is_date = |name: &str| formats.iter().any(|format| cell_date_parser(format)(name).is_some());
        let others = profile.columns.iter().skip(1).filter(|column| !is_date(&column.name));
        let skip = others.map(|column| column.name.clone()).collect();
        return Some(WideLayout { pattern: "{date}", skip, ..WideLayout::default() });
    }
    let dates = profile.columns.iter().filter(|column| column.content.is_dated()).count();
    let is_value = |content: &ColumnContent| matches!(content, ColumnContent::Numbers | ColumnContent::Empty);
    let values: Vec<&str> = profile
        .columns
        .iter()
        .filter(|column| is_value(&column.content))
        .map(|column| column.name.as_str())
        .collect();
    if profile.header() == 0 || dates != 1 || values.len() < 2 {
        return None;
    }
    let texts = profile
        .columns
        .iter()
        .any(|column| matches!(column.content, ColumnContent::Tickers | ColumnContent::Text));
    let has_symbols = profile.columns.iter().any(|column| {
        matches!(column.content, ColumnContent::Tickers | ColumnContent::Text)
            && canonical_column(Kind::Price, &column.name).is_some_and(|(name, _)| name == "symbol")
    });
    if has_symbols {
        return None;
    }
    for (pattern, sign, field_first) in FIELD_PATTERNS {
        let mut fields: Vec<(&'static str, String)> = Vec::new();
        let fits = values.iter().filter(|name| {
            let parts =
                if field_first { name.split_once(sign) } else { name.rsplit_once(sign).map(|(a, b)| (b, a)) };
            let Some((field, _)) = parts.filter(|(_, symbol)| is_ticker(symbol)) else { return false };
            if let Some((meant, _)) =
                canonical_column(Kind::Price, field).filter(|(meant, _)| !["symbol", "date"].contains(meant))
                && !fields.iter().any(|(known, _)| *known == meant)
            {
                fields.push((meant, field.to_owned()));
            }
            true
        });
        if fits.count() * 2 > values.len() && fields.iter().any(|(name, _)| *name == "close") {
            return Some(WideLayout { pattern, fields, ..WideLayout::default() });
        }
    }
    let pattern = "{symbol}";
    (!texts && are_symbols(&values)).then(|| WideLayout { pattern, ..WideLayout::default() })
}

/// True if the column names are symbols, and not price fields. Some names, such as LOW, can be both.
fn are_symbols(names: &[&str]) -> bool {
    let small = names.iter().all(|name| !name.contains(|c: char| c.is_ascii_uppercase()));
    let is_symbol = |name: &&str| match small {
        true => name.len() <= 6 && is_ticker(&name.to_ascii_uppercase()),
        false => is_ticker(name),
    };
    let meanings =
        || names.iter().filter_map(|name| Some((canonical_column(Kind::Price, name)?.0, name.len())));
    let fields: BTreeSet<&str> = meanings().map(|(field, _)| field).collect();
    let bar = ["open", "high", "low", "close"].iter().all(|field| fields.contains(field));
    // A single letter such as C may be a symbol; the word CLOSE is a field.
    let has_close = meanings().any(|(field, length)| field == "close" && length > 1);
    let unknown = names.len() - meanings().count();
    names.iter().all(is_symbol) && !bar && !has_close && unknown * 2 >= names.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, names: &[(&str, &str)]) {
        for (name, column) in names {
            let found = canonical_column(kind, name).map_or("-", |(column, _)| column);
            assert_eq!(found, *column, "{name}");
        }
    }

    #[test]
    fn names_have_meanings_by_their_words() {
        check(
            Kind::Dividend,
            &[
                ("Dividend ($/sh)", "amount"),
                ("Cash Dividend Per Share", "amount"),
                ("gross", "amount"),
                ("net", "-"),
                ("Dividend Yield", "-"),
                ("pay_date", "payment_date"),
                ("payDate", "payment_date"),
                ("Ex-Dividend Date", "ex_date"),
                ("exDate", "ex_date"),
                ("Announced on date", "declaration_date"),
                ("Frequency", "-"),
            ],
        );
        check(
            Kind::Split,
            &[
                ("from_quantity", "from"),
                ("to_quantity", "to"),
                ("New Shares", "to"),
                ("effective_date", "ex_date"),
                ("record_date", "-"),
                ("old_symbol", "-"),
                ("Split Ratio (new:old)", "ratio"),
            ],
        );
        check(
            Kind::Price,
            &[
                ("close_price", "close"),
                ("Closing Price (USD)", "close"),
                ("Adj Close", "-"),
                ("Prev. Close", "-"),
                ("52 Week High", "-"),
                ("trade_date", "date"),
                ("Total Volume", "volume"),
            ],
        );
    }
}
