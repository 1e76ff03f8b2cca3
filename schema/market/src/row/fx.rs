//! Row of an exchange rate.

use chrono::NaiveDate;

use crate::decimal::ExactDecimal;
use crate::table_row;

table_row! {
    /// Exchange rate of one day.
    pub struct FxRow {
        /// Day of the rate.
        "date" date: NaiveDate,
        /// ISO 4217 code of the base currency.
        "base" base: String,
        /// ISO 4217 code of the quote currency.
        "quote" quote: String,
        /// Units of `quote` for one unit of `base`, to 15 significant digits.
        "rate" rate: ExactDecimal,
        /// Currency through which the rate was computed from two rates; null for the rate of a pair or of its inverse.
        "through" through: Option<String>,
        /// Name of the feed of the rate. If two rates of different feeds were used, both names.
        "source" source: String,
    }
}
