//! Ex-date derived from a record date (R1, R2).
//!
//! A trade settles some sessions after the trading day. The ex-date precedes the record date by the settlement time
//! less one session. This difference is two sessions for record dates up to 2017-09-06 (T+3), and one session up to
//! 2024-05-28 (T+2). For later record dates (T+1), the ex-date is the record date. If the record date is a day without
//! a session, the last session before it replaces the record date.
//!
//! A distribution of 25 % of the price or more has a later ex-date: the first session after its payment date (due
//! bills). Only a missing ex-date is derived; the vendor's date is never changed. Source: exchange tables of 2017, SEC
//! T+1 rule.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::metrics::calendar::{add_sessions, next_session, session_on_or_before};

// Last record dates with settlement in three and in two sessions (exchange tables of 2017, SEC T+1 rule).
const LAST_T_PLUS_3: NaiveDate = NaiveDate::from_ymd_opt(2017, 9, 6).expect("a calendar date");
const LAST_T_PLUS_2: NaiveDate = NaiveDate::from_ymd_opt(2024, 5, 28).expect("a calendar date");

/// First record date with settlement in three sessions (T+3). Earlier trades settled in five sessions; the rules do not
/// cover them.
pub(crate) const FIRST_T_PLUS_3: NaiveDate = NaiveDate::from_ymd_opt(1995, 6, 9).expect("a calendar date");

/// Derives the ex-date from a record date, for a distribution below 25 % of the price (R1).
pub fn ex_date_from_record_date(record_date: NaiveDate) -> NaiveDate {
    let sessions_before = if record_date <= LAST_T_PLUS_3 {
        2
    } else if record_date <= LAST_T_PLUS_2 {
        1
    } else {
        0
    };
    add_sessions(session_on_or_before(record_date), -sessions_before)
}

/// Ex-date of a distribution of `amount` per share, given the share price `price` in the same currency (R2).
pub fn ex_date_of(
    record_date: NaiveDate,
    payment_date: Option<NaiveDate>,
    amount: Decimal,
    price: Option<Decimal>,
) -> NaiveDate {
    match (payment_date, price) {
        (Some(payment_date), Some(price)) if is_large(amount, price) => next_session(payment_date),
        _ => ex_date_from_record_date(record_date),
    }
}

/// True if the amount is 25 % of the price or more.
pub fn is_large(amount: Decimal, price: Decimal) -> bool {
    price > Decimal::ZERO && amount.saturating_mul(Decimal::from(4)) >= price
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn settlement_times() {
        for (record, ex) in [
            ("2017-09-01", "2017-08-30"),
            ("2017-09-05", "2017-08-31"),
            ("2017-09-06", "2017-09-01"),
            ("2017-09-07", "2017-09-06"),
            ("2024-05-28", "2024-05-24"),
            ("2024-05-29", "2024-05-29"),
            ("2024-06-15", "2024-06-14"),
            ("2025-01-09", "2025-01-08"),
        ] {
            assert_eq!(ex_date_from_record_date(date(record)), date(ex), "{record}");
        }
    }

    #[test]
    fn large_distributions_go_ex_after_payment() {
        let ex = |amount, price| ex_date_of(date("2024-12-10"), Some(date("2024-12-20")), amount, price);
        assert_eq!(ex(dec!(10), Some(dec!(40))), date("2024-12-23"));
        assert_eq!(ex(dec!(9.99), Some(dec!(40))), date("2024-12-10"));
        assert_eq!(ex(dec!(10), None), date("2024-12-10"));
    }

    #[test]
    fn a_quarter_of_the_price_is_large() {
        assert!(is_large(dec!(10), dec!(40)) && !is_large(dec!(9.9999), dec!(40)));
        assert!(!is_large(dec!(10), dec!(0)) && !is_large(dec!(10), dec!(-1)));
        // Without a payment date, the ex-date of a large distribution is derived from the record date too.
        assert_eq!(ex_date_of(date("2024-12-10"), None, dec!(30), Some(dec!(40))), date("2024-12-10"));
    }
}
