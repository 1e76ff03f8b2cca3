//! Received dividends as an iCalendar file.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::{Market, transactions};

const JSON: &str = "application/json";

/// Events of the file: their lines without the time of creation.
async fn events(market: &Market, query: &str, lines: &[&str]) -> Result<Vec<Vec<String>>> {
    let body = transactions(lines).to_string();
    let reply = market.post(&format!("format=ics&{query}"), JSON, &body).await?;
    anyhow::ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
    assert_eq!(reply.header("content-type"), Some("text/calendar; charset=utf-8"));
    assert_eq!((reply.header("cache-control"), reply.header("etag")), (Some("no-store"), None));
    let file = reply.text().replace("\r\n ", "");
    let events = file.split("BEGIN:VEVENT\r\n").skip(1);
    let lines = |event: &str| -> Vec<String> {
        event.lines().filter(|line| !line.starts_with("DTSTAMP")).map(str::to_owned).collect()
    };
    Ok(events.map(lines).collect())
}

fn value<'a>(event: &'a [String], name: &str) -> Result<&'a str> {
    let found = event.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.with_context(|| format!("{name}: {event:?}"))
}

#[tokio::test]
async fn a_payment_is_two_events_with_its_quantity_and_amount() -> Result<()> {
    let market = Market::start().await?;
    let lines = ["ira,KO,2024-03-01,100", ",KO,2024-03-01,1"];
    let found = events(&market, "end_date=2024-10-31&tax=US:15", &lines).await?;
    let summaries: Vec<&str> = found.iter().map(|event| value(event, "SUMMARY")).collect::<Result<_>>()?;
    assert_eq!(
        summaries[..6],
        [
            "KO ex-dividend 0.485 USD for 1 shares",
            "KO pays 0.485 USD for 1 shares",
            "KO ex-dividend 48.5 USD for 100 shares\\, ira",
            "KO pays 48.5 USD for 100 shares\\, ira",
            "KO ex-dividend 0.485 USD for 1 shares",
            "KO pays 0.485 USD for 1 shares",
        ]
    );
    assert_eq!(value(&found[3], "DTSTART;VALUE=DATE")?, "20240401");
    assert_eq!(value(&found[3], "STATUS")?, "CONFIRMED");
    assert_eq!(value(&found[3], "DESCRIPTION")?, "0.485 USD a share\\, paid\\, 41.22 USD after tax");
    let estimate = found.last().context("an event")?;
    assert_eq!(value(estimate, "STATUS")?, "TENTATIVE");
    assert!(value(estimate, "SUMMARY")?.ends_with("for 100 shares\\, ira (estimated)"), "{estimate:?}");
    // Each event has its own id, which does not depend on the quantity.
    let ids = |events: &[Vec<String>]| -> Result<BTreeSet<String>> {
        events.iter().map(|event| Ok(value(event, "UID")?.to_owned())).collect()
    };
    let more = events(&market, "end_date=2024-10-31", &["ira,KO,2024-03-01,200", ",KO,2024-03-01,1"]).await?;
    assert_eq!((ids(&found)?.len(), ids(&found)?), (found.len(), ids(&more)?));
    assert!(value(&found[3], "UID")?.ends_with("-received-ira-payment@127.0.0.1"), "{:?}", found[3]);
    Ok(())
}

#[tokio::test]
async fn only_endpoints_with_a_calendar_accept_its_format() -> Result<()> {
    let market = Market::start().await?;
    let refused = market.api.get("/v1/portfolio/income?holdings=KO:1&format=ics", Some(&market.key)).await?;
    assert_eq!((refused.status.as_u16(), &refused.json()?["param"]), (400, &"format".into()));
    let document = market.api.get("/openapi.json", None).await?.json()?;
    let operation = &document["paths"]["/v1/portfolio/dividends"]["post"];
    assert!(operation["responses"]["200"]["content"]["text/calendar"].is_object(), "{operation}");
    let income = &document["paths"]["/v1/portfolio/income"]["get"];
    assert!(income["responses"]["200"]["content"]["text/calendar"].is_null(), "{income}");
    Ok(())
}
