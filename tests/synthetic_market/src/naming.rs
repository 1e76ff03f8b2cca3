//! Tickers, sectors and countries of synthetic securities. The index of a security alone determines its ticker.

/// The eleven sectors with three industries each.
pub(super) const SECTORS: [(&str, [&str; 3]); 11] = [
    ("Communication Services", ["Telecom Services", "Media", "Interactive Entertainment"]),
    ("Consumer Discretionary", ["Specialty Retail", "Hotels and Leisure", "Automobile Parts"]),
    ("Consumer Staples", ["Household Products", "Beverages", "Food Products"]),
    ("Energy", ["Oil and Gas Midstream", "Oil and Gas Exploration", "Energy Equipment"]),
    ("Financials", ["Banks", "Insurance", "Capital Markets"]),
    ("Health Care", ["Pharmaceuticals", "Health Care Equipment", "Biotechnology"]),
    ("Industrials", ["Machinery", "Aerospace", "Road and Rail"]),
    ("Information Technology", ["Semiconductors", "Software", "Technology Hardware"]),
    ("Materials", ["Chemicals", "Metals and Mining", "Packaging"]),
    ("Real Estate", ["Retail REITs", "Industrial REITs", "Residential REITs"]),
    ("Utilities", ["Electric Utilities", "Water Utilities", "Gas Utilities"]),
];

/// Index of the energy sector in [`SECTORS`].
pub(super) const ENERGY: usize = 3;
pub(super) const FINANCIALS: usize = 4;
pub(super) const REAL_ESTATE: usize = 9;
pub(super) const UTILITIES: usize = 10;

/// Home countries of depositary receipts.
pub(super) const FOREIGN: [&str; 6] = ["GB", "DE", "FR", "JP", "BR", "CA"];

const CONSONANTS: [char; 9] = ['B', 'D', 'L', 'M', 'N', 'R', 'S', 'T', 'V'];
const VOWELS: [char; 5] = ['A', 'E', 'I', 'O', 'U'];
/// Number of different syllables: nine consonants times five vowels.
const SYLLABLES: u64 = 45;
/// Securities with an index below this number have tickers of three syllables. All other securities have tickers of
/// four syllables. This applies to current and former tickers.
const SHORT: u64 = SYLLABLES.pow(3) / 2;
/// Maximum number of securities in a market. Up to this number, [`ticker`] and [`former_ticker`] give no ticker twice.
pub(super) const MAX_SYMBOLS: u64 = 1_000_000;

/// Ticker of a security. It has at least six letters, and so differs from real American tickers, which are shorter.
pub(super) fn ticker(index: u64) -> String {
    match index.checked_sub(SHORT) {
        None => spelled(index, 3),
        Some(later) => spelled(later, 4),
    }
}

/// Former ticker of a renamed security, distinct from all current tickers.
pub(super) fn former_ticker(index: u64) -> String {
    let last = |syllables| SYLLABLES.pow(syllables) - 1;
    match index.checked_sub(SHORT) {
        None => spelled(last(3) - index, 3),
        Some(later) => spelled(last(4) - later, 4),
    }
}

/// Ticker of `syllables` syllables for a number. Different numbers give different tickers.
fn spelled(number: u64, syllables: u32) -> String {
    let tickers = SYLLABLES.pow(syllables);
    // The factor is coprime to the number of tickers, so no two numbers give the same ticker.
    let mut rest = (number % tickers) * 48_271 % tickers;
    let mut ticker = String::with_capacity(8);
    for _ in 0..syllables {
        let syllable = (rest % SYLLABLES) as usize;
        rest /= SYLLABLES;
        ticker.extend([CONSONANTS[syllable / 5], VOWELS[syllable % 5]]);
    }
    ticker
}
