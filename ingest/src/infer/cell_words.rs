//! Meaning of vendors' words in cells: types of dividends and directions of splits.

use market::event::DividendType;

/// Dividend type that a vendor's word means: `interim` means `regular`. `None` if the word is unknown.
pub(super) fn dividend_type(word: &str) -> Option<&'static str> {
    let lower = word.trim().to_lowercase();
    let known = match lower.as_str() {
        "final" | "interim" | "cash" | "cd" | "ordinary" | "regular cash" | "quarterly" | "annual"
        | "monthly" | "semi-annual" => DividendType::Regular,
        "extra" | "extraordinary" | "special cash" | "sc" | "one-time" => DividendType::Special,
        "lt" => DividendType::CapitalGainLong,
        "st" => DividendType::CapitalGainShort,
        known => known.parse().ok()?,
    };
    Some(known.as_str())
}

/// Split direction that a vendor's word means: `consolidation` means `reverse`. `None` if the word is unknown.
pub(super) fn split_direction(word: &str) -> Option<&'static str> {
    let lower = word.trim().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["reverse", "consolidation"]) {
        Some("reverse")
    } else if has(&["forward", "split", "subdivision", "bonus"]) {
        Some("forward")
    } else {
        None
    }
}

/// True if every cell of a column is a word for a split direction. False for a column without cells.
pub(super) fn are_directions(cells: &[String]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| split_direction(cell).is_some())
}
