//! Flags of a security's metrics, and quarantine reasons of rows.
//!
//! Conversions between currencies set flags (R44). `converted`: a yield used an exchange rate. `fx_missing`, and its
//! former name `currency_mismatch`: a figure is null, because no exchange rate is known. `currency_changed`: the company
//! changed the currency of its dividends, so growth and streak begin at the change.
//!
//! Table `quarantine`: feed rows that are excluded from all figures, with the reason for each (R28, R30).

use std::collections::BTreeSet;

use chrono::NaiveDate;

use crate::dated_text::{DatedText, LimitToHistory};
use crate::{table_row, text_enum};

text_enum! {
    /// Warning about the data behind a security's metrics. The metrics can also have flags that are not in this list:
    /// each withdrawn record adds a flag of the form `cancelled:` followed by the id of the record.
    pub enum Flag {
        /// The amounts before a split were probably adjusted for the split twice. Growth across the split is null, and
        /// the streak starts after the split (R37).
        AmountBasisSuspect = "amount_basis_suspect",
        /// The newest regular amount is quarantined until the next amount confirms or refutes it (R28).
        AmountHeld = "amount_held",
        /// The payments of a year with a changed frequency or payment date do not cover twelve months. The annual total is
        /// their sum, converted to twelve months (R34).
        AnnualTotalScaled = "annual_total_scaled",
        /// A regular amount is below both the previous and the next amount. Growth and streak are computed as if the
        /// amount were the smaller of the previous and the next amount (R34).
        AmountDip = "amount_dip",
        /// A payment near the turn of the year is added to the annual total of the year before or after the calendar
        /// year of its payment date, or of its ex-date if most payments have no payment date (R34).
        BoundaryShift = "boundary_shift",
        /// Rows of the same payment or split have different amounts or ratios. The amount or ratio of the newest row is
        /// used. Or a price file has two closes of one day; the first close is used (R29).
        ConflictingDuplicate = "conflicting_duplicate",
        /// A yield used an exchange rate, because dividends and prices are in different currencies (R42).
        Converted = "converted",
        /// The company changed the currency of its dividends. Growth across the change is null, and the increase streak
        /// begins there (R43).
        CurrencyChanged = "currency_changed",
        /// The same as `fx_missing`, its former name (R4).
        CurrencyMismatch = "currency_mismatch",
        /// A dividend was declared after its ex-date. Figures include the dividend from the ex-date on, not only from
        /// the declaration date on (R39).
        DeclaredAfterEx = "declared_after_ex",
        /// The adjusted closes of a price file show dividends that are missing from the data (R38).
        DividendsMissing = "dividends_missing",
        /// Rows of the same payment or split were merged into one row. The response with `explain=true` lists the
        /// dropped rows (R29).
        DuplicateCollapsed = "duplicate_collapsed",
        /// A dividend has no ex-date in the feed. The ex-date was derived from the record date (R1).
        ExDateDerived = "ex_date_derived",
        /// The vendor's ex-date differs from the ex-date that follows from the record date (R1).
        ExDateUnexpected = "ex_date_unexpected",
        /// Prices are not adjusted for a distribution, because its amount is at least as large as the close before its
        /// ex-date, or because it is in another currency (R11).
        FactorSkipped = "factor_skipped",
        /// The vendor states a payment frequency that does not fit the ex-dates. The frequency inferred from the
        /// ex-dates is used instead (R5).
        FrequencyConflict = "frequency_conflict",
        /// A figure is null, because dividends and prices are in different currencies and no exchange rate is known (R44).
        FxMissing = "fx_missing",
        /// A dividend declared as regular is treated as special, wholly or in part (R34).
        InferredSpecial = "inferred_special",
        /// The latest regular amount is at least 3 times the median of the amounts before it. The forward dividend uses
        /// the previous payment until the next payment confirms the latest amount (R8).
        LatestAmountUnusual = "latest_amount_unusual",
        /// Two rows with ex-dates a few days apart are one payment, so one row was dropped (R34).
        NearDuplicate = "near_duplicate",
        /// No data source of the security includes dividends, so the security's dividends are unknown (R38).
        NoDividendFeed = "no_dividend_feed",
        /// Prices are not adjusted for a distribution, because no close before its ex-date is known (R11).
        NoPrevClose = "no_prev_close",
        /// The expected ex-date passed without a declaration (R19).
        Overdue = "overdue",
        /// A payment is missing in a year that growth or streak figures use (R34).
        PaymentGap = "payment_gap",
        /// A payment has rows in two currencies; the row in the currency of the prices is used (R39).
        PaymentTranslated = "payment_translated",
        /// The price moved by a usual split ratio, for example 2, but no known split or distribution explains the move
        /// (R30).
        PriceJumpWithoutSplit = "price_jump_without_split",
        /// A price rose or fell by a factor of more than 3 and did not return. No known event explains it (R36).
        PriceLevelBreak = "price_level_break",
        /// The security has no reference record, so its name and type are unknown. Only its symbol is known, from other
        /// data.
        Provisional = "provisional",
        /// A regular amount is far above the usual one, but a price fall or adjusted closes confirm it. The amount is
        /// treated as special, wholly or in part (R28).
        SpecialByPrice = "special_by_price",
        /// The increase streak spans a spin-off, which neither extends nor ends the streak (R14, R35).
        SpinOffReview = "spin_off_review",
        /// The price contradicts a split: the price did not move, or moved in another session or by another factor
        /// (R36).
        SplitNotInPrice = "split_not_in_price",
        /// The increase streak includes years entered by an operator. The payment streak includes only years in the
        /// data (R14).
        StreakSeeded = "streak_seeded",
        /// The data cover only a part of the trailing year (R7).
        TtmIncomplete = "ttm_incomplete",
        /// The number of payments in the trailing year does not fit the payment frequency (R7).
        TtmPaymentCountUnusual = "ttm_payment_count_unusual",
        /// A distribution of unknown type is treated as regular (R3).
        UnknownType = "unknown_type",
        /// The headline yield is above 25 % (R18).
        YieldSuspect = "yield_suspect",
    }
}

