//! Calendar file of received dividends: an event for the ex-date and an event for the payment date of each payment.

use market::row::DividendStatus;

use super::received_payment::ReceivedDividend;
use crate::read::dividend_revisions::DividendRevisions;
use crate::render::icalendar::{CalendarFile, CalendarSource, CalendarWriter, Event, event_id};

/// Writes the events of payments. The ids of a payment's events contain the account, because each account has its own
/// payment of a dividend.
pub(super) fn write_calendar(
    payments: &[&ReceivedDividend],
    revisions: &DividendRevisions,
    source: &CalendarSource,
) -> CalendarFile {
    let mut writer = CalendarWriter::new("Dividends received", &source.host);
    for payment in payments {
        let ReceivedDividend { symbol, quantity, amount, gross, currency, ex_date, .. } = payment;
        let (status, hint) = match payment.status {
            DividendStatus::Projected => ("TENTATIVE", " (estimated)"),
            _ => ("CONFIRMED", ""),
        };
        let owner = payment.account.as_deref().map(|account| format!(", {account}")).unwrap_or_default();
        let net = payment.net.map(|net| format!(", {net} {currency} after tax")).unwrap_or_default();
        let sum = format!("{gross} {currency} for {quantity} shares{owner}{hint}");
        let description = format!("{amount} {currency} a share, {}{net}", payment.status);
        let account = payment.account.as_deref().map(|account| format!("-{account}")).unwrap_or_default();
        let id = format!("{}-received{account}", event_id(payment.id.as_deref(), symbol, ex_date));
        let days = [(Some(*ex_date), "ex", "ex-dividend"), (payment.payment_date, "payment", "pays")];
        for (day, suffix, verb) in days {
            let Some(day) = day else { continue };
            writer.event(&Event {
                id: &format!("{id}-{suffix}"),
                day,
                sequence: revisions.number(symbol, payment.id.as_deref()).saturating_add(source.edits),
                status,
                changed_at: "",
                summary: &format!("{symbol} {verb} {sum}"),
                description: &description,
            });
        }
    }
    writer.finish()
}
