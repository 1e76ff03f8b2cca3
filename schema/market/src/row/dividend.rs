//! `dividends`: rows of all distributions of a security, with declared and adjusted amounts.

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
    /// Reading of a regular row by the payment schedule (R34). The served amount of the row does not change.
    pub enum AmountReading {
        /// The whole amount is regular.
        Regular = "regular",
        /// The whole amount is special: another row is the regular payment of the period, or the row is a distribution
        /// of capital.
        Special = "special",
        /// The amount has a regular part and a special part, `special_amount`.
        Combined = "combined",
        /// The amount is below both neighbouring amounts. Growth and streak use the smaller of the neighbouring
        /// amounts.
        Dip = "dip",
    }
}

table_row! {
    /// A dividend record.
    pub struct DividendRow {
        /// Id of the record, unique in the whole service and stable over rebuilds; null for projected records.
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
        /// Amount per share on today's share basis.
        "adjusted_amount" adjusted_amount: ExactDecimal,
        /// ISO 4217 currency of the amounts.
        "currency" currency: String,
        /// Type of the distribution, as declared.
        "type" r#type: DividendType,
        /// Reading by the payment schedule; null for dividends that are not regular, and for cancelled and projected
        /// records.
        "reading" reading: Option<AmountReading>,
        /// Special part of `amount`, per share; null without a special part.
        "special_amount" special_amount: Option<ExactDecimal>,
        /// Payment frequency: the vendor's tag of the row, or else that of the security. Without a tag, a row that is
        /// not regular is irregular.
        "frequency" frequency: Frequency,
        /// Payments a year by `frequency`; null if irregular, none or unknown.
        "payments_per_year" payments_per_year: Option<i32>,
        /// Status on the market's as-of date.
        "status" status: DividendStatus,
        /// adjusted_amount / amount.
        "split_factor" split_factor: ExactDecimal,
        /// Multiplier of prices before ex_date; null if the dividend does not adjust prices.
        "price_factor" price_factor: Option<ExactDecimal>,
        /// Regular part of amount x payments_per_year / close before the ex-date, percent.
        "yield_at_ex" yield_at_ex: Option<ExactDecimal>,
        /// Change of the regular part against the previous regular payment, split-adjusted, percent.
        "change_percent" change_percent: Option<ExactDecimal>,
        /// Feed of the record.
        "source" source: String,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// Observation time of the record.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
