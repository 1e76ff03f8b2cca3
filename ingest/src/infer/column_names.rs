//! Mapping of vendors' column names to canonical columns, which are the columns of this program's own CSV format.

use market::event::Kind;

use crate::format::{canonical_column_of, is_word_of, normalize_column_name, words_of_topic};

/// Canonical column for a vendor's column name, and the reliability of the name, from 1 (ambiguous) to 3
/// (unambiguous). `None` if the name is unknown. A remark in brackets and a unit, as in `close_usd`, change nothing.
pub(super) fn canonical_column(kind: Kind, name: &str) -> Option<(&'static str, u8)> {
    // A number of another size, such as thousands of shares or an amount for ten shares, is no canonical value.
    let all_words = words_of(&name.replace(['(', ')', '[', ']', '\''], " "));
    if all_words.iter().any(|word| is_word_of("scale in a name", word)) {
        return None;
    }
    let find = |name: &str| canonical_column_of(kind, &normalize_column_name(name));
    let mut words = words_of(name);
    find(name).or_else(|| find(without_remark(name))).or_else(|| {
        let last = words.pop()?;
        let mut units = words_of_topic("unit in a name").iter().filter_map(|entry| entry.split_once(' '));
        units.find(|(unit, _)| unit.len() > 1 && *unit == last)?;
        find(&words.concat())
    })
}

/// Name without a remark in brackets: `Dividend` for `Dividend ($/sh)`.
fn without_remark(name: &str) -> &str {
    name.split(['(', '[']).next().unwrap_or_default()
}

/// Lower-case words of a name, without a remark in brackets: `pay` and `date` for `payDate`.
pub(super) fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in without_remark(name).chars() {
        let begins = !last.is_alphanumeric() || last.is_lowercase() && c.is_uppercase();
        if c.is_alphanumeric() {
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        last = c;
    }
    words
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
