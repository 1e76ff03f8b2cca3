//! Calendar events of dividends: one for each ex-date and one for each payment date. Events of a portfolio have the income
//! from the holding.
//!
//! Invariants: an event's UID comes from the dividend's id, so a correction replaces the old event. A revision number
//! (`SEQUENCE`) never decreases, and it increases with every change of the dividend.

use axum::http::HeaderValue;
use axum::response::Response;
use chrono::{Days, NaiveDate};
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketResult, encode};
use super::reader::MarketReader;
use super::values::{digits, humanize, rows_of, str_of};
use crate::answer::private_response;
use crate::app::App;
use crate::parameters::MinVersion;
use crate::read::QueryError;
use crate::read::changes::DividendRevisions;
use crate::render::icalendar::{CalendarFile, CalendarWriter, Event, MEDIA_TYPE, event_id, host_of};

/// Number of past days whose dividends a calendar contains.
const PAST_DAYS: u64 = 90;

/// Content of a calendar file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Calendar<'a> {
    /// Dividends of comma-separated symbols, including withdrawn and estimated dividends.
    Dividends(&'a str),
    /// Income from holdings, in the format of the API's parameter `holdings`. The number of changes of the holdings,
    /// `edits`, is added to every revision number.
    Income { holdings: &'a str, edits: i64 },
}

impl Calendar<'_> {
    /// Path and query of the API call for the rows of the calendar.
    pub(crate) fn call(self, today: NaiveDate) -> String {
        match self {
            Self::Dividends(symbols) => format!(
                "/v1/dividends/history?symbols={}&start_date={}&status=declared,paid,cancelled&include_projected=true&limit=1000",
                encode(symbols),
                today - Days::new(PAST_DAYS)
            ),
            Self::Income { holdings, .. } => income_call(holdings),
        }
    }

    /// Calls the API, and responds with the file, or with 304 if the client's copy is current.
    pub(crate) async fn respond(
        self,
        app: &App,
        calls: &ApiCalls,
        origin: &str,
        if_none_match: Option<&HeaderValue>,
    ) -> MarketResult<Response> {
        let answer = calls.json_at_version(&self.call(app.today())).await?;
        Ok(as_calendar(self.write(app, &answer, origin).await?, if_none_match))
    }

    /// Responds with the file to the reader of a page, who may download it if nothing is left out for this reader.
    pub(crate) async fn respond_to_reader(self, reader: &MarketReader) -> MarketResult<Response> {
        self.respond(&reader.app, &reader.file_calls().await?, &reader.origin, None).await
    }

    /// Writes the file from the response to the call. `version` is the data version of the response. `origin` is the
    /// scheme and host of the site.
    pub(crate) async fn write(
        self,
        app: &App,
        (answer, version): &(Value, MinVersion),
        origin: &str,
    ) -> Result<CalendarFile, QueryError> {
        let (rows, edits) = match self {
            Self::Dividends(_) => (rows_of(&answer["data"]), 0),
            Self::Income { edits, .. } => (rows_of(&answer["data"]["payments"]), edits),
        };
        let generation = app.projection.pin_version(version).await?;
        let symbols = rows.iter().map(|row| str_of(&row["symbol"]));
        let revisions = DividendRevisions::read(&generation, symbols, version.position).await?;
        Ok(self.write_rows(rows, &revisions, edits, host_of(origin)))
    }

    fn write_rows(
        self,
        rows: &[Value],
        revisions: &DividendRevisions,
        edits: i64,
        host: &str,
    ) -> CalendarFile {
        let (name, texts): (_, fn(&Value) -> EventTexts) = match self {
            Self::Dividends(_) => ("Dividends", EventTexts::of_dividend),
            Self::Income { .. } => ("Dividend income", EventTexts::of_payment),
        };
        let mut writer = CalendarWriter::new(name, host);
        for row in rows {
            let EventTexts { kind, status, ex_date, payment, description } = texts(row);
            let (id, symbol) = (row["id"].as_str(), str_of(&row["symbol"]));
            let sequence = revisions.number(symbol, id).saturating_add(edits);
            let event = event_id(id, symbol, str_of(&row["ex_date"]));
            for (field, suffix, summary) in
                [("ex_date", "ex", &ex_date), ("payment_date", "payment", &payment)]
            {
                let Ok(day) = str_of(&row[field]).parse() else { continue };
                writer.event(&Event {
                    id: &format!("{event}{kind}-{suffix}"),
                    day,
                    sequence,
                    status,
                    changed_at: str_of(&row["updated_at"]),
                    summary,
                    description: &description,
                });
            }
        }
        writer.finish()
    }
}

