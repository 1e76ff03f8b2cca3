//! Calendar of ex-dates and payments: pages, files, and calendar addresses that contain a key.

use anyhow::{Context, Result};
use reqwest::Method;
use serde_json::json;

use super::{PUBLIC, page};
use crate::api_world::{World, column};
use crate::dashboard::visitor::Person;

#[tokio::test]
async fn a_month_and_a_week_show_declared_and_estimated_dividends() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let month = page(&world, "/calendar?from=2024-09-20").await?;
    for said in [
        "September 2024",
        "Fri 13 Sep",
        "href=\"/s/COLA\"",
        "GET /v1/dividends/ex-dates?start_date=2024-09-01",
    ] {
        assert!(month.has(said), "{said}: {}", month.text);
    }
    assert!(!month.has("class=\"estimate\""), "{}", month.text);
    let week = page(&world, "/calendar?days=pay&span=week&from=2024-12-30").await?;
    assert!(week.has("class=\"estimate\"") && week.has("estimated"), "{}", week.text);
    assert!(
        page(&world, "/calendar?from=2024-09-20&symbols=BRK.B")
            .await?
            .has("No dividend is declared or expected")
    );
    assert!(
        page(&world, "/calendar?from=2024-09-20&min_yield=90")
            .await?
            .has("No dividend is declared or expected")
    );
    let splits = page(&world, "/calendar?days=splits&from=2024-03-20").await?;
    for said in ["GET /v1/splits/calendar?start_date=2024-03-01", "datetime=\"2024-03-01\"", "forward 2:1"] {
        assert!(splits.has(said), "{said}: {}", splits.text);
    }
    assert!(page(&world, "/calendar?days=splits&from=2024-09-20").await?.has("No split is announced"));
    // For a month before the plan's history, the calendar begins with the first day of the history.
    let free = world.app.api_serve_with(&[("PAGES", "public")]).await?;
    assert!(Person::at(&free)?.get("/calendar?from=1990-01-01").await?.has("start_date=2023-06-17"));
    let sheet = page(&world, "/calendar.csv?from=2024-09-20").await?;
    let call = "/v1/dividends/ex-dates?start_date=2024-09-01&end_date=2024-09-30&include_projected=true&limit=500&format=csv";
    assert_eq!(sheet.text, world.get(call).await?.text());
    for path in ["/calendar?sector=nope", "/calendar?min_yield=x", "/calendar?symbols=%2C"] {
        assert_eq!(Person::at(&world.api)?.get(path).await?.status, 422, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn today_is_marked_and_larger_companies_come_first() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut records = vec![
        json!({ "kind": "security", "symbol": "ZETA", "name": "Zeta Company", "type": "stock" }),
        json!({ "kind": "fundamentals", "symbol": "ZETA", "as_of": "2024-03-31", "shares_outstanding": "90000000000" }),
        json!({ "kind": "price", "symbol": "ZETA", "date": "2024-06-14", "close": "60" }),
    ];
    for day in ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-13"] {
        records.push(json!({ "kind": "dividend", "symbol": "ZETA", "id": day, "ex_date": day, "amount": "0.485", "frequency": "quarterly" }));
    }
    let feed = world.app.folder().join("zeta.ndjson");
    std::fs::write(&feed, records.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    harness::eventually(std::time::Duration::from_secs(120), async || {
        anyhow::ensure!(page(&world, "/calendar").await?.has("ZETA"), "the feed is loaded");
        Ok(())
    })
    .await?;
    let month = page(&world, "/calendar").await?;
    let past = month.between("datetime=\"2024-06-13\"", "datetime=\"2024-06-14\"")?;
    assert!(past.find("/s/ZETA") < past.find("/s/COLA"), "{past}");
    for said in ["Zeta Company", ">0.485<", "value=\"3.2"] {
        assert!(past.contains(said), "{said}: {past}");
    }
    let before = |day: &str| month.text.split_once(day).and_then(|(before, _)| before.rsplit_once("<li "));
    assert!(before("datetime=\"2024-06-13\"").is_some_and(|(_, day)| day.contains("past")));
    assert!(before("datetime=\"2024-06-17\"").is_some_and(|(_, day)| day.contains("id=\"today\"")));
    // The week of the month with today is the week of today.
    assert!(month.has("span=week&amp;from=2024-06-17"), "{}", month.text);
    Ok(())
}

/// Returns the lines of an iCalendar file. Folded lines are joined.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.replace("\r\n ", "").split("\r\n").map(str::to_owned).collect()
}

