//! Symbol from the name of a single-symbol file: `AAPL.csv`, `aapl.us.csv`, `1398-HK-1d-prices.csv`.
//!
//! A name without a clear symbol is refused, unless the command line or a map gives the symbol. A name with an interval
//! that is not daily, such as `1wk`, is always refused.

use market::symbol::Symbol;

use super::file_format::{ReaderOptions, SymbolScope};
use super::file_head::is_word_of;
use crate::source::feed_files::stem_of;

/// Symbol of a file without symbols in its rows. `label` is the name of the file. It comes from the command line, or else from the file name. `None` for
/// a file with symbols in its rows.
pub(super) fn resolve_file_symbol(
    label: &str,
    scope: SymbolScope,
    options: &ReaderOptions,
) -> Result<Option<Symbol>, String> {
    if scope != SymbolScope::File {
        return Ok(None);
    }
    // The name is parsed even with --symbol, because the name may show that the rows are not daily.
    let named = symbol_of(stem_of(label));
    if let Err(NameFault::NotDaily(stem)) = &named {
        return Err(format!("is not daily by its name ({stem}): only daily rows are loaded"));
    }
    if let Some(symbol) = &options.symbol {
        return Ok(Some(symbol.clone()));
    }
    if let Some(pattern) = &options.symbol_from {
        return pattern
            .extract_symbol(label)
            .map(Some)
            .ok_or_else(|| format!("has a name that does not match --symbol-from '{pattern}'"));
    }
    named.map(Some).map_err(|_| refusal(label))
}

/// Reason why a file name contains no symbol.
#[derive(Debug, PartialEq, Eq)]
enum NameFault {
    NotDaily(String),
    NoSymbol,
}

fn symbol_of(stem: &str) -> Result<Symbol, NameFault> {
    let words = || stem.split(['-', '_', ' ']).filter(|word| !word.is_empty());
    if words().any(|word| interval(word) == Some(false)) {
        return Err(NameFault::NotDaily(stem.to_owned()));
    }
    let mut words = words().peekable();
    if words.peek().is_some_and(|word| word.eq_ignore_ascii_case("wiki")) {
        words.next();
    }
    let root = words.next().unwrap_or_default();
    // A second word belongs to the symbol only after a hyphen: BRK-B, but not div_BX.
    let suffix = words.next_if(|word| is_suffix(word) && stem.contains(&format!("{root}-{word}")));
    let more = words.next();
    let known = more.is_none_or(|word| is_year(word) || interval(word).is_some());
    let lower = root.to_ascii_lowercase();
    let prefix = (suffix.is_some() || more.is_some()) && is_word_of("file prefix", &lower);
    if !known || prefix || root.len() > 12 || is_word_of("file content", &lower) || describes_file(root) {
        return Err(NameFault::NoSymbol);
    }
    let text = suffix.map_or_else(|| root.to_owned(), |suffix| format!("{root}.{suffix}"));
    // The suffix `.us` of the home market is not part of the symbol: aapl.us.
    let home = text.len().checked_sub(3).filter(|at| *at > 0);
    let home = home.filter(|at| text.get(*at..).is_some_and(|end| end.eq_ignore_ascii_case(".us")));
    Symbol::parse(home.map_or(text.as_str(), |at| &text[..at])).map_err(|_| NameFault::NoSymbol)
}

/// Error message for a file name without a clear symbol. It suggests symbols, and the options that set a symbol.
fn refusal(label: &str) -> String {
    let stem = stem_of(label);
    let parts =
        || stem.split(['-', '_', ' ']).filter_map(symbol_in).filter(|part| Symbol::parse(part).is_ok());
    // Tickers are usually in capitals, so a word in capitals is preferred.
    let in_capitals = parts().find(|part| {
        part.contains(|c: char| c.is_ascii_uppercase()) && !part.contains(|c: char| c.is_ascii_lowercase())
    });
    let part = in_capitals.or_else(|| parts().next());
    let (Some(part), true) = (part, stem.contains(['-', '_', ' ', '.'])) else {
        return "names no symbol: add --symbol, or name the file by the symbol (AAPL.csv)".to_owned();
    };
    let symbol = part.to_ascii_uppercase();
    let whole =
        Symbol::parse(&stem.replace('_', "-")).map(|whole| format!(" or {whole}")).unwrap_or_default();
    let name = label.rsplit(['/', '\\']).next().unwrap_or(label);
    let pattern = name.replacen(part, "{symbol}", 1);
    format!(
        "has an ambiguous name, {symbol}{whole}: add --symbol {symbol}, or --symbol-from '{pattern}' for all files with such names"
    )
}

/// Symbol that a word of a file name may contain: `AAPL` in `AAPL.US.div`, none in `daily`.
fn symbol_in(word: &str) -> Option<&str> {
    let named =
        |part: &&str| !is_descriptive(part) && !is_word_of("file exchange", &part.to_ascii_lowercase());
    let home = word.to_ascii_lowercase().ends_with(".us");
    let part = if home || describes_file(word) { word.split('.').find(named)? } else { word };
    Some(part).filter(named).filter(|part| part.len() <= 6 && !is_year(part))
}

