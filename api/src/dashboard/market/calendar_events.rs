//! Calendar events of dividends: one for each ex-date and one for each payment date. Events of a portfolio have the income
//! from the holding.
//!
//! Invariants: an event's UID comes from the dividend's id, so a correction replaces the old event. A revision number
//! (`SEQUENCE`) never decreases, and it increases with every change of the dividend.

use std::collections::HashMap;

use chrono::{Days, NaiveDate};
use serde_json::Value;

use crate::app::state::App;
use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::icalendar::{CalendarFile, CalendarWriter, Event, event_id};
use crate::dashboard::market::values::{digits, humanize, rows_of, str_of};
use crate::parameters::MinVersion;
use crate::read::QueryError;
use crate::read::lookup::run_query;

/// Number of past days whose dividends a calendar contains.
const PAST_DAYS: u64 = 90;

/// Path and query of the API call for the dividends in a calendar, including withdrawn and estimated dividends.
pub(crate) fn dividends_call(symbols: &str, today: NaiveDate) -> String {
    let since = today - Days::new(PAST_DAYS);
    format!(
        "/v1/dividends/history?symbols={}&start_date={since}&status=declared,paid,cancelled&include_projected=true&limit=1000",
        encode(symbols)
    )
}

/// Writes the calendar file from the response to the call [`dividends_call`]. `version` is the data version of the
/// response.
pub(crate) async fn dividends_calendar(
    app: &App,
    (answer, version): &(Value, MinVersion),
    host: &str,
) -> Result<CalendarFile, QueryError> {
    let rows = rows_of(&answer["data"]);
    let revisions = Revisions::read(app, rows, *version).await?;
    Ok(write(rows, &revisions, host))
}

fn write(rows: &[Value], revisions: &Revisions, host: &str) -> CalendarFile {
    let mut writer = CalendarWriter::new("Dividends", host);
    for row in rows {
        let (symbol, currency) = (str_of(&row["symbol"]), str_of(&row["currency"]));
        let (status, hint) = match str_of(&row["status"]) {
            "cancelled" => ("CANCELLED", ""),
            "projected" => ("TENTATIVE", " (estimated)"),
            _ => ("CONFIRMED", ""),
        };
        let amount = digits(&row["amount"]).unwrap_or_default();
        let [kind, row_status] = ["type", "status"].map(|field| humanize(str_of(&row[field])));
        for (field, suffix, word) in [("ex_date", "ex", "ex-dividend"), ("payment_date", "payment", "pays")] {
            let Ok(day) = str_of(&row[field]).parse() else { continue };
            writer.event(&Event {
                id: &format!("{}-{suffix}", event_id(row)),
                day,
                sequence: revisions.number(row),
                status,
                changed_at: str_of(&row["updated_at"]),
                summary: &format!("{symbol} {word} {amount} {currency}{hint}"),
                description: &format!("{kind} dividend of {symbol}, {row_status}"),
            });
        }
    }
    writer.finish()
}

/// Path and query of the API call for the income from holdings. `holdings` is the value of the API's parameter
/// `holdings`.
pub(crate) fn income_call(holdings: &str) -> String {
    format!("/v1/portfolio/income?holdings={}", encode(holdings))
}

/// Writes the calendar file from the response to [`income_call`]. The number of changes of the holdings, `edits`, is
/// added to every revision number.
pub(crate) async fn income_calendar(
    app: &App,
    (answer, version): &(Value, MinVersion),
    edits: i64,
    host: &str,
) -> Result<CalendarFile, QueryError> {
    let payments = rows_of(&answer["data"]["payments"]);
    let revisions = Revisions::read(app, payments, *version).await?;
    let mut writer = CalendarWriter::new("Dividend income", host);
    for payment in payments {
        let sequence = revisions.number(payment).saturating_add(edits);
        write_events(&mut writer, payment, sequence);
    }
    Ok(writer.finish())
}

fn write_events(writer: &mut CalendarWriter<'_>, payment: &Value, sequence: i64) {
    let (symbol, currency) = (str_of(&payment["symbol"]), str_of(&payment["currency"]));
    let number = |field: &str| digits(&payment[field]).unwrap_or_default();
    let amount_status = str_of(&payment["amount_status"]);
    let (status, hint) = match amount_status {
        "estimated" => ("TENTATIVE", " (estimated)"),
        _ => ("CONFIRMED", ""),
    };
    let description = format!(
        "{} shares of {symbol}, {} {currency} a share, {}",
        number("shares"),
        number("amount"),
        humanize(amount_status)
    );
    let income = format!("{symbol} pays {} {currency}{hint}", number("income"));
    let ex_dividend = format!("{symbol} ex-dividend{hint}");
    for (field, suffix, summary) in [("ex_date", "ex", &ex_dividend), ("payment_date", "payment", &income)] {
        let Ok(day) = str_of(&payment[field]).parse::<NaiveDate>() else { continue };
        writer.event(&Event {
            // The ids differ from the ids in the dividend calendar, because both calendars may contain the same
            // dividend.
            id: &format!("{}-income-{suffix}", event_id(payment)),
            day,
            sequence,
            status,
            changed_at: "",
            summary,
            description: &description,
        });
    }
}

const POSITIONS: &str = include_str!("../../../queries/changes/positions.sql");

/// Journal positions of the newest changes of the dividends in an API response.
#[derive(Debug, Default)]
pub(super) struct Revisions {
    /// Position of the newest change, by symbol and dividend id. An empty id applies to all other dividends of the
    /// symbol.
    by_row: HashMap<(String, String), i64>,
    /// Position of the newest change of any dividend of each security, by symbol.
    by_symbol: HashMap<String, i64>,
    /// Changes up to this position were deleted from the journal.
    begins: i64,
    /// Journal position up to which the API response includes changes.
    answered: i64,
}

