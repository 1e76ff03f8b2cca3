//! Table rows for a year of bars, with the columns of [`PackedBars`].

use codec::bars::PackedBars;

use crate::copy_row;

copy_row! {
    /// Row of table `bars` of a fact set.
    #[expect(missing_docs, reason = "the other columns are those of `PackedBars`")]
    pub struct BarsRow<'a> in "bars" {
        /// Symbol of the bars in the feed. It may be a former symbol of the security.
        symbol: &'a str,
        /// Feed of the bars.
        source: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Newest day with a bar that is not retracted; `None` if all bars are retracted. Days are numbered from
        /// 0001-01-01, which is day 1.
        last_day: Option<i32>,
        /// Digest of the columns `days` to `extra`, without `versions`.
        digest: i64,
        days: &'a [u8],
        close: &'a [u8],
        range: &'a [u8],
        volume: &'a [u8],
        extra: &'a [u8],
        versions: &'a [u8],
    }
}

copy_row! {
    /// Row of table `prices` of a generation.
    #[expect(missing_docs, reason = "the other columns are those of `PackedBars`")]
    pub struct PricesRow<'a> in "prices" {
        /// Canonical symbol of the security.
        symbol: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Digest of the columns `days` to `extra`.
        digest: i64,
        days: &'a [u8],
        close: &'a [u8],
        range: &'a [u8],
        volume: &'a [u8],
        extra: &'a [u8],
    }
}

copy_row! {
    /// Row of table `superseded_bars` of a fact set.
    pub struct SupersededBarsRow<'a> in "superseded_bars" {
        /// Symbol of the bars in the feed. It may be a former symbol of the security.
        symbol: &'a str,
        /// Feed of the bars.
        source: &'a str,
        /// Calendar year of the bars.
        year: i32,
        /// Number of the row among those of its symbol, source and year.
        part: i32,
        /// Superseded bars, with all their columns in one byte string.
        packed: &'a [u8],
    }
}

impl<'a> BarsRow<'a> {
    /// Row for the bars of one symbol, source and calendar year. `digest` is the digest of the columns `days` to
    /// `extra`.
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
    /// Row for the bars of one security and calendar year. `digest` is the digest of the columns `days` to `extra`.
    pub fn new(symbol: &'a str, year: i32, digest: i64, packed: &'a PackedBars) -> Self {
        let PackedBars { days, close, range, volume, extra, .. } = packed;
        Self { symbol, year, digest, days, close, range, volume, extra }
    }
}
