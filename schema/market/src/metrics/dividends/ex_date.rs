//! Ex-date derived from a record date (R1, R2).
//!
//! A trade settles some business days after the trading day. The ex-date precedes the record date by the settlement time
//! less one business day. The market decides the settlement time ([`Settlement`]):
//! - United States and Canada: two days before record dates up to 2017-09-06 (T+3), and one day before record dates up
//!   to 2024-05-28, in Canada up to 2024-05-27 (T+2). For later record dates (T+1), the ex-date is the record date.
//! - India: one day before record dates up to 2023-01-26 (T+2), and the record date since (T+1).
//! - All other markets: one day before the record date (T+2).
//!
//! If the record date is no business day, the last business day before it replaces the record date. Business days are the
//! sessions of the NYSE in the United States, and weekdays elsewhere, because the holidays of other markets are not known
//! here.
//!
//! A distribution of 25 % of the price or more has a later ex-date in the United States and Canada: the first business day
//! after its payment date (due bills). Only a missing ex-date is derived; the vendor's date is never changed. Source:
//! exchange tables of 2017, SEC T+1 rule, the exchanges' notices.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use crate::day::{next_day, previous_day};
use crate::event::Security;
use crate::history::History;
use crate::metrics::calendar::is_session;
use crate::metrics::currency::price_currency;

// Last record dates of each settlement time (exchange tables of 2017, SEC T+1 rule, the exchanges' notices).
const LAST_T_PLUS_3: NaiveDate = NaiveDate::from_ymd_opt(2017, 9, 6).expect("a calendar date");
const LAST_T_PLUS_2: NaiveDate = NaiveDate::from_ymd_opt(2024, 5, 28).expect("a calendar date");
const LAST_T_PLUS_2_OF_CANADA: NaiveDate = NaiveDate::from_ymd_opt(2024, 5, 27).expect("a calendar date");
const LAST_T_PLUS_2_OF_INDIA: NaiveDate = NaiveDate::from_ymd_opt(2023, 1, 26).expect("a calendar date");

/// First record date with settlement in three sessions (T+3) in the United States and Canada. Earlier trades settled in
/// five sessions; the rules do not cover them.
const FIRST_T_PLUS_3: NaiveDate = NaiveDate::from_ymd_opt(1995, 6, 9).expect("a calendar date");
/// First record date with settlement in two days (T+2) in Europe. The rules do not cover earlier record dates of other
/// markets than the United States and Canada.
const FIRST_T_PLUS_2_OF_EUROPE: NaiveDate = NaiveDate::from_ymd_opt(2014, 10, 8).expect("a calendar date");

/// Exchanges with the settlement times of the United States, of Canada and of India, by market identifier code.
const UNITED_STATES: [&str; 12] =
    ["XNYS", "XNAS", "ARCX", "XASE", "BATS", "IEXG", "XCHI", "XPHL", "XBOS", "OTCM", "OTCQ", "OTCB"];
const CANADA: [&str; 4] = ["XTSE", "XTSX", "XCNQ", "NEOE"];
const INDIA: [&str; 2] = ["XNSE", "XBOM"];

/// Settlement times of a market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// United States.
    UnitedStates,
    /// Canada.
    Canada,
    /// India.
    India,
    /// Any other market, and an unknown one: T+2.
    TwoDays,
}

impl Settlement {
    /// Settlement times of the market of a history's security.
    pub(crate) fn of_history(history: &History) -> Self {
        match &history.security {
            Some(security) => Self::of_security(&security.record),
            None => Self::of_country_or_currency(price_currency(history)),
        }
    }

    /// Settlement times of a security's market: that of its exchange, else of its country, else of the currency of its
    /// prices.
    pub fn of_security(security: &Security) -> Self {
        // The name of an unknown exchange or country is stored in the vendor's words.
        let is_code = |length: usize| {
            move |text: &&str| {
                text.len() == length
                    && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            }
        };
        if let Some(mic) = security.exchange.as_deref().filter(is_code(4)) {
            return match mic {
                _ if UNITED_STATES.contains(&mic) => Self::UnitedStates,
                _ if CANADA.contains(&mic) => Self::Canada,
                _ if INDIA.contains(&mic) => Self::India,
                _ => Self::TwoDays,
            };
        }
        let country = security.country.as_deref().filter(is_code(2));
        Self::of_country_or_currency(country.unwrap_or(&security.currency))
    }

    fn of_country_or_currency(code: &str) -> Self {
        match code {
            "US" | "USD" => Self::UnitedStates,
            "CA" | "CAD" => Self::Canada,
            "IN" | "INR" => Self::India,
            _ => Self::TwoDays,
        }
    }

    /// Derives the ex-date from a record date, for a distribution below 25 % of the price (R1).
    pub fn ex_date(self, record_date: NaiveDate) -> NaiveDate {
        let days_before = match self {
            Self::UnitedStates | Self::Canada if record_date <= LAST_T_PLUS_3 => 2,
            Self::UnitedStates if record_date > LAST_T_PLUS_2 => 0,
            Self::Canada if record_date > LAST_T_PLUS_2_OF_CANADA => 0,
            Self::India if record_date > LAST_T_PLUS_2_OF_INDIA => 0,
            _ => 1,
        };
        let last = self.business_day_on_or_before(record_date);
        (0..days_before).fold(last, |day, _| self.business_day_on_or_before(previous_day(day)))
    }

