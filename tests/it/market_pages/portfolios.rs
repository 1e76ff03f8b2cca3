//! Saved portfolios: their pages, and their income as files for calendars and spreadsheets.

use anyhow::{Context, Result};
use serde_json::json;

use super::calendar::lines;
use super::transactions::{endpoint, lasting_lines};
use super::{PUBLIC, page};

use crate::api_world::World;
use crate::dashboard::visitor::Person;

const PATH: &str = "/dashboard/portfolios";
const MIGRATION: &str = include_str!("../../../schema/store/migrations/V015__portfolio_transactions.sql");

/// Returns the first value of `name` after the line that begins with `uid` in an iCalendar file.
fn value_after(file: &str, uid: &str, name: &str) -> Result<String> {
    let all = lines(file);
    let mut rest = all.iter().skip_while(|line| !line.starts_with(uid));
    let value =
        rest.find_map(|line| line.strip_prefix(name)).with_context(|| format!("{uid} {name}: {file}"))?;
    Ok(value.to_owned())
}

#[tokio::test]
async fn a_saved_portfolio_is_a_calendar_and_a_table() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "portfolio@example.com").await?;
    let typed = [("name", "My shares/EU"), ("holdings", "COLA 120 6000\nBRK.B 10")];
    let saved = holder.fill(PATH, PATH, &typed).await?;
    assert_eq!((saved.status, saved.location()), (303, "/dashboard/portfolios?done=portfolio-saved"));
    let listed = holder.get(PATH).await?;
    let address = "/feed/YOUR-KEY/portfolios/My%20shares%2FEU/income.ics";
    assert!(listed.has("2 holdings") && listed.has(address), "{}", listed.text);
    assert!(holder.get(&format!("{PATH}?edit=My+shares/EU")).await?.has("COLA 120 6000\nBRK.B 10"));

    let made = holder.fill(PATH, "/dashboard/portfolios/link", &[("name", "My shares/EU")]).await?;
    let key = made.between("<code id=\"secret\">", "</code>")?.to_owned();
    let feed = format!("/feed/{key}/portfolios/My%20shares%2FEU");
    assert!(made.has(&format!("{feed}/income.ics")), "{}", made.text);
    let mut program = Person::at(&world.api)?;
    let calendar = program.get(&format!("{feed}/income.ics")).await?;
    assert_eq!(calendar.header("content-type"), "text/calendar; charset=utf-8", "{}", calendar.text);
    assert_eq!(calendar.header("x-quota-remaining"), "4999", "one call");
    let call = "/v1/portfolio/income?holdings=COLA:120:6000,BRK.B:10";
    let sheet = program.get(&format!("{feed}/income.csv")).await?;
    let direct = world.api.get(&format!("{call}&format=csv"), Some(&key)).await?;
    assert_eq!(sheet.text, direct.text());

    let income = world.json(&format!("{call}&decimals=string")).await?;
    let payment = &income["data"]["payments"][0];
    let (id, sum) =
        (payment["id"].as_str().context("an id")?, payment["income"].as_str().context("an income")?);
    let uid = format!("UID:{id}-income-payment@");
    let summary = value_after(&calendar.text, &uid, "SUMMARY:")?;
    assert_eq!(summary, format!("COLA pays {sum} USD"));

    let events = format!("/feed/{key}/events.atom?portfolio=My%20shares%2FEU");
    assert!(made.has(&events), "{}", made.text);
    assert!(program.get(&events).await?.has("COLA declared a dividend"));

    // With more shares, the calendar events of the same dividends change.
    let before: i64 = value_after(&calendar.text, &uid, "SEQUENCE:")?.parse()?;
    holder.fill(PATH, PATH, &[("name", "My shares/EU"), ("holdings", "COLA 240")]).await?;
    let changed = program.get(&format!("{feed}/income.ics")).await?;
    assert_ne!(value_after(&changed.text, &uid, "SUMMARY:")?, summary);
    let after: i64 = value_after(&changed.text, &uid, "SEQUENCE:")?.parse()?;
    assert!(after > before, "{before} {after}");

    for (path, status) in [("nope.ics", 404), ("income.ics?limit=1", 400)] {
        assert_eq!(program.get(&format!("{feed}/{path}")).await?.status, status, "{path}");
    }
    assert_eq!(program.get(&format!("/feed/{key}/portfolios/other/income.ics")).await?.status, 404);
    assert_eq!(program.get("/feed/dds_live_wrong/portfolios/My%20shares%2FEU/income.ics").await?.status, 401);
    assert!(!world.api.process.log().contains(&key), "the key is in the log");

    let removed = holder.fill(PATH, "/dashboard/portfolios/delete", &[("name", "My shares/EU")]).await?;
    assert_eq!(removed.location(), "/dashboard/portfolios?done=portfolio-deleted");
    assert_eq!(program.get(&format!("{feed}/income.ics")).await?.status, 404);
    let log = holder.get("/dashboard/log").await?;
    assert!(log.has("Portfolio saved") && log.has("Portfolio deleted"), "{}", log.text);
    Ok(())
}

