//! Table rows for a year of bars, with the columns of [`PackedBars`].

use codec::bars::PackedBars;

use crate::copy_row;

copy_row! {
    /// Row of a fact set's `bars`.
    pub struct BarsRow<'a> in "bars" {
        /// Symbol that the feed uses.
        symbol: &'a str,
        /// Feed of the bars.
        source: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Newest session with a bar that is not retracted, as a day number.
        last_day: Option<i32>,
        /// Digest of the columns, without versions.
        digest: i64,
        /// As in [`PackedBars`].
        days: &'a [u8],
        /// As in [`PackedBars`].
        close: &'a [u8],
        /// As in [`PackedBars`].
        range: &'a [u8],
        /// As in [`PackedBars`].
        volume: &'a [u8],
        /// As in [`PackedBars`].
        extra: &'a [u8],
        /// As in [`PackedBars`].
        versions: &'a [u8],
    }
}

copy_row! {
    /// Row of a generation's `prices`.
    pub struct PricesRow<'a> in "prices" {
        /// The security's canonical symbol.
        symbol: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Digest of the columns.
        digest: i64,
        /// As in [`PackedBars`].
        days: &'a [u8],
        /// As in [`PackedBars`].
        close: &'a [u8],
        /// As in [`PackedBars`].
        range: &'a [u8],
        /// As in [`PackedBars`].
        volume: &'a [u8],
        /// As in [`PackedBars`].
        extra: &'a [u8],
    }
}

copy_row! {
    /// Row of a fact set's `superseded_bars`.
    pub struct SupersededBarsRow<'a> in "superseded_bars" {
        /// Symbol that the feed uses.
        symbol: &'a str,
        /// Feed of the bars.
        source: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Replaced bars, with all columns in one value.
        packed: &'a [u8],
    }
}

impl<'a> BarsRow<'a> {
    /// Row for a year of bars, with the digest of its columns.
    pub fn new(
        symbol: &'a str,
        source: &'a str,
        year: i32,
        last_day: Option<i32>,
        digest: i64,
        packed: &'a PackedBars,
    ) -> Self {
        let PackedBars { days, close, range, volume, extra, versions } = packed;
        Self { symbol, source, year, last_day, digest, days, close, range, volume, extra, versions }
    }
}

impl<'a> PricesRow<'a> {
    /// Row for a year of bars, with the digest of its columns.
    pub fn new(symbol: &'a str, year: i32, digest: i64, packed: &'a PackedBars) -> Self {
        let PackedBars { days, close, range, volume, extra, .. } = packed;
        Self { symbol, year, digest, days, close, range, volume, extra }
    }
}