impl Revisions {
    /// Reads the journal positions of the dividends in `rows`. The rows are from a response with the data version
    /// `version`.
    pub(super) async fn read(app: &App, rows: &[Value], version: MinVersion) -> Result<Self, QueryError> {
        let mut symbols: Vec<&str> = rows.iter().map(|row| str_of(&row["symbol"])).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let generation = app.projection.pin_version(&version).await?;
        let mut revisions = Self { answered: version.position, ..Self::default() };
        for row in run_query(&generation, POSITIONS, &[&symbols]).await? {
            let position: i64 = row.try_get("position")?;
            match (row.try_get("symbol")?, row.try_get("id")?) {
                (Some(symbol), Some(id)) => revisions.add(symbol, id, position),
                _ => revisions.begins = position,
            }
        }
        Ok(revisions)
    }

    fn add(&mut self, symbol: String, id: String, position: i64) {
        let newest = self.by_symbol.entry(symbol.clone()).or_default();
        *newest = position.max(*newest);
        self.by_row.insert((symbol, id), position);
    }

    /// Revision number of a dividend's events: the position of the dividend's newest change. For an estimated dividend,
    /// which has no id, any dividend of the security counts.
    pub(super) fn number(&self, row: &Value) -> i64 {
        let symbol = str_of(&row["symbol"]);
        let of_row = |id: &str| self.by_row.get(&(symbol.to_owned(), id.to_owned()));
        let newest = match row["id"].as_str() {
            Some(id) => of_row(id).or_else(|| of_row("")),
            None => self.by_symbol.get(symbol),
        };
        newest.copied().unwrap_or(self.begins).max(self.begins).min(self.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(id: Option<&str>, status: &str) -> Value {
        json!({ "id": id, "symbol": "KO", "status": status, "type": "regular", "ex_date": "2024-06-13", "payment_date": "2024-06-28",
                "amount": "0.485", "currency": "USD", "updated_at": "2024-06-01T12:00:00Z" })
    }

    #[test]
    fn a_dividend_is_two_events_with_stable_ids() {
        let revisions = Revisions::default();
        let calendar = write(&[row(Some("d1"), "paid")], &revisions, "data.example").text;
        for line in [
            "UID:d1-ex@data.example\r\n",
            "UID:d1-payment@data.example\r\n",
            "LAST-MODIFIED:20240601T120000Z\r\n",
            "DTSTART;VALUE=DATE:20240613\r\nDTEND;VALUE=DATE:20240614\r\n",
            "SUMMARY:KO ex-dividend 0.485 USD\r\n",
            "SEQUENCE:0\r\n",
            "STATUS:CONFIRMED\r\n",
        ] {
            assert!(calendar.contains(line), "{line}: {calendar}");
        }
        assert!(
            write(&[row(Some("d1"), "cancelled")], &revisions, "h").text.contains("STATUS:CANCELLED\r\n")
        );
        let estimate = write(&[row(None, "projected")], &revisions, "h").text;
        assert!(
            estimate.contains("STATUS:TENTATIVE\r\n")
                && estimate.contains("UID:estimate-KO-2024-06-13-ex@h\r\n")
        );
    }

    #[test]
    fn a_payment_is_two_events_with_its_income() {
        let mut writer = CalendarWriter::new("Dividend income", "h");
        let payment = json!({ "id": "d1", "symbol": "KO", "ex_date": "2024-06-13", "payment_date": "2024-06-28", "amount": "0.485",
                              "shares": "120", "income": "58.2", "currency": "USD", "amount_status": "declared" });
        write_events(&mut writer, &payment, 9);
        let estimate = json!({ "id": null, "symbol": "KO", "ex_date": "2024-09-13", "payment_date": "2024-10-01", "amount": "0.5",
                               "shares": "120", "income": "60", "currency": "USD", "amount_status": "estimated" });
        write_events(&mut writer, &estimate, 9);
        let file = writer.finish().text.replace("\r\n ", "");
        for line in [
            "UID:d1-income-ex@h",
            "UID:d1-income-payment@h",
            "SUMMARY:KO pays 58.2 USD",
            "DESCRIPTION:120 shares of KO\\, 0.485 USD a share\\, declared",
            "SUMMARY:KO pays 60 USD (estimated)",
            "UID:estimate-KO-2024-09-13-income-payment@h",
        ] {
            assert!(file.contains(&format!("{line}\r\n")), "{line}: {file}");
        }
        assert_eq!(file.matches("SEQUENCE:9\r\n").count(), 4, "{file}");
    }

    #[test]
    fn a_number_is_of_the_row_else_of_its_symbol_else_of_the_pruned_changes() {
        let mut revisions = Revisions { begins: 5, answered: 40, ..Revisions::default() };
        revisions.add("KO".to_owned(), String::new(), 7);
        revisions.add("KO".to_owned(), "d1".to_owned(), 30);
        revisions.add("KO".to_owned(), "d3".to_owned(), 41);
        let number =
            |symbol: &str, id: Option<&str>| revisions.number(&json!({ "symbol": symbol, "id": id }));
        assert_eq!(
            [number("KO", Some("d1")), number("KO", Some("d2")), number("PEP", Some("d4"))],
            [30, 7, 5]
        );
        // The change at 41 is later than the response.
        assert_eq!([number("KO", Some("d3")), number("KO", None)], [40, 40]);
    }
}
