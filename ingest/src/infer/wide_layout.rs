//! Wide tables: the columns are named by symbols (`AAPL`), by symbol and field (`AAPL_close`), or by dates.

use std::collections::BTreeSet;

use market::event::Kind;

use super::cell_formats::{cell_date_parser, is_ticker};
use super::column_choice::canonical_column;
use super::table_profile::{ColumnContent, TableProfile};

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