    /// Ex-date of a distribution of `amount` per share, given the share price `price` in the same currency (R2).
    pub fn ex_date_of(
        self,
        record_date: NaiveDate,
        payment_date: Option<NaiveDate>,
        amount: Decimal,
        price: Option<Decimal>,
    ) -> NaiveDate {
        match (payment_date, price) {
            (Some(payment_date), Some(price)) if self.has_due_bills() && is_large(amount, price) => {
                self.business_day_after(payment_date)
            }
            _ => self.ex_date(record_date),
        }
    }

    /// True if the rules cover a record date of the market.
    pub fn covers(self, record_date: NaiveDate) -> bool {
        record_date >= if self.has_due_bills() { FIRST_T_PLUS_3 } else { FIRST_T_PLUS_2_OF_EUROPE }
    }

    fn has_due_bills(self) -> bool {
        matches!(self, Self::UnitedStates | Self::Canada)
    }

    /// True if the market is probably open on the day: a session of the NYSE in the United States, a weekday elsewhere.
    pub(crate) fn is_business_day(self, day: NaiveDate) -> bool {
        match self {
            Self::UnitedStates => is_session(day),
            _ => day.weekday().number_from_monday() < 6,
        }
    }

    fn business_day_on_or_before(self, mut day: NaiveDate) -> NaiveDate {
        while !self.is_business_day(day) && day > NaiveDate::MIN {
            day = previous_day(day);
        }
        day
    }

    fn business_day_after(self, day: NaiveDate) -> NaiveDate {
        self.business_day_on_or_after(next_day(day))
    }

    /// First business day on or after `day`.
    pub(crate) fn business_day_on_or_after(self, mut day: NaiveDate) -> NaiveDate {
        while !self.is_business_day(day) && day < NaiveDate::MAX {
            day = next_day(day);
        }
        day
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
            assert_eq!(Settlement::UnitedStates.ex_date(date(record)), date(ex), "{record}");
        }
    }

    #[test]
    fn settlement_times_of_other_markets() {
        use Settlement::{Canada, India, TwoDays, UnitedStates};
        for (market, record, ex) in [
            (Canada, "2017-09-06", "2017-09-04"),
            (Canada, "2024-05-27", "2024-05-24"),
            (Canada, "2024-05-28", "2024-05-28"),
            (UnitedStates, "2024-05-28", "2024-05-24"),
            (India, "2023-01-26", "2023-01-25"),
            (India, "2023-01-27", "2023-01-27"),
            (TwoDays, "2024-09-10", "2024-09-09"),
            (TwoDays, "2024-09-09", "2024-09-06"),
            // A record date on a Sunday, and a holiday of the United States.
            (TwoDays, "2024-09-08", "2024-09-05"),
            (TwoDays, "2024-07-05", "2024-07-04"),
        ] {
            assert_eq!(market.ex_date(date(record)), date(ex), "{market:?} {record}");
        }
        let large = |market: Settlement| {
            market.ex_date_of(date("2024-12-10"), Some(date("2024-12-20")), dec!(10), Some(dec!(40)))
        };
        assert_eq!([UnitedStates, TwoDays].map(large), [date("2024-12-23"), date("2024-12-09")]);
        assert!(UnitedStates.covers(date("1995-06-09")) && !TwoDays.covers(date("2014-10-07")));
    }

    #[test]
    fn a_market_is_that_of_the_exchange_then_of_the_country_then_of_the_currency() {
        let market = |exchange: Option<&str>, country: Option<&str>, currency: &str| {
            let record = serde_json::json!({
                "symbol": "TEST", "name": "Test", "type": "stock", "currency": currency, "status": "active",
                "exchange": exchange, "country": country,
            });
            Settlement::of_security(&serde_json::from_value(record).unwrap())
        };
        use Settlement::{Canada, India, TwoDays, UnitedStates};
        assert_eq!(market(Some("XNYS"), Some("DE"), "EUR"), UnitedStates);
        assert_eq!(market(Some("XTSE"), Some("US"), "USD"), Canada);
        assert_eq!(market(Some("XETR"), Some("US"), "USD"), TwoDays);
        assert_eq!(market(Some("somewhere"), Some("IN"), "USD"), India);
        assert_eq!(
            [market(None, Some("US"), "EUR"), market(None, Some("FR"), "USD")],
            [UnitedStates, TwoDays]
        );
        let currencies = ["USD", "CAD", "INR", "EUR"].map(|currency| market(None, None, currency));
        assert_eq!(currencies, [UnitedStates, Canada, India, TwoDays]);
    }

    #[test]
    fn large_distributions_go_ex_after_payment() {
        let us = Settlement::UnitedStates;
        let ex = |amount, price| us.ex_date_of(date("2024-12-10"), Some(date("2024-12-20")), amount, price);
        assert_eq!(ex(dec!(10), Some(dec!(40))), date("2024-12-23"));
        assert_eq!(ex(dec!(9.99), Some(dec!(40))), date("2024-12-10"));
        assert_eq!(ex(dec!(10), None), date("2024-12-10"));
    }

    #[test]
    fn a_quarter_of_the_price_is_large() {
        assert!(is_large(dec!(10), dec!(40)) && !is_large(dec!(9.9999), dec!(40)));
        assert!(!is_large(dec!(10), dec!(0)) && !is_large(dec!(10), dec!(-1)));
        // Without a payment date, the ex-date of a large distribution is derived from the record date too.
        let us = Settlement::UnitedStates;
        assert_eq!(us.ex_date_of(date("2024-12-10"), None, dec!(30), Some(dec!(40))), date("2024-12-10"));
    }
}
