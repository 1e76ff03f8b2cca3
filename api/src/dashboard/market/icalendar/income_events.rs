//! Calendar events of a portfolio: one for each ex-date and one for each payment date. The title of a payment event
//! contains the income from the holding.

use chrono::NaiveDate;
use serde_json::Value;

use super::revisions::Revisions;
use super::writer::{CalendarFile, CalendarWriter, Event, event_id};
use crate::app::state::App;
use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{digits, humanize, rows_of, str_of};
use crate::parameters::MinVersion;
use crate::read::QueryError;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
