//! Security events: one dated list of ticker changes, corporate actions and special dividends of a security.

use chrono::{Days, NaiveDate};

use super::split::SplitStatus;
use crate::decimal::ExactDecimal;
use crate::event::{FormerSymbol, ListingStatus, Security};
use crate::metrics::calendar::session_on_or_after;
use crate::{table_row, text_enum};

text_enum! {
    /// Type of a security event.
    pub enum SecurityEventType {
        /// New ticker.
        Rename = "rename",
        /// Merger into a successor.
        Merger = "merger",
        /// End of trading without a known successor.
        Delisting = "delisting",
        /// Change of the share count: split, reverse split or stock dividend.
        Split = "split",
        /// Distribution of a subsidiary, as a ratio or as a value per share.
        SpinOff = "spin_off",
        /// Subscription rights.
        Rights = "rights",
        /// Distribution of shares of another class.
        ClassDistribution = "class_distribution",
        /// Special, supplemental or liquidating dividend.
        SpecialDividend = "special_dividend",
    }
}

table_row! {
    /// An event of a security.
    pub struct SecurityEvent {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// First session with the change; of a delisting or merger the last trading day.
        "date" date: NaiveDate,
        /// Type of the event.
        "type" r#type: SecurityEventType,
        /// Status on the market's as-of date.
        "status" status: SplitStatus,
        /// Id of the split or dividend record.
        "id" id: Option<String>,
        /// Ticker before a rename.
        "from_symbol" from_symbol: Option<String>,
        /// Ticker after a rename, or the successor's after a merger.
        "to_symbol" to_symbol: Option<String>,
        /// New shares per old share; of a merger, shares of the successor per share.
        "ratio" ratio: Option<ExactDecimal>,
        /// Multiplier of earlier prices.
        "price_factor" price_factor: Option<ExactDecimal>,
        /// Cash or value per share as declared.
        "amount" amount: Option<ExactDecimal>,
        /// ISO 4217 currency of the amount.
        "currency" currency: Option<String>,
    }
}

impl SecurityEvent {
    fn new(symbol: &str, date: NaiveDate, r#type: SecurityEventType, as_of: NaiveDate) -> Self {
        Self {
            symbol: symbol.to_owned(),
            date,
            r#type,
            status: if date <= as_of { SplitStatus::Effective } else { SplitStatus::Announced },
            id: None,
            from_symbol: None,
            to_symbol: None,
            ratio: None,
            price_factor: None,
            amount: None,
            currency: None,
        }
    }
}

/// Renames, merger and delisting in a reference record, by date. A former symbol without a last day has no date
/// and is left out.
pub fn ticker_events(security: &Security, as_of: NaiveDate) -> Vec<SecurityEvent> {
    let symbol = security.symbol.as_str();
    let event = |date, r#type| SecurityEvent::new(symbol, date, r#type, as_of);
    let mut former: Vec<(NaiveDate, &FormerSymbol)> =
        security.former_symbols.iter().filter_map(|former| Some((former.to?, former))).collect();
    former.sort_by_key(|(to, former)| (*to, former.from));
    let mut events = Vec::new();
    for (place, (to, old)) in former.iter().enumerate() {
        let new = former.get(place + 1).map_or(&security.symbol, |(_, next)| &next.symbol);
        let Some(next_day) = to.checked_add_days(Days::new(1)).filter(|_| old.symbol != *new) else {
            continue;
        };
        events.push(SecurityEvent {
            from_symbol: Some(old.symbol.to_string()),
            to_symbol: Some(new.to_string()),
            ..event(session_on_or_after(next_day), SecurityEventType::Rename)
        });
    }
    if let Some(last) = security.delisted_on.filter(|_| security.status == ListingStatus::Delisted) {
        events.push(match &security.successor {
            Some(successor) => SecurityEvent {
                to_symbol: Some(successor.to_string()),
                ratio: security.merger_ratio.map(ExactDecimal::from),
                ..event(last, SecurityEventType::Merger)
            },
            None => event(last, SecurityEventType::Delisting),
        });
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn told(record: serde_json::Value) -> Vec<String> {
        let mut whole =
            json!({ "symbol": "NEW", "name": "New", "type": "stock", "currency": "USD", "status": "active" });
        for (name, value) in record.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let security: Security = serde_json::from_value(whole).unwrap();
        let line = |event: &SecurityEvent| {
            let from = event.from_symbol.as_deref().unwrap_or("-");
            let to = event.to_symbol.as_deref().unwrap_or("-");
            let ratio = event.ratio.map_or("-".to_owned(), |ratio| ratio.to_string());
            format!("{} {} {} {from} {to} {ratio}", event.date, event.r#type, event.status)
        };
        ticker_events(&security, day("2024-06-28")).iter().map(line).collect()
    }

    #[test]
    fn renames_follow_the_last_days_of_the_former_symbols() {
        let former = json!({ "former_symbols": [
            { "symbol": "MID", "from": "2015-01-02", "to": "2022-06-08" },
            { "symbol": "OLD", "to": "2015-01-01" },
            { "symbol": "LOST" },
        ] });
        assert_eq!(
            told(former),
            ["2015-01-02 rename effective OLD MID -", "2022-06-09 rename effective MID NEW -"]
        );
        // The first session under the new symbol: a Monday.
        let former = json!({ "former_symbols": [{ "symbol": "OLD", "to": "2024-06-28" }] });
        assert_eq!(told(former), ["2024-07-01 rename announced OLD NEW -"]);
        let same = json!({ "former_symbols": [{ "symbol": "NEW", "to": "2024-06-21" }] });
        assert!(told(same).is_empty());
    }

    #[test]
    fn a_security_ends_in_a_merger_or_a_delisting() {
        let gone = json!({ "status": "delisted", "delisted_on": "2023-10-13" });
        assert_eq!(told(gone), ["2023-10-13 delisting effective - - -"]);
        let merged = json!({
            "status": "delisted", "delisted_on": "2024-07-12", "successor": "BIG", "merger_ratio": "0.5",
        });
        assert_eq!(told(merged), ["2024-07-12 merger announced - BIG 0.5"]);
        // A date without the status is that of an earlier listing.
        assert!(told(json!({ "delisted_on": "2023-10-13" })).is_empty());
    }
}