text_enum! {
    /// Reason for the quarantine of a row. A quarantined row is excluded from all figures (R28, R30).
    pub enum QuarantineReason as "HoldReason" {
        /// Cash amount per share that is at least as large as the close before its ex-date.
        AmountExceedsPrice = "amount_exceeds_price",
        /// Regular amount that is about 10, 100 or 1,000 times larger or smaller than the amounts around it. Its unit
        /// is probably wrong.
        AmountOutlier = "amount_outlier",
        /// Row that a person reviewed and confirmed as wrong. It stays excluded even if its neighbouring rows change.
        Confirmed = "confirmed",
        /// Ex-date more than 400 days after the as-of date.
        FarFutureExDate = "far_future_ex_date",
        /// Price bar with a high below its low.
        HighBelowLow = "high_below_low",
        /// Close that differs by a factor of more than 3 from both the previous and the next close, although these two
        /// are similar.
        IsolatedPrice = "isolated_price",
        /// Negative open, high, low or average price.
        NegativePrice = "negative_price",
        /// Negative volume.
        NegativeVolume = "negative_volume",
        /// Dividend without an ex-date and without a record date.
        NoExDate = "no_ex_date",
        /// Split with equal numbers of old and new shares.
        NoShareChange = "no_share_change",
        /// Amount of 0 or less.
        NonPositiveAmount = "non_positive_amount",
        /// Close of 0 or less.
        NonPositiveClose = "non_positive_close",
        /// Split in which the number of old shares or of new shares is 0 or negative.
        NonPositiveRatio = "non_positive_ratio",
        /// Close that is about 100 or 1,000 times higher or lower than the closes around it. Its unit is probably
        /// wrong.
        PriceUnitError = "price_unit_error",
        /// Split that the price contradicts: the price did not move by the split ratio on the ex-date.
        SplitDenied = "split_denied",
        /// Newest close that differs by a factor of more than 3 from the previous close. The next session or another
        /// source may confirm it.
        UnconfirmedPrice = "unconfirmed_price",
    }
}

impl QuarantineReason {
    /// True if a person can release a row that is quarantined for this reason. The values of such a row are possible,
    /// but they contradict other data.
    pub fn is_releasable(self) -> bool {
        matches!(
            self,
            Self::AmountExceedsPrice
                | Self::AmountOutlier
                | Self::Confirmed
                | Self::FarFutureExDate
                | Self::IsolatedPrice
                | Self::PriceUnitError
                | Self::SplitDenied
                | Self::UnconfirmedPrice
        )
    }
}

/// Set of flags of a security.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    set: BTreeSet<Flag>,
    cancelled: BTreeSet<String>,
}

impl Flags {
    /// Adds a flag to the set.
    pub fn set(&mut self, flag: Flag) {
        self.set.insert(flag);
    }

    /// Adds a flag to the set if `condition` is true.
    pub fn set_if(&mut self, flag: Flag, condition: bool) {
        if condition {
            self.set(flag);
        }
    }

    /// True if a flag is set.
    pub fn has(&self, flag: Flag) -> bool {
        self.set.contains(&flag)
    }

    /// Adds the flag `cancelled:` with the id of a withdrawn record.
    pub fn add_cancelled(&mut self, id: &str) {
        self.cancelled.insert(id.to_owned());
    }

    /// Adds all flags of another set.
    pub fn add(&mut self, mut other: Self) {
        self.set.append(&mut other.set);
        self.cancelled.append(&mut other.cancelled);
    }

    /// Sorted codes of all flags of the set, as written in responses.
    pub fn codes(&self) -> Vec<String> {
        let cancelled = self.cancelled.iter().map(|id| format!("cancelled:{id}"));
        let mut words: Vec<String> = self.set.iter().map(Flag::to_string).chain(cancelled).collect();
        words.sort_unstable();
        words
    }
}

table_row! {
    /// A quarantined row: no figure uses it, because it is invalid or contradicts other data. It is used again if a
    /// person reviews and releases it, or if its neighbouring rows no longer contradict it.
    #[derive(serde::Deserialize)]
    pub struct Quarantined {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Kind of the row: price, dividend or split.
        "kind" kind: String,
        /// Session of a price, or ex-date of a dividend or split. For a dividend without an ex-date, its record date.
        "date" date: Option<NaiveDate>,
        /// Vendor's id of the row; null if the vendor gives none.
        "id" id: Option<String>,
        /// Stable code of the reason for the quarantine.
        #[schema(value_type = QuarantineReason)]
        "reason" reason: String,
        /// Description of the row's fault, as a sentence.
        "message" message: String,
        /// Name of the feed that reported the row.
        "source" source: String,
        /// Line in the feed's file; 0 if unknown.
        "line" line: i64,
    }
}

impl LimitToHistory for Vec<Quarantined> {
    /// Removes the rows from before `first`, and earlier days in the messages.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        self.retain(|row| row.date.is_none_or(|date| date >= first));
        for row in &mut self {
            row.message = DatedText::parse(&row.message).limit_to_days_from(first).to_string();
        }
        self
    }
}