#[tokio::test]
async fn a_portfolio_with_transactions_is_a_calendar_and_a_table() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "bought@example.com").await?;
    let shown = holder.post("/income/transactions", &[("text", "2024-01-03 COLA 50")]).await?;
    assert!(shown.has("Save to your account") && shown.has("name=\"transactions\""), "{}", shown.text);
    let typed =
        [("name", "bought"), ("transactions", "2024-01-03 COLA 50 99,5 USD my ira\n2024-03-20 COLA 20")];
    let saved = holder.fill(PATH, PATH, &typed).await?;
    assert_eq!((saved.status, saved.location()), (303, "/dashboard/portfolios?done=portfolio-saved"));
    let csv = "account,symbol,date,quantity,price,currency\nmy ira,COLA,2024-01-03,50,99.5,USD\n,COLA,2024-03-20,20,,\n";
    let listed = holder.get(PATH).await?;
    assert!(listed.has("2 transactions") && listed.has("Show the dividends"), "{}", listed.text);
    assert!(holder.get(&format!("{PATH}?edit=bought")).await?.has(csv.trim_end()));
    let key = holder.create_key("Program").await?;
    let mut program = Person::at(&world.api)?;
    let events = program.get(&format!("/feed/{key}/events.atom?portfolio=bought")).await?;
    assert!(events.has("COLA declared a dividend"), "{}", events.text);
    let feed = format!("/feed/{key}/portfolios/bought/income");
    let sheet = program.get(&format!("{feed}.csv")).await?;
    assert_eq!(sheet.text, endpoint(&world, "format=csv", csv).await?);
    assert_eq!(sheet.header("x-quota-remaining"), "4998", "one call");
    let calendar = program.get(&format!("{feed}.ics")).await?;
    assert_eq!(calendar.header("content-type"), "text/calendar; charset=utf-8", "{}", calendar.text);
    assert_eq!(lasting_lines(&calendar.text), lasting_lines(&endpoint(&world, "format=ics", csv).await?));
    let uid = "UID:";
    let before: i64 = value_after(&calendar.text, uid, "SEQUENCE:")?.parse()?;

    for file in ["csv", "ics"] {
        let path = format!("{feed}.{file}");
        let etag = program.get(&path).await?.header("etag").to_owned();
        let again = world.api.send(reqwest::Method::GET, &path, &[("if-none-match", etag.clone())]).await?;
        assert_eq!((again.status.as_u16(), again.header("etag")), (304, Some(etag.as_str())), "{path}");
    }

    // An edit increases the revision numbers of the events.
    holder.fill(PATH, PATH, &[("name", "bought"), ("transactions", csv)]).await?;
    let edited = program.get(&format!("{feed}.ics")).await?;
    assert_eq!(value_after(&edited.text, uid, "SEQUENCE:")?.parse::<i64>()?, before + 1);
    for (path, status) in [("x", 404), (".pdf", 404), (".csv?limit=1", 400)] {
        assert_eq!(program.get(&format!("{feed}{path}")).await?.status, status, "{path}");
    }
    let details: String =
        world.app.sql_value("select details::text from accounts.audit where action = 'portfolio.save' order by id desc limit 1").await?;
    assert!(details.contains("\"transactions\": 2") && !details.contains("COLA"), "{details}");

    // The listing that a broker's file names by ISIN is saved.
    let isin = |symbol: &str, currency: &str| {
        json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": "stock", "currency": currency,
                "isin": "US1912161007" })
    };
    let listings = format!("{}\n{}\n", isin("TWIN", "USD"), isin("TWINE", "EUR"));
    world.app.feed("listings.ndjson", listings).source("test").today("2024-06-17").load().await?;
    world.app.catch_up().await?;
    let file = include_str!("../../fixtures/brokers/degiro-transactions.csv");
    holder.fill(PATH, PATH, &[("name", "broker"), ("transactions", file)]).await?;
    assert!(holder.get(&format!("{PATH}?edit=broker")).await?.has(",TWIN,2023-03-01,100,60,USD"));
    let sheet = program.get(&format!("/feed/{key}/portfolios/broker/income.csv")).await?;
    assert_eq!(sheet.status, 200, "{}", sheet.text);

    // Holdings replace the transactions.
    holder.fill(PATH, PATH, &[("name", "bought"), ("holdings", "COLA 120")]).await?;
    assert!(program.get(&format!("{feed}.csv")).await?.text.starts_with("symbol,id,ex_date"));
    let long = format!("symbol,date,quantity\n{}", "COLA,2024-01-03,1\n".repeat(7_000));
    for (transactions, said) in [
        ("2024-01-03 COLA 50\n2024-01-03 COLA x", "Line 2: quantity"),
        ("COLA 1\nx 2", "column"),
        (long.as_str(), "longer than 128 KiB"),
    ] {
        let refused = holder.fill(PATH, PATH, &[("name", "bad"), ("transactions", transactions)]).await?;
        assert!(refused.status == 422 && refused.has(said), "{said}: {}", refused.text);
        assert!(refused.has("id=\"transactions-name\" name=\"name\" required maxlength=\"64\" autocomplete=\"off\" value=\"bad\""));
    }
    assert_eq!(holder.fill(PATH, &format!("{PATH}/delete"), &[("name", "bought")]).await?.status, 303);
    assert_eq!(program.get(&format!("{feed}.ics")).await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn a_portfolio_that_was_saved_before_transactions_keeps_its_holdings() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "earlier@example.com").await?;
    let database = world.app.servers().postgres.connect(world.app.accounts_database()).await?;
    let insert = |name: &str| {
        format!(
            "insert into accounts.portfolios (account_id, name, holdings) select id, '{name}', 'COLA:120' from accounts.accounts where email = 'earlier@example.com';"
        )
    };
    let before =
        "alter table accounts.portfolios drop column transactions, alter column holdings drop default;";
    // A program of the earlier version may still save holdings after the migration.
    let steps = [before, &insert("before"), MIGRATION, &insert("after")].concat();
    database.batch_execute(&steps).await?;
    let key = holder.create_key("Program").await?;
    for name in ["before", "after"] {
        let sheet = holder.get(&format!("/feed/{key}/portfolios/{name}/income.csv")).await?;
        let call = "/v1/portfolio/income?holdings=COLA:120&format=csv";
        assert_eq!(sheet.text, world.api.get(call, Some(&key)).await?.text(), "{name}");
    }
    assert!(holder.get(&format!("{PATH}?edit=before")).await?.has("COLA 120"));
    Ok(())
}

