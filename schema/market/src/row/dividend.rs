//! `dividends`: every distribution, declared and adjusted.

use chrono::{DateTime, NaiveDate, Utc};

use crate::event::{DividendType, Frequency};
use crate::value::Exact;
use crate::{table_row, text_enum};

text_enum! {
    /// Where a distribution stands.
    pub enum DividendStatus { Declared = "declared", Paid = "paid", Cancelled = "cancelled", Projected = "projected" }
}

text_enum! {
    /// Whether an amount was declared or is expected from the pattern.
    pub enum AmountStatus { Declared = "declared", Estimated = "estimated" }
}

table_row! {
    /// A dividend record.
    pub struct DividendRow {
        /// Id of the record, unique over the whole service and stable; null for projected ones.
        "id" id: Option<String>,
        /// Canonical ticker.
        "symbol" symbol: String,
        /// First day a buyer does not get it.
        "ex_date" ex_date: NaiveDate,
        /// Day of payment; an estimate on a projected row.
        "payment_date" payment_date: Option<NaiveDate>,
        /// Day of the shareholder register.
        "record_date" record_date: Option<NaiveDate>,
        /// Day of the announcement.
        "declaration_date" declaration_date: Option<NaiveDate>,
        /// Per share as declared; an estimate on a projected row.
        "amount" amount: Exact,
        /// Whether `amount` was declared or is estimated.
        "amount_status" amount_status: AmountStatus,
        /// Per share on today's share basis.
        "adjusted_amount" adjusted_amount: Exact,
        /// ISO 4217.
        "currency" currency: String,
        /// Type as declared; `special` where the price shows it of a regular one (`special_by_price`).
        "type" r#type: DividendType,
        /// Payment frequency.
        "frequency" frequency: Frequency,
        /// Payments a year.
        "payments_per_year" payments_per_year: Option<i32>,
        /// Where it stands at the market's as-of date.
        "status" status: DividendStatus,
        /// adjusted_amount / amount.
        "split_factor" split_factor: Exact,
        /// Multiply into prices before ex_date; null when none applies.
        "price_factor" price_factor: Option<Exact>,
        /// amount x payments_per_year / close before the ex-date, percent.
        "yield_at_ex" yield_at_ex: Option<Exact>,
        /// Against the previous regular one, split-adjusted, percent.
        "change_percent" change_percent: Option<Exact>,
        /// Feed the record came from.
        "source" source: String,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// When the record was observed.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
