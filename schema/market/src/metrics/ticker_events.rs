//! Ticker events of a security: renames, merger and delisting, from its reference record.

use chrono::{Days, NaiveDate};

use super::calendar::session_on_or_after;
use crate::decimal::ExactDecimal;
use crate::event::{FormerSymbol, ListingStatus, Security};
use crate::row::{SecurityEvent, SecurityEventType, SplitStatus};

/// Ticker events of a reference record: the renames by date, then the merger or delisting. A former symbol without a
/// last day of use is left out, because its rename date is unknown.
pub fn ticker_events(security: &Security, as_of: NaiveDate) -> Vec<SecurityEvent> {
    let symbol = security.symbol.as_str();
    let event = |date, r#type| {
        let status = if date <= as_of { SplitStatus::Effective } else { SplitStatus::Announced };
        SecurityEvent::new(symbol, date, r#type, status)
    };
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
        // A delisting date without the status `delisted` belongs to an earlier listing.
        assert!(told(json!({ "delisted_on": "2023-10-13" })).is_empty());
    }
}