/// True if a word with dots has a part that describes the file: `div` in `AAPL.US.div`, `2024` in `AAPL.2024`.
fn describes_file(word: &str) -> bool {
    let mut parts = word.split('.');
    let first = parts.next().unwrap_or_default();
    let mut more = parts.peekable();
    more.peek().is_some() && (is_descriptive(first) || more.any(|part| is_descriptive(part) || is_year(part)))
}

/// True if a word describes the content or the encoding of a file.
fn is_descriptive(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    ["file content", "file prefix", "file ending"].iter().any(|topic| is_word_of(topic, &lower))
        || interval(word).is_some()
}

/// True if the word may be an exchange or a share class: one to three capital letters.
fn is_suffix(word: &str) -> bool {
    word.len() <= 3 && word.bytes().all(|b| b.is_ascii_uppercase())
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit())
}

/// True for a daily interval such as `1d`, false for other intervals; `None` if the word is not an interval.
fn interval(word: &str) -> Option<bool> {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let counted = unit.len() < word.len();
    match unit {
        "d" if counted => Some(word == "1d"),
        "m" | "h" | "wk" | "mo" if counted => Some(false),
        "daily" => Some(true),
        "weekly" | "monthly" | "hourly" | "intraday" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column_map::name_pattern::SymbolPattern;

    #[test]
    fn names_give_symbols() {
        for (stem, symbol) in [
            ("AAPL", "AAPL"),
            ("aapl.us", "AAPL"),
            ("DIV", "DIV"),
            ("brk-b", "?"),
            ("BRK-B", "BRK.B"),
            ("BRK.B", "BRK.B"),
            ("1398-HK-1d-bad-div", "1398.HK"),
            ("CALM-1d-no-bad-divs", "CALM"),
            ("gdx-2006-yahoofinance", "GDX"),
            ("WIKI-yhoo-2011-quandl", "YHOO"),
            ("AV-L-1wk-bad-stock-split", "?"),
            ("EA-15m-no-bad-divs", "?"),
            ("prices", "?"),
            ("some-old-export", "?"),
            ("div_BX", "?"),
            ("div-BX", "?"),
            ("DIV_BX", "?"),
            ("BX_div", "?"),
            ("AAPL.US.div", "?"),
            ("GE.US.splits", "?"),
            ("prices.AAPL", "?"),
            ("AAPL.csv", "?"),
            ("AAPL.2024", "?"),
            ("0700.HK", "0700.HK"),
            ("T.TO", "T.TO"),
            ("é.us", "?"),
            (".us", "?"),
            ("éab", "?"),
        ] {
            let found = symbol_of(stem).map_or_else(|_| "?".to_owned(), |symbol| symbol.to_string());
            assert_eq!(found, symbol, "{stem}");
        }
        assert_eq!(symbol_of("AV-L-1wk-x"), Err(NameFault::NotDaily("AV-L-1wk-x".to_owned())));
    }

    #[test]
    fn a_doubtful_name_is_refused_with_its_readings() {
        let reason = refusal("2024/div_BX.csv");
        for part in ["BX or DIV.BX", "--symbol BX", "--symbol-from 'div_{symbol}.csv'"] {
            assert!(reason.contains(part), "{part} in {reason}");
        }
        for (name, reading, pattern) in [
            ("AAPL.US.div.json", "AAPL or AAPL.US.DIV", "{symbol}.US.div.json"),
            ("prices.AAPL.csv", "AAPL or PRICES.AAPL", "prices.{symbol}.csv"),
            ("client_dump_AAPL.csv", "AAPL or CLIENT.DUMP.AAPL", "client_dump_{symbol}.csv"),
            ("STOCK_US_XNAS_AAPL.csv", "AAPL or STOCK.US.XNAS.AAPL", "STOCK_US_XNAS_{symbol}.csv"),
        ] {
            let reason = refusal(name);
            assert!(reason.contains(reading) && reason.contains(&format!("'{pattern}'")), "{reason}");
        }
        assert!(refusal("prices.csv").contains("add --symbol"));
    }

    #[test]
    fn a_pattern_says_where_the_symbol_stands() {
        let found = |pattern: &str, label: &str| {
            SymbolPattern::parse(pattern).unwrap().extract_symbol(label).map(|symbol| symbol.to_string())
        };
        assert_eq!(found("div_{symbol}.csv", "2024/div_BX.csv").as_deref(), Some("BX"));
        assert_eq!(found("div_{symbol}", "div_BX.csv.gz").as_deref(), Some("BX"));
        assert_eq!(found("{symbol}/prices.csv", "x/AAPL/prices.csv").as_deref(), Some("AAPL"));
        assert_eq!(found("div_{symbol}.csv", "BX.csv"), None);
        assert!(SymbolPattern::parse("div.csv").is_err());
    }
}
