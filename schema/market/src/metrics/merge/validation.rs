//! Validation of single rows (R28, R30).
//!
//! Ingest rejects an invalid row. The merge applies the same rules to stored rows, and quarantines an invalid row. Each
//! rule has a stable reason code and a message that says what to correct. A retraction is valid if it identifies the
//! record that it withdraws.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::bars::{Bar, MISSING};
use crate::event::{Dividend, Split};
use crate::row::QuarantineReason;

/// Reason code and message of a faulty row.
pub type RowFault = (QuarantineReason, String);

/// Validates a dividend row. Reason codes: `no_ex_date`, `non_positive_amount`.
pub fn dividend_fault(dividend: &Dividend) -> Option<RowFault> {
    dividend_key_fault(dividend).or_else(|| {
        (dividend.amount <= Decimal::ZERO).then(|| {
            (
                QuarantineReason::NonPositiveAmount,
                format!("the amount is {}, but it must be positive", dividend.amount),
            )
        })
    })
}

/// Validates the dates that identify a dividend. Reason code: `no_ex_date`.
pub fn dividend_key_fault(dividend: &Dividend) -> Option<RowFault> {
    (dividend.ex_date.is_none() && dividend.record_date.is_none())
        .then(|| (QuarantineReason::NoExDate, "neither an ex-date nor a record date is given".to_owned()))
}

/// Validates a split row. Reason codes: `non_positive_ratio`, `no_share_change`.
pub fn split_fault(split: &Split) -> Option<RowFault> {
    if split.from <= Decimal::ZERO || split.to <= Decimal::ZERO {
        let message = format!(
            "{} old shares become {} new ones, but both numbers must be positive",
            split.from, split.to
        );
        return Some((QuarantineReason::NonPositiveRatio, message));
    }
    (split.from == split.to)
        .then(|| (QuarantineReason::NoShareChange, format!("{} shares stay {} shares", split.from, split.to)))
}

/// Validates a price row. Reason codes: `non_positive_close`, `negative_price`, `high_below_low`, `negative_volume`.
///
/// Vendors write 0 for an unknown open, high or low, so only negative values are faults.
pub fn price_fault(bar: &PriceValues) -> Option<RowFault> {
    if bar.close <= Decimal::ZERO {
        return Some((
            QuarantineReason::NonPositiveClose,
            format!("the close is {}, but it must be positive", bar.close),
        ));
    }
    for (name, price) in [("open", bar.open), ("high", bar.high), ("low", bar.low), ("vwap", bar.vwap)] {
        if let Some(price) = price.filter(|price| *price < Decimal::ZERO) {
            return Some((QuarantineReason::NegativePrice, format!("the {name} is {price}")));
        }
    }
    if let Some((high, low)) = bar.high.zip(bar.low).filter(|(high, low)| high < low) {
        return Some((QuarantineReason::HighBelowLow, format!("the high {high} is below the low {low}")));
    }
    let volume = bar.volume.filter(|volume| *volume < 0)?;
    Some((QuarantineReason::NegativeVolume, format!("the volume is {volume}")))
}

/// Prices and volume of one bar, as decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceValues {
    /// Opening price; `None` if absent.
    pub open: Option<Decimal>,
    /// Highest price; `None` if absent.
    pub high: Option<Decimal>,
    /// Lowest price; `None` if absent.
    pub low: Option<Decimal>,
    /// Closing price.
    pub close: Decimal,
    /// Volume-weighted average price; `None` if absent.
    pub vwap: Option<Decimal>,
    /// Shares traded; `None` if absent.
    pub volume: Option<i64>,
}

impl PriceValues {
    /// Converts a stored bar. A stored price is an integer: the price multiplied by 10^`scale`.
    pub fn from_bar(bar: &Bar, scale: u32) -> Self {
        let price = |value: i64| (value != MISSING).then(|| Decimal::new(value, scale));
        Self {
            open: price(bar.open),
            high: price(bar.high),
            low: price(bar.low),
            close: price(bar.close).unwrap_or_default(),
            vwap: price(bar.vwap),
            volume: (bar.volume != MISSING).then_some(bar.volume),
        }
    }
}

/// Latest valid date of a price or session: the day after `today`. `today` is the current day in New York. Later dates
/// are probably errors.
pub fn latest_session_date(today: NaiveDate) -> NaiveDate {
    today.succ_opt().unwrap_or(today)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{DividendType, ShareBasis};
    use crate::symbol::Symbol;

    #[test]
    fn impossible_dividends_have_a_reason() {
        let dividend = |amount, ex_date: Option<&str>, record_date: Option<&str>| Dividend {
            symbol: Symbol::parse("TEST").unwrap(),
            amount,
            currency: "USD".into(),
            r#type: DividendType::Regular,
            amount_basis: ShareBasis::Raw,
            ex_date: ex_date.map(|d| d.parse().unwrap()),
            record_date: record_date.map(|d| d.parse().unwrap()),
            payment_date: None,
            declaration_date: None,
            frequency: None,
            basis_as_of: None,
            sibling_amounts: Vec::new(),
        };
        let check = |row, expected| assert_eq!(dividend_fault(&row).map(|(code, _)| code.as_str()), expected);
        check(dividend(dec!(0.1), Some("2024-01-02"), None), None);
        check(dividend(dec!(0.1), None, Some("2024-01-02")), None);
        check(dividend(dec!(0), Some("2024-01-02"), None), Some("non_positive_amount"));
        check(dividend(dec!(-1), Some("2024-01-02"), None), Some("non_positive_amount"));
        check(dividend(dec!(0.1), None, None), Some("no_ex_date"));
    }

    #[test]
    fn impossible_prices_have_a_reason() {
        let good = PriceValues {
            open: None,
            high: Some(dec!(2)),
            low: Some(dec!(1)),
            close: dec!(1.5),
            vwap: None,
            volume: Some(0),
        };
        let check = |bar: PriceValues, expected| {
            assert_eq!(price_fault(&bar).map(|(code, _)| code.as_str()), expected)
        };
        check(good, None);
        check(PriceValues { close: dec!(0), ..good }, Some("non_positive_close"));
        check(PriceValues { open: Some(dec!(-1)), ..good }, Some("negative_price"));
        check(PriceValues { high: Some(dec!(0.5)), ..good }, Some("high_below_low"));
        check(PriceValues { volume: Some(-1), ..good }, Some("negative_volume"));
        check(PriceValues { vwap: Some(dec!(-0.01)), ..good }, Some("negative_price"));
        // A vendor's 0 is an unknown price. A day with one trade has one price.
        let unknown = Some(dec!(0));
        check(PriceValues { open: unknown, high: unknown, low: unknown, vwap: unknown, ..good }, None);
        check(PriceValues { high: Some(dec!(1.5)), low: Some(dec!(1.5)), ..good }, None);
    }

    #[test]
    fn a_session_is_at_most_tomorrows() {
        for (today, latest) in [("2024-02-28", "2024-02-29"), ("2024-12-31", "2025-01-01")] {
            let latest: NaiveDate = latest.parse().unwrap();
            assert_eq!(latest_session_date(today.parse().unwrap()), latest);
        }
    }
}