/// Path and query of the API call for the income from holdings.
pub(crate) fn income_call(holdings: &str) -> String {
    format!("/v1/portfolio/income?holdings={}", encode(holdings))
}

/// HTTP response with a calendar file, or 304 if the client's copy is current.
pub(crate) fn as_calendar(file: CalendarFile, if_none_match: Option<&HeaderValue>) -> Response {
    private_response(file.text, MEDIA_TYPE, &file.etag, if_none_match)
}

/// Texts of the two events of a dividend.
struct EventTexts {
    /// Part of the event ids. Both kinds of calendars may contain the same dividend, so their ids differ.
    kind: &'static str,
    status: &'static str,
    /// Summary of the ex-date.
    ex_date: String,
    /// Summary of the payment.
    payment: String,
    description: String,
}

impl EventTexts {
    fn of_dividend(row: &Value) -> Self {
        let (symbol, currency) = (str_of(&row["symbol"]), str_of(&row["currency"]));
        let (status, hint) = match str_of(&row["status"]) {
            "cancelled" => ("CANCELLED", ""),
            "projected" => ("TENTATIVE", " (estimated)"),
            _ => ("CONFIRMED", ""),
        };
        let amount = digits(&row["amount"]).unwrap_or_default();
        let [kind, row_status] = ["type", "status"].map(|field| humanize(str_of(&row[field])));
        let summary = |word: &str| format!("{symbol} {word} {amount} {currency}{hint}");
        let description = format!("{kind} dividend of {symbol}, {row_status}");
        Self { kind: "", status, ex_date: summary("ex-dividend"), payment: summary("pays"), description }
    }

    fn of_payment(row: &Value) -> Self {
        let (symbol, currency) = (str_of(&row["symbol"]), str_of(&row["currency"]));
        let [shares, amount, income] =
            ["shares", "amount", "income"].map(|field| digits(&row[field]).unwrap_or_default());
        let amount_status = str_of(&row["amount_status"]);
        let (status, hint) = match amount_status {
            "estimated" => ("TENTATIVE", " (estimated)"),
            _ => ("CONFIRMED", ""),
        };
        let source = humanize(amount_status);
        Self {
            kind: "-income",
            status,
            ex_date: format!("{symbol} ex-dividend{hint}"),
            payment: format!("{symbol} pays {income} {currency}{hint}"),
            description: format!("{shares} shares of {symbol}, {amount} {currency} a share, {source}"),
        }
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
        let revisions = DividendRevisions::default();
        let write = |row: Value, host| Calendar::Dividends("").write_rows(&[row], &revisions, 0, host).text;
        let calendar = write(row(Some("d1"), "paid"), "data.example");
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
        assert!(write(row(Some("d1"), "cancelled"), "h").contains("STATUS:CANCELLED\r\n"));
        let estimate = write(row(None, "projected"), "h");
        assert!(
            estimate.contains("STATUS:TENTATIVE\r\n")
                && estimate.contains("UID:estimate-KO-2024-06-13-ex@h\r\n")
        );
    }

    #[test]
    fn a_payment_is_two_events_with_its_income() {
        let payment = json!({ "id": "d1", "symbol": "KO", "ex_date": "2024-06-13", "payment_date": "2024-06-28", "amount": "0.485",
                              "shares": "120", "income": "58.2", "currency": "USD", "amount_status": "declared" });
        let estimate = json!({ "id": null, "symbol": "KO", "ex_date": "2024-09-13", "payment_date": "2024-10-01", "amount": "0.5",
                               "shares": "120", "income": "60", "currency": "USD", "amount_status": "estimated" });
        let calendar = Calendar::Income { holdings: "", edits: 9 };
        let file = calendar.write_rows(&[payment, estimate], &DividendRevisions::default(), 9, "h");
        let file = file.text.replace("\r\n ", "");
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
}
