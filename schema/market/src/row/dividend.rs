//! Table `dividends`: one row for each distribution of a security, with its declared and its adjusted amount.
//!
//! Table `splits`: one row for each change of the share count, and for each price-only action.

use chrono::{DateTime, NaiveDate, Utc};

use crate::decimal::ExactDecimal;
use crate::event::{DividendType, Frequency};
use crate::{table_row, text_enum};

text_enum! {
    /// Status of a distribution.
    pub enum DividendStatus { Declared = "declared", Paid = "paid", Cancelled = "cancelled", Projected = "projected" }
}

text_enum! {
    /// Origin of an amount: declared by the company, or estimated from earlier payments.
    pub enum AmountStatus { Declared = "declared", Estimated = "estimated" }
}

text_enum! {
    /// Interpretation of the amount of a dividend that is declared as regular: regular, wholly or partly special, or a
    /// dip. For this, the amount is compared with the dividends before and after it. The declared amount itself does
    /// not change (R34).
    pub enum AmountReading {
        /// The whole amount is regular.
        Regular = "regular",
        /// The whole amount is special. Either the same payment period has another dividend, which is the regular one,
        /// or the amount is a large one-time distribution of capital.
        Special = "special",
        /// The amount has a regular part and a special part, `special_amount`.
        Combined = "combined",
        /// The amount is below both the previous and the next amount. Growth and streak are computed as if the amount
        /// were the smaller of the previous and the next amount.
        Dip = "dip",
    }
}

table_row! {
    /// A dividend record.
    #[derive(serde::Deserialize)]
    pub struct DividendRow {
        /// Id of the record. It is unique in the whole service and stays the same when the data are rebuilt. Null for
        /// projected records.
        "id" id: Option<String>,
        /// Canonical ticker.
        "symbol" symbol: String,
        /// First day on which a buyer of the share does not receive the dividend.
        "ex_date" ex_date: NaiveDate,
        /// Payment date; an estimate for projected records.
        "payment_date" payment_date: Option<NaiveDate>,
        /// Record date.
        "record_date" record_date: Option<NaiveDate>,
        /// Declaration date.
        "declaration_date" declaration_date: Option<NaiveDate>,
        /// Amount per share as declared; an estimate for projected records.
        "amount" amount: ExactDecimal,
        /// Origin of `amount`: declared or estimated.
        "amount_status" amount_status: AmountStatus,
        /// Amount per share, adjusted for the splits after ex_date, up to the as-of date.
        "adjusted_amount" adjusted_amount: ExactDecimal,
        /// ISO 4217 currency of the amounts.
        "currency" currency: String,
        /// Type of the distribution, as declared.
        "type" r#type: DividendType,
        /// Interpretation of `amount`: regular, special, partly special, or a dip (below the previous and the next
        /// amount). Null if the dividend is not declared as regular, is in another currency than the dividend metrics,
        /// is cancelled, or is projected.
        "reading" reading: Option<AmountReading>,
        /// Special part of `amount`, per share; null without a special part.
        "special_amount" special_amount: Option<ExactDecimal>,
        /// Payment frequency that the vendor states for this dividend. If the vendor states none, a regular dividend
        /// has the frequency of the security, and any other dividend is `irregular`.
        "frequency" frequency: Frequency,
        /// Number of payments a year at this `frequency`; null if irregular, none or unknown.
        "payments_per_year" payments_per_year: Option<i32>,
        /// Status on the market's as-of date.
        "status" status: DividendStatus,
        /// adjusted_amount / amount, for example 0.25 if a 4:1 split followed.
        "split_factor" split_factor: ExactDecimal,
        /// Multiplier of prices before ex_date, for all distributions of this ex-date together; null if the dividend
        /// does not adjust prices.
        "price_factor" price_factor: Option<ExactDecimal>,
        /// Annual yield at the ex-date, percent: regular part of `amount` x payments_per_year / close before the
        /// ex-date.
        "yield_at_ex" yield_at_ex: Option<ExactDecimal>,
        /// Change of the regular part since the previous regular payment, adjusted for splits, percent.
        "change_percent" change_percent: Option<ExactDecimal>,
        /// Name of the feed that reported the record.
        "source" source: String,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// Time at which the feed reported the record.
        "updated_at" updated_at: DateTime<Utc>,
    }
}

text_enum! {
    /// Type of a split: a change of the share count, or a price-only action, which changes prices but not the share
    /// count (R35).
    pub enum SplitType {
        /// Split into more shares.
        Forward = "forward",
        /// Reverse split into fewer shares.
        Reverse = "reverse",
        /// Shares of the company paid as a dividend.
        StockDividend = "stock_dividend",
        /// Shares of a subsidiary are distributed; the share count does not change.
        SpinOff = "spin_off",
        /// Subscription rights are distributed; the share count does not change.
        Rights = "rights",
        /// Shares of another class are distributed; the share count does not change.
        ClassDistribution = "class_distribution",
    }
}

impl SplitType {
    /// True if a split of this type changes prices, but not the share count.
    pub fn is_price_only(self) -> bool {
        matches!(self, Self::SpinOff | Self::Rights | Self::ClassDistribution)
    }
}

text_enum! {
    /// Status of a split on the market's as-of date.
    pub enum SplitStatus { Announced = "announced", Effective = "effective", Cancelled = "cancelled" }
}

table_row! {
    /// A split record.
    #[derive(serde::Deserialize)]
    pub struct SplitRow {
        /// Id of the record. It is unique in the whole service and stays the same when the data are rebuilt.
        "id" id: String,
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Ex-date as declared: first day of trading after the split.
        "ex_date" ex_date: NaiveDate,
        /// Declaration date.
        "declaration_date" declaration_date: Option<NaiveDate>,
        /// Delivery date of the new shares.
        "payable_date" payable_date: Option<NaiveDate>,
        /// Number of old shares. For a price-only action, the denominator of its ratio.
        "from_shares" from_shares: ExactDecimal,
        /// Number of new shares. For a price-only action, the numerator of its ratio.
        "to_shares" to_shares: ExactDecimal,
        /// to_shares / from_shares: 4 for a 4:1 split.
        "ratio" ratio: ExactDecimal,
        /// to_shares:from_shares as text, for example 4:1.
        "text" text: String,
        /// Type of the split. For price-only types, earlier prices are adjusted, but share counts, volumes and amounts
        /// are not.
        "type" r#type: SplitType,
        /// from_shares / to_shares: the multiplier of earlier prices.
        "price_factor" price_factor: ExactDecimal,
        /// Product of the price factors of this split and of all later splits. Only effective splits are included.
        "cumulative_price_factor" cumulative_price_factor: ExactDecimal,
        /// Status of the split.
        "status" status: SplitStatus,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// Time at which the feed reported the record.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
