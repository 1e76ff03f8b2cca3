//! What to know before trusting a figure: the flags of a security and the reasons its rows are held for.

use std::collections::BTreeSet;

use crate::text_enum;

text_enum! {
    /// Flags of a security's metrics. Besides them a withdrawn record is flagged `cancelled:` and its id.
    pub enum Flag {
        /// The newest regular amount is held until the next one shows what it was (R28).
        AmountHeld = "amount_held",
        /// A payment was counted in the year before or after its ex-date's (R13).
        BoundaryShift = "boundary_shift",
        /// Rows of one payment said different amounts; the later counts (R29).
        ConflictingDuplicate = "conflicting_duplicate",
        /// Dividends and prices are in different currencies, so there is no yield (R4).
        CurrencyMismatch = "currency_mismatch",
        /// Rows of one payment or split were made one; `explain` lists what was dropped (R29).
        DuplicateCollapsed = "duplicate_collapsed",
        /// An ex-date was derived from its record date (R1).
        ExDateDerived = "ex_date_derived",
        /// An ex-date is not the one its record date implies (R1).
        ExDateUnexpected = "ex_date_unexpected",
        /// A distribution of the close before it or more, or in another currency, has no price factor (R11).
        FactorSkipped = "factor_skipped",
        /// The frequency inferred from ex-dates overruled the vendor's (R5).
        FrequencyConflict = "frequency_conflict",
        /// The latest amount is at least 3 times the median before it and unconfirmed: the forward dividend rests on the
        /// payment before it (R8).
        LatestAmountUnusual = "latest_amount_unusual",
        /// A distribution has no close before it, so no price factor (R11).
        NoPrevClose = "no_prev_close",
        /// The expected ex-date passed without a declaration (R19).
        Overdue = "overdue",
        /// A price moved by a known split ratio without a split (R30).
        PriceJumpWithoutSplit = "price_jump_without_split",
        /// Nothing is known of the security but its rows.
        Provisional = "provisional",
        /// A regular amount was a special, as the price shows (R28).
        SpecialByPrice = "special_by_price",
        /// The streak spans a spin-off, which neither counts nor breaks it (R14).
        SpinOffReview = "spin_off_review",
        /// A split left the price where it was (R30).
        SplitNotInPrice = "split_not_in_price",
        /// The increase streak contains years an operator vouches for; the payment streak counts the data alone (R14).
        StreakSeeded = "streak_seeded",
        /// The trailing year is only partly covered (R7).
        TtmIncomplete = "ttm_incomplete",
        /// The trailing year holds another number of payments than the frequency says (R7).
        TtmPaymentCountUnusual = "ttm_payment_count_unusual",
        /// A distribution of unknown type counts as regular (R3).
        UnknownType = "unknown_type",
        /// The headline yield is above 25 % (R18).
        YieldSuspect = "yield_suspect",
    }
}

text_enum! {
    /// Why a row is held back from every figure (R28, R30).
    pub enum HoldReason {
        /// Cash of at least the close before its ex-date.
        AmountExceedsPrice = "amount_exceeds_price",
        /// An isolated regular amount of at least 10 times the median before it.
        AmountOutlier = "amount_outlier",
        /// A person confirmed that it is wrong: it stays held whatever its neighbours say.
        Confirmed = "confirmed",
        /// An ex-date more than 400 days ahead of the newest session.
        FarFutureExDate = "far_future_ex_date",
        /// A high below its low.
        HighBelowLow = "high_below_low",
        /// A negative open, high, low or average price.
        NegativePrice = "negative_price",
        /// A negative volume.
        NegativeVolume = "negative_volume",
        /// Neither an ex-date nor a record date.
        NoExDate = "no_ex_date",
        /// A split that changes nothing.
        NoShareChange = "no_share_change",
        /// An amount of 0 or less.
        NonPositiveAmount = "non_positive_amount",
        /// A close of 0 or less.
        NonPositiveClose = "non_positive_close",
        /// A split of or into 0 shares or less.
        NonPositiveRatio = "non_positive_ratio",
        /// A bar 100 times away from the sessions on both sides.
        PriceUnitError = "price_unit_error",
    }
}

impl HoldReason {
    /// Whether a person may say that the row is right: it is held for what is around it, not for what it says itself.
    pub fn can_be_released(self) -> bool {
        use HoldReason::{AmountExceedsPrice, AmountOutlier, Confirmed, FarFutureExDate, PriceUnitError};
        matches!(self, AmountExceedsPrice | AmountOutlier | Confirmed | FarFutureExDate | PriceUnitError)
    }
}

/// The flags of a security.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    set: BTreeSet<Flag>,
    cancelled: BTreeSet<String>,
}

impl Flags {
    /// Sets a flag.
    pub fn set(&mut self, flag: Flag) {
        self.set.insert(flag);
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: Flag) -> bool {
        self.set.contains(&flag)
    }

    /// Names a withdrawn record.
    pub fn cancelled(&mut self, id: &str) {
        self.cancelled.insert(id.to_owned());
    }

    /// Adds all of another's.
    pub fn add(&mut self, mut other: Self) {
        self.set.append(&mut other.set);
        self.cancelled.append(&mut other.cancelled);
    }

    /// The words as served, sorted.
    pub fn words(&self) -> Vec<String> {
        let cancelled = self.cancelled.iter().map(|id| format!("cancelled:{id}"));
        let mut words: Vec<String> = self.set.iter().map(Flag::to_string).chain(cancelled).collect();
        words.sort_unstable();
        words
    }
}
