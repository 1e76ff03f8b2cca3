//! Calendar events of dividends: one for each ex-date and one for each payment date.
//!
//! Invariant: an event's UID comes from the dividend's id, so a correction replaces the old event.

use chrono::{Days, NaiveDate};
use serde_json::Value;

use super::revisions::Revisions;
use super::writer::{CalendarFile, CalendarWriter, Event, event_id};
use crate::app::state::App;
use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{digits, humanize, rows_of, str_of};
use crate::parameters::MinVersion;
use crate::read::QueryError;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