#[tokio::test]
async fn a_calendar_program_follows_corrections_and_withdrawals() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let first = page(&world, "/calendar.ics?symbols=COLA").await?;
    assert_eq!(first.header("content-type"), "text/calendar; charset=utf-8");
    let rows =
        world.json("/v1/dividends/history?symbols=COLA&start_date=2024-09-13&end_date=2024-09-13").await?;
    let id = column(&rows, "id")[0].as_str().context("an id")?.to_owned();
    let uid = format!("UID:{id}-ex@127.0.0.1");
    let event = |text: &str| -> Vec<String> {
        let all = lines(text);
        let start = all.iter().position(|line| *line == uid).unwrap_or(all.len());
        all[start..].iter().take_while(|line| *line != "END:VEVENT").cloned().collect()
    };
    let declared = event(&first.text);
    assert!(declared.contains(&"DTSTART;VALUE=DATE:20240913".to_owned()), "{}", first.text);
    assert!(declared.contains(&"STATUS:CONFIRMED".to_owned()), "{declared:?}");
    assert!(first.has("STATUS:TENTATIVE"), "{}", first.text);
    let sequence =
        |event: &[String]| event.iter().find_map(|line| line.strip_prefix("SEQUENCE:")?.parse::<i64>().ok());
    let feed = world.app.folder().join("more.ndjson");
    let mut last = sequence(&declared).context("a sequence")?;
    // `SEQUENCE` must increase even if both corrections are loaded within the same second.
    for (revision, day) in [(1, "2024-09-16"), (2, "2024-09-17")] {
        let record = json!({ "kind": "dividend", "symbol": "COLA", "id": "c20249", "ex_date": day, "amount": "1.1", "frequency": "quarterly", "revision": revision });
        std::fs::write(&feed, record.to_string())?;
        world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
        world.app.catch_up().await?;
        let start = format!("DTSTART;VALUE=DATE:{}", day.replace('-', ""));
        let mut corrected = vec![];
        harness::eventually(std::time::Duration::from_secs(120), async || {
            corrected = event(&page(&world, "/calendar.ics?symbols=COLA").await?.text);
            anyhow::ensure!(corrected.contains(&start), "{corrected:?}");
            Ok(())
        })
        .await?;
        let number = sequence(&corrected).context("a sequence")?;
        assert!(number > last, "{number} after {last}: {corrected:?}");
        last = number;
    }
    let again = event(&page(&world, "/calendar.ics?symbols=COLA").await?.text);
    assert_eq!(sequence(&again), Some(last), "the same event has the same number");
    Ok(())
}

#[tokio::test]
async fn an_address_with_a_key_is_charged_limited_and_ended() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "c@example.com").await?;
    let key = holder.create_key("Spreadsheet").await?;
    let mut program = Person::at(&world.api)?;
    let calendar = program.get(&format!("/feed/{key}/calendar.ics?symbols=COLA")).await?;
    assert!(calendar.status == 200 && calendar.text.starts_with("BEGIN:VCALENDAR\r\n"), "{}", calendar.text);
    let sheet = program.get(&format!("/feed/{key}/v1/dividends/history?symbols=COLA")).await?;
    let call = world.api.get("/v1/dividends/history?symbols=COLA&format=csv", Some(&key)).await?;
    assert_eq!(sheet.text, call.text());
    assert_eq!(sheet.header("x-quota-remaining"), "4998");
    // Only the parameter `format` decides the format.
    for (query, media_type) in [("q=format=x", "text/csv"), ("q=COLA&format=json", "application/json")] {
        let found = program.get(&format!("/feed/{key}/v1/search?{query}")).await?;
        assert!(found.header("content-type").starts_with(media_type), "{query}: {}", found.text);
    }
    let stream = program.get(&format!("/feed/{key}/v1/changes?symbols=COLA")).await?;
    assert!(stream.status == 400 && stream.has("updated_since"), "{}", stream.text);
    for path in ["calendar.ics?symbols=COLA", "v1/stocks", "v1/changes"] {
        let refused = program.get(&format!("/feed/dds_live_wrong/{path}")).await?;
        assert_eq!(refused.status, 401, "{path}: {}", refused.text);
    }
    assert_eq!(program.get(&format!("/feed/{key}/v1/bulk/quotes?symbols=COLA")).await?.status, 403);
    assert_eq!(program.get(&format!("/feed/{key}/v1/nowhere")).await?.status, 404);
    assert!(!world.api.process.log().contains(&key), "the key is in the log");
    let listed = holder.get("/dashboard/keys").await?;
    let id = listed.between("/dashboard/keys/", "/replace")?.to_owned();
    let delete = format!("/dashboard/keys/{id}/delete");
    holder.fill(&delete, &delete, &[]).await?;
    assert_eq!(program.get(&format!("/feed/{key}/calendar.ics?symbols=COLA")).await?.status, 401);
    Ok(())
}

#[tokio::test]
async fn a_file_at_an_address_with_a_key_is_private_and_conditional() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "p@example.com").await?;
    let saved = "/dashboard/portfolios";
    holder.fill(saved, saved, &[("name", "shares"), ("holdings", "COLA 120")]).await?;
    let key = holder.create_key("Program").await?;
    let get = async |path: &str, tag: Option<String>| {
        let headers: Vec<_> = tag.into_iter().map(|tag| ("if-none-match", tag)).collect();
        world.api.send(Method::GET, &format!("/feed/{key}/{path}"), &headers).await
    };
    for path in [
        "calendar.ics?symbols=COLA",
        "income.ics?holdings=COLA:120",
        "portfolios/shares/income.ics",
        "portfolios/shares/income.csv",
        "v1/dividends/history?symbols=COLA",
    ] {
        let file = get(path, None).await?;
        assert_eq!(
            (file.status.as_u16(), file.header("cache-control")),
            (200, Some("private, max-age=60")),
            "{path}"
        );
        let tag = file.header("etag").with_context(|| format!("no entity tag of {path}"))?.to_owned();
        let again = get(path, Some(tag.clone())).await?;
        assert_eq!((again.status.as_u16(), again.header("etag")), (304, Some(tag.as_str())), "{path}");
        assert!(
            again.body.is_empty() && again.header("cache-control") == Some("private, max-age=60"),
            "{path}"
        );
        assert_eq!(get(path, Some("W/\"other\"".to_owned())).await?.status, 200, "{path}");
    }
    let before = get("portfolios/shares/income.ics", None).await?;
    holder.fill(saved, saved, &[("name", "shares"), ("holdings", "COLA 240")]).await?;
    let after = get("portfolios/shares/income.ics", before.header("etag").map(str::to_owned)).await?;
    assert_eq!(after.status, 200, "other holdings are another file");
    for path in ["portfolios/other/income.ics", "v1/changes", "v1/nowhere", "calendar.ics"] {
        assert_eq!(get(path, None).await?.header("cache-control"), Some("no-store"), "{path}");
    }
    Ok(())
}
