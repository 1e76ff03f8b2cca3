//! Tests of the public pages. Their statements match the API, and no page waits for a hanging database.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use harness::{Servers, TestApp};
use reqwest::Method;
use serde_json::{Value, json};

use super::open;
use super::visitor::{Page, Person};
use crate::api_contract::{filled, needed};
use crate::api_world::{World, day, sessions};

const WHO: &str = "site@example.com";
const OPEN: [(&str, &str); 2] = [("SIGN_UP", "open"), ("BILLING", "self_service")];
/// Pages that must load even if the database does not reply.
const PUBLIC: [&str; 8] =
    ["/", "/docs", "/plans", "/status", "/methods", "/methods/R9", "/versions", "/nowhere"];
const OWN: [&str; 6] = [
    "/dashboard",
    "/dashboard/keys",
    "/dashboard/usage",
    "/dashboard/plan",
    "/dashboard/account",
    "/dashboard/log",
];

/// Loads the landing page until it shows the response of the example call. Returns the page.
async fn with_example(person: &mut Person) -> Result<Page> {
    let mut page = person.get("/").await?;
    for _ in 0..200 {
        if page.has("class=\"answer\"") {
            return Ok(page);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        page = person.get("/").await?;
    }
    anyhow::bail!("no live answer: {}", page.text)
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let started = Instant::now();
    let done = work.await.with_context(|| what.to_owned())?;
    let took = started.elapsed();
    ensure!(took < limit, "{what} took {took:?}");
    Ok(done)
}

#[tokio::test]
async fn no_page_waits_for_a_frozen_database() -> Result<()> {
    let servers = Servers::private().await?;
    let world = World::start_in(TestApp::builder().servers(&servers), &OPEN).await?;
    let mut person = Person::signed_up(&world.api, WHO).await?;
    let mut stranger = Person::at(&world.api)?;
    let token = person.get("/dashboard/keys").await?.token()?;
    // The first API process has an example response, which it can show again. The second process has none yet.
    with_example(&mut stranger).await?;
    let fresh = world.app.api_serve_with(&OPEN).await?;
    let mut first_visitor = Person::at(&fresh)?;
    first_visitor.cookie.clone_from(&person.cookie);

    servers.postgres.freeze().await?;
    let second = Duration::from_secs(1);
    for path in PUBLIC {
        let status = if path == "/nowhere" { 404 } else { 200 };
        for (who, visitor) in
            [("stranger", &mut stranger), ("holder", &mut person), ("first visitor", &mut first_visitor)]
        {
            let page = within(second, &format!("{path} for a {who}"), visitor.get(path)).await?;
            // The status page may already report the outage, with another status.
            ensure!(page.status == status || path == "/status", "{path}: {}", page.status);
            ensure!(page.text.starts_with("<!doctype html>"), "{path}: {}", page.text);
        }
    }
    assert!(first_visitor.get("/").await?.has("The live answer is missing"));
    for path in OWN {
        let page = within(Duration::from_secs(6), path, person.get(path)).await?;
        assert_eq!(page.status, 503, "{path}");
        assert!(page.has("<h1>Not now</h1>"), "{path}: {}", page.text);
    }
    let fields = [("token", token.as_str()), ("name", "k"), ("life", "90")];
    let posts: [(&str, &[(&str, &str)]); 3] = [
        ("/dashboard/keys", &fields),
        ("/dashboard/keys/reference", &fields),
        ("/sign-in", &[("email", WHO), ("password", "some password")]),
    ];
    for (path, fields) in posts {
        let page = within(Duration::from_secs(10), path, person.post(path, fields)).await?;
        assert_eq!(page.status, 503, "{path}");
    }
    servers.postgres.thaw().await?;
    harness::eventually(Duration::from_secs(120), async || {
        let page = person.get("/dashboard").await?;
        ensure!(page.status == 200, "{}", page.status);
        Ok(())
    })
    .await?;
    with_example(&mut first_visitor).await?;
    Ok(())
}

/// Returns the records of a security with prices and quarterly dividends since 2021.
fn more_records(symbol: &str, kind: &str, close: &str, amount: &str) -> Vec<Value> {
    let mut records = vec![
        json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": kind, "exchange": "XNYS", "currency": "USD" }),
        json!({ "kind": "fundamentals", "symbol": symbol, "as_of": "2024-03-31", "shares_outstanding": "900000000000" }),
    ];
    for date in sessions("2021-01-01") {
        records.push(
            json!({ "kind": "price", "symbol": symbol, "date": date.to_string(), "open": close, "high": close,
            "low": close, "close": close, "volume": 1000 }),
        );
    }
    let quarters =
        (2021..=2024).flat_map(|year| [3, 6, 9, 12].map(move |month| format!("{year}-{month:02}-12")));
    for date in quarters.filter(|date| day(date) <= day("2024-06-14")) {
        records.push(
            json!({ "kind": "dividend", "symbol": symbol, "id": format!("{symbol}{date}"), "ex_date": date,
            "amount": amount, "frequency": "quarterly" }),
        );
    }
    records
}

async fn load(app: &TestApp, name: &str, records: &[Value]) -> Result<()> {
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    let feed = app.folder().join(format!("{name}.ndjson"));
    std::fs::write(&feed, lines.join("\n"))?;
    app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    app.catch_up().await
}

#[tokio::test]
async fn the_example_is_a_security_without_a_finding_of_the_audit() -> Result<()> {
    let world = World::start_with(&OPEN).await?;
    load(&world.app, "trap", &more_records("TRAP", "stock", "10", "1.65")).await?;
    let audit = world.app.projector(&["audit", "--json"]).await?;
    assert!(audit.stdout.contains("TRAP"), "{}", audit.stdout);
    let api = world.app.api_serve_with(&OPEN).await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let landing = with_example(&mut person).await?;
    assert!(landing.has("/v1/stocks/COLA/quote") && !landing.has("TRAP"), "{}", landing.text);
    // The example call on the page of a new key uses the same security.
    let key = person.fill("/dashboard/keys", "/dashboard/keys", &[("name", "k"), ("life", "90")]).await?;
    assert!(key.between("<code id=\"call\">", "</code>")?.contains("/v1/stocks/COLA/quote"), "{}", key.text);

    load(&world.app, "fund", &more_records("SPY", "etf", "500", "1.70")).await?;
    let api = world.app.api_serve_with(&OPEN).await?;
    let landing = with_example(&mut Person::at(&api)?).await?;
    assert!(landing.has("/v1/stocks/SPY/quote"), "{}", landing.text);
    let audit = world.app.projector(&["audit", "--json"]).await?;
    assert!(!audit.stdout.contains("SPY"), "{}", audit.stdout);
    Ok(())
}

/// Fails if the plans page and the API disagree about the lowest plan that an endpoint requires.
#[tokio::test]
async fn the_plans_page_is_true() -> Result<()> {
    let world = World::start_with(&OPEN).await?;
    let mut person = Person::at(&world.api)?;
    let page = person.get("/plans").await?;
    for said in
        ["Calls a minute", "Burst", "Calls a month", "History", "Endpoints", "Bulk", "5,000", "100 years"]
    {
        assert!(page.has(said), "{said}: {}", page.text);
    }
    assert!(!page.has("same data"), "{}", page.text);
    world.app.sql("update accounts.tiers set rate_per_minute = 1000, burst = 1000", &[]).await?;
    let document = world.api.get("/openapi.json", None).await?.json()?;
    let refused = async |path: &str, key: &str| -> Result<bool> {
        let (call, query) = path.split_once('?').unwrap_or((path, ""));
        let query = [query, needed(call)].join("&");
        Ok(world.api.get(&format!("{}?{}", filled(call), query.trim_matches('&')), Some(key)).await?.status
            == 403)
    };
    let calls = document["paths"].as_object().context("paths")?.keys().map(String::as_str);
    let calls =
        calls.filter(|path| *path != "/v1/health").chain(["/v1/stocks/{symbol}/metrics?explain=true"]);
    for call in calls {
        let row = page.text.split("<tr>").find(|row| row.contains(&format!("<code>{call}</code>")));
        let plan = match row {
            None => "Free",
            Some(row) if row.contains("Starter or higher") => "Starter",
            Some(row) => {
                assert!(row.contains("Professional"), "{row}");
                "Professional"
            }
        };
        let found = (refused(call, &world.free).await?, refused(call, &world.starter).await?);
        assert_eq!(found, (plan != "Free", plan == "Professional"), "{call}: {plan}");
        ensure!(!refused(call, &world.professional).await?, "{call}");
    }
    let stream = "/v1/dividends/history?updated_since=";
    assert!(page.has(stream), "the market's changes need Professional");
    Ok(())
}

#[tokio::test]
async fn crawlers_and_browsers_find_what_they_look_for() -> Result<()> {
    let (app, api) = open().await?;
    let robots = api.get("/robots.txt", None).await?;
    assert_eq!(
        (robots.status.as_u16(), robots.header("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    assert!(robots.text().contains("Disallow: /dashboard"));
    let icon = api.get("/favicon.ico", None).await?;
    assert_eq!((icon.status.as_u16(), icon.header("content-type")), (200, Some("image/x-icon")));
    assert_eq!(icon.body[..4], [0, 0, 1, 0], "an icon file");

    let without = app.api_serve_with(&[("DASHBOARD", "off")]).await?;
    let accept = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8".to_owned());
    for (service, path) in [(&api, "/nowhere"), (&api, "/docs/old"), (&without, "/nowhere"), (&without, "/")]
    {
        let page = service.send(Method::GET, path, std::slice::from_ref(&accept)).await?;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.text().contains("Page not found"), "{path}: {}", page.text());
        assert!(
            page.header("content-security-policy").is_some_and(|policy| !policy.contains("unsafe")),
            "{path}"
        );
        let program = service.get(path, None).await?;
        assert!(program.status == 404 && program.json()?["error"].is_string(), "{path}: {}", program.text());
    }
    // Under /v1, programs and browsers need a key, and both get JSON.
    let data = api.send(Method::GET, "/v1/nowhere", std::slice::from_ref(&accept)).await?;
    assert_eq!((data.status.as_u16(), &data.json()?["code"]), (401, &json!("INVALID_API_KEY")));
    let key = ("authorization", format!("Bearer {}", app.key("free").await?));
    let data = api.send(Method::GET, "/v1/nowhere", &[accept, key]).await?;
    assert!(data.status == 404 && data.json()?["error"].is_string(), "{}", data.text());
    Ok(())
}

#[tokio::test]
async fn the_status_page_says_what_health_says() -> Result<()> {
    let world = World::start_with(&OPEN).await?;
    let without = world.app.api_serve_with(&[("DASHBOARD", "off")]).await?;
    for api in [&world.api, &without] {
        harness::eventually(Duration::from_secs(120), async || {
            let page = Person::at(api)?.get("/status").await?;
            ensure!(page.status == 200, "{}", page.text);
            for said in ["All systems work", "14 June 2024", "Behind the log"] {
                ensure!(page.has(said), "{said}: {}", page.text);
            }
            Ok(())
        })
        .await?;
    }
    // Without a dashboard there is nothing to sign in to.
    for path in ["/status", "/docs", "/plans", "/methods", "/methods/R9", "/versions"] {
        let page = Person::at(&without)?.get(path).await?;
        assert!(page.status == 200 && !page.has("/sign-in"), "{path}: {}", page.text);
    }
    // For a service without data, the status page has the same status code as `/v1/health`.
    let (_app, empty) = open().await?;
    let page = Person::at(&empty)?.get("/status").await?;
    let health = empty.get("/v1/health", None).await?;
    assert_eq!(page.status, health.status.as_u16());
    Ok(())
}

#[tokio::test]
async fn a_public_service_without_its_address_is_warned() -> Result<()> {
    let app = TestApp::start().await?;
    for (listen, public, is_warned) in [
        ("0.0.0.0:0", None, true),
        ("0.0.0.0:0", Some("https://data.example.com"), false),
        ("127.0.0.1:0", None, false),
    ] {
        let env: Vec<(&str, &str)> = public.map(|url| ("PUBLIC_URL", url)).into_iter().collect();
        let api = app.spawn_with(harness::Program::Api, &["serve", "--listen", listen], &env).await?;
        harness::eventually(Duration::from_secs(120), async || {
            ensure!(api.log().contains("listening"), "{}", api.log());
            Ok(())
        })
        .await?;
        assert_eq!(
            api.log().contains("PUBLIC_URL is not set"),
            is_warned,
            "{listen} {public:?}: {}",
            api.log()
        );
    }
    Ok(())
}
