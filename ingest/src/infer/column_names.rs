//! Mapping of vendors' column names to canonical columns, which are the columns of this program's own CSV format.

use market::event::Kind;

use crate::format::{canonical_column_of, is_word_of, normalize_column_name};

/// Canonical column for a vendor's column name, and the reliability of the name (see [`strength`]). `None` if the name
/// is unknown.
pub(super) fn canonical_column(kind: Kind, name: &str) -> Option<(&'static str, u8)> {
    let rows = match kind {
        Kind::Dividend => "dividend",
        Kind::Split => "split",
        _ => "price",
    };
    // A number of another size, such as thousands of shares or an amount for ten shares, is no canonical value.
    if words_of_remark(name).iter().any(|word| is_word_of("scale in a name", word)) {
        return None;
    }
    let find = |name: &str| {
        let name = normalize_column_name(name);
        Some((canonical_column_of(rows, &name)?, strength(&name)))
    };
    find(name).or_else(|| find(&without_remark(name))).or_else(|| {
        let words = words_of(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match kind {
            Kind::Dividend => dividend_column(&words),
            Kind::Split => split_column(&words),
            _ => price_column(&words),
        }
    })
}

/// Reliability of a known column name, from 1 (ambiguous) to 3 (unambiguous).
fn strength(name: &str) -> u8 {
    match name {
        "amount" | "cashamount" | "price" | "kurs" | "date" | "datum" | "stock" | "instrument" | "o"
        | "h" | "l" | "c" | "v" | "t" | "volumen" | "umsatz" => 1,
        "last" | "zuletzt" | "numerator" | "denominator" => 2,
        _ => 3,
    }
}

/// Name without a remark in brackets: `Dividend` for `Dividend ($/sh)`.
fn without_remark(name: &str) -> String {
    name.split(['(', '[']).next().unwrap_or_default().to_owned()
}

/// Lower-case words of a name with its remark in brackets.
fn words_of_remark(name: &str) -> Vec<String> {
    words_of(&name.replace(['(', ')', '[', ']', '\''], " "))
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

const DATE_WORDS: [&str; 5] = ["date", "day", "datetime", "datum", "dt"];
const SYMBOL_WORDS: [&str; 4] = ["ticker", "symbol", "tickers", "symbols"];

fn has(words: &[&str], known: &[&str]) -> bool {
    words.iter().any(|word| known.contains(word))
}

fn price_column(words: &[&str]) -> Option<(&'static str, u8)> {
    if has(words, &SYMBOL_WORDS) && words.len() <= 2 && !has(words, &["currency"]) {
        return Some(("symbol", 3));
    }
    if has(words, &["currency", "ccy", "curr"]) {
        return Some(("currency", 3));
    }
    if words.iter().any(|word| is_word_of("other price column", word)) {
        return None;
    }
    if has(words, &DATE_WORDS) {
        let of_session =
            ["trade", "trading", "session", "business", "price", "quote", "market", "as", "of", "close"];
        let plain = words.iter().all(|word| DATE_WORDS.contains(word) || of_session.contains(word));
        return plain.then_some(("date", if words.len() == 1 { 1 } else { 2 }));
    }
    // A word that neither means a price nor is usual with one gives the name another meaning: `lastBearMkt`.
    if words.iter().any(|word| !is_word_of("word of a price column", word)) {
        return None;
    }
    let columns: [(&[&str], &str); 5] = [
        (&["close", "closing", "closed", "last"], "close"),
        (&["open", "opening"], "open"),
        (&["high", "highest"], "high"),
        (&["low", "lowest"], "low"),
        (&["volume", "vol"], "volume"),
    ];
    columns.into_iter().find(|(known, _)| has(words, known)).map(|(_, column)| (column, 2))
}

fn dividend_column(words: &[&str]) -> Option<(&'static str, u8)> {
    let dated = has(words, &DATE_WORDS);
    if has(words, &SYMBOL_WORDS) && words.len() <= 2 && !has(words, &["currency"]) {
        return Some(("symbol", 3));
    }
    if has(words, &["currency", "ccy", "curr"]) && !dated {
        return Some(("currency", 3));
    }
    if has(words, &["type", "kind", "category"]) {
        return Some(("type", 3));
    }
    if words.iter().any(|word| is_word_of("other dividend column", word)) {
        return None;
    }
    let paid = ["pay", "paid", "payment", "payable", "payout", "distributed"];
    let dates: [(&[&str], &str, u8); 4] = [
        (&["ex", "exdate", "exdiv", "exdividend", "xd"], "ex_date", 3),
        (&["record"], "record_date", 3),
        (&["declaration", "declared", "declare", "announcement", "announced"], "declaration_date", 3),
        (&["effective"], "ex_date", 2),
    ];
    if let Some((_, column, strength)) = dates.iter().find(|(known, ..)| has(words, known)) {
        return Some((*column, *strength));
    }
    if has(words, &paid) && (dated || words.len() == 1 && words[0] != "payout") {
        return Some(("payment_date", 3));
    }
    if dated {
        return (words.len() == 1).then_some(("ex_date", 1));
    }
    // `gross` means a gross dividend only if all other words of the name are in this list. `gross profit` is not a
    // dividend.
    let gross = [
        "gross",
        "dividend",
        "dividends",
        "distribution",
        "amount",
        "cash",
        "per",
        "share",
        "rate",
        "payment",
    ];
    if has(words, &["payout"]) && words.len() > 1
        || has(words, &["gross"]) && !words.iter().all(|word| gross.contains(word))
    {
        return None;
    }
    if words.iter().any(|word| !is_word_of("word of a dividend column", word)) {
        return None;
    }
    if has(words, &["dividend", "dividends", "distribution", "distributions", "dps", "gross", "dividende"]) {
        return Some(("amount", 3));
    }
    has(words, &["amount", "cash", "payout", "div", "value", "valor", "betrag"]).then_some(("amount", 1))
}

fn split_column(words: &[&str]) -> Option<(&'static str, u8)> {
    let dated = has(words, &DATE_WORDS);
    if has(words, &SYMBOL_WORDS) {
        return (words.len() <= 2 && !has(words, &["old", "new", "from", "to"])).then_some(("symbol", 3));
    }
    if dated {
        let later =
            has(words, &["pay", "payable", "payment", "record", "announcement", "declaration", "announced"]);
        let ex = has(words, &["ex", "effective", "execution", "split"]);
        let other = has(words, &["dividend", "div"]);
        return (!later && !other && (ex || words.len() == 1)).then_some(("ex_date", if ex { 3 } else { 1 }));
    }
    let other =
        ["adj", "adjusted", "adjustment", "price", "cumulative", "name", "id", "payout", "dividend", "ex"];
    if has(words, &other) {
        return None;
    }
    let counted =
        has(words, &["quantity", "shares", "share", "factor", "qty", "units", "ratio", "amount", "split"]);
    if has(words, &["from", "old", "before"]) && (counted || words.len() == 1) {
        return Some(("from", 3));
    }
    if has(words, &["to", "new", "after"]) && (counted || words.len() == 1) {
        return Some(("to", 3));
    }
    if has(words, &["type", "direction", "kind", "action"]) {
        return Some(("direction", 1));
    }
    let of_split =
        |word: &&str| ["ratio", "split", "splits", "stock", "share", "factor", "last"].contains(word);
    if has(words, &["ratio", "split", "splits"]) && words.iter().all(of_split) {
        return Some(("ratio", 3));
    }
    has(words, &["factor", "multiplier"]).then_some(("ratio", 1))
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
