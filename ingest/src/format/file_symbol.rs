//! Symbols in the names of files that hold one symbol: `AAPL.csv`, `1398-HK-1d-prices.csv`, `WIKI-AAPL-2012-quandl.csv`.

use market::symbol::Symbol;

/// Names that say what a file is, not whose.
const NO_SYMBOLS: [&str; 16] = [
    "data",
    "dividend",
    "dividends",
    "split",
    "splits",
    "download",
    "history",
    "historical",
    "price",
    "prices",
    "quote",
    "quotes",
    "stock",
    "stocks",
    "table",
    "wiki",
];

/// The symbol a file's name gives; a message when it says that the rows are not daily, or nothing.
pub(super) fn symbol_of(stem: &str) -> Result<Symbol, String> {
    let mut tokens = stem.split(['-', '_', ' ']).filter(|token| !token.is_empty()).peekable();
    if tokens.peek().is_some_and(|token| token.eq_ignore_ascii_case("wiki")) {
        tokens.next();
    }
    let root = tokens.next().unwrap_or_default();
    let suffix = tokens.next_if(|token| is_suffix(token));
    let rest = tokens.next();
    if rest.is_some_and(|token| interval(token) == Some(false))
        || tokens.any(|token| interval(token) == Some(false))
    {
        return Err(format!("is not daily by its name ({stem}): only daily rows are loaded"));
    }
    let known_form = rest.is_none_or(|token| is_year(token) || interval(token).is_some());
    let named = known_form && root.len() <= 12 && !NO_SYMBOLS.contains(&root.to_ascii_lowercase().as_str());
    let text = suffix.map_or_else(|| root.to_owned(), |suffix| format!("{root}.{suffix}"));
    let symbol = named.then(|| Symbol::parse(&text).ok()).flatten();
    symbol.ok_or_else(|| {
        "does not say whose rows it holds: say --symbol, or name the file by the symbol (AAPL.csv)".to_owned()
    })
}

/// Exchange or share class: one to three capital letters.
fn is_suffix(token: &str) -> bool {
    token.len() <= 3 && token.bytes().all(|b| b.is_ascii_uppercase())
}

fn is_year(token: &str) -> bool {
    token.len() == 4 && token.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a token is an interval, and whether it is a day.
fn interval(token: &str) -> Option<bool> {
    let unit = token.trim_start_matches(|c: char| c.is_ascii_digit());
    let counted = unit.len() < token.len();
    match unit {
        "d" if counted => Some(token == "1d"),
        "m" | "h" | "wk" | "mo" if counted => Some(false),
        "daily" => Some(true),
        "weekly" | "monthly" | "hourly" | "intraday" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_symbols() {
        for (stem, symbol) in [
            ("AAPL", "AAPL"),
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
        ] {
            let found = symbol_of(stem).map_or_else(|_| "?".to_owned(), |symbol| symbol.to_string());
            assert_eq!(found, symbol, "{stem}");
        }
    }

    #[test]
    fn a_weekly_file_is_told_from_a_nameless_one() {
        assert!(symbol_of("AV-L-1wk-x").unwrap_err().contains("daily"));
        assert!(symbol_of("some-old-export").unwrap_err().contains("--symbol"));
    }
}
