//! SplitMix64 generator. Its numbers are the same on every platform and in every release.

/// Deterministic stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct SplitMix64(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl SplitMix64 {
    /// Creates the stream with the number `stream`. Streams of one seed are independent of each other.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = Self(seed);
        Self(mixer.next() ^ stream.wrapping_add(1).wrapping_mul(0xD134_2543_DE82_EF95))
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Random number in `low..=high`.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = high.abs_diff(low) + 1;
        low + (self.next() % width) as i64
    }
}

/// Standard deviation of [`bell`].
pub(super) const BELL_DEVIATION: i64 = 2365;

/// Bell-shaped random number with mean 0, from the upper 48 bits of `bits`.
#[inline]
pub(super) fn bell(bits: u64) -> i64 {
    let part = |shift: u32| ((bits >> shift) & 0xFFF) as i64;
    part(16) + part(28) + part(40) + part(52) - 8190
}