#[tokio::test]
async fn a_portfolio_belongs_to_its_account() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut owner = Person::signed_up(&world.api, "owner@example.com").await?;
    owner.fill(PATH, PATH, &[("name", "shares"), ("holdings", "COLA 120")]).await?;
    let mut other = Person::signed_up(&world.api, "other@example.com").await?;
    let key = other.create_key("Calendar").await?;
    let foreign = Person::at(&world.api)?.get(&format!("/feed/{key}/portfolios/shares/income.ics")).await?;
    assert_eq!(foreign.status, 404, "{}", foreign.text);
    assert!(!other.get(PATH).await?.has("COLA"));
    assert_eq!(other.fill(PATH, "/dashboard/portfolios/link", &[("name", "shares")]).await?.status, 404);
    let stranger = Person::at(&world.api)?.get(PATH).await?;
    assert!(stranger.status == 303 && stranger.location().starts_with("/sign-in"), "{}", stranger.status);
    Ok(())
}

#[tokio::test]
async fn mistakes_are_named_and_nothing_is_saved() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "mistake@example.com").await?;
    let many: String = (0..101).map(|number| format!("S{number} 1\n")).collect();
    for (name, holdings, said) in [
        ("shares", "COLA", "no number of shares of COLA"),
        ("shares", "?", "is not a symbol"),
        ("", "COLA 1", "must have 1 to 64 characters"),
        ("shares", many.as_str(), "has more than 100 holdings"),
    ] {
        let refused = holder.fill(PATH, PATH, &[("name", name), ("holdings", holdings)]).await?;
        assert!(refused.status == 422 && refused.has(said), "{said}: {}", refused.text);
    }
    for number in 0..20 {
        let name = format!("list {number}");
        assert_eq!(holder.fill(PATH, PATH, &[("name", &name), ("holdings", "COLA 1")]).await?.status, 303);
    }
    let full = holder.fill(PATH, PATH, &[("name", "one more"), ("holdings", "COLA 1")]).await?;
    assert!(full.status == 422 && full.has("at most 20"), "{}", full.text);
    let replaced = holder.fill(PATH, PATH, &[("name", "list 7"), ("holdings", "COLA 2")]).await?;
    assert_eq!(replaced.status, 303);
    let count: i64 = world.app.sql_value("select count(*) from accounts.portfolios").await?;
    assert_eq!(count, 20);
    Ok(())
}

#[tokio::test]
async fn the_income_page_offers_what_a_reader_may_keep() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/income?holdings=COLA:120").await?;
    assert!(shown.has("Payments as iCalendar") && !shown.has("Save to your account"), "{}", shown.text);
    let file = Person::at(&world.api)?.post("/income.ics", &[("holdings", "COLA:120")]).await?;
    assert!(file.status == 200 && file.text.starts_with("BEGIN:VCALENDAR\r\n"), "{}", file.text);
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"income.ics\"");
    let mut holder = Person::signed_up(&world.api, "keeper@example.com").await?;
    assert!(holder.get("/income?holdings=COLA:120").await?.has("Save to your account"));
    let saved =
        holder.fill("/income?holdings=COLA:120", PATH, &[("name", "kept"), ("holdings", "COLA 120")]).await?;
    assert_eq!(saved.status, 303, "{}", saved.text);
    let key = holder.create_key("Program").await?;
    let direct = Person::at(&world.api)?.get(&format!("/feed/{key}/income.ics?holdings=COLA:120")).await?;
    assert!(direct.status == 200 && direct.has("COLA pays"), "{}", direct.text);
    Ok(())
}
