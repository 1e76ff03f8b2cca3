//! Words of vendors in cells: types of dividends and directions of splits.

use market::event::DividendType;

/// Canonical dividend type of a vendor's word.
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

/// Split direction of a vendor's word.
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

/// True if every word of a column is the direction of a split.
pub(super) fn are_directions(cells: &[String]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| split_direction(cell).is_some())
}
