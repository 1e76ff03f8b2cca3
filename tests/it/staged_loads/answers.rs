//! Tests of every answer of the API, its pages and its feeds, before a run is held, while it is held, after its release
//! and after an undo.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{run_of, stage};
use crate::api_contract::{filled, needed};
use crate::api_world::World;
use crate::change_feed::lift_limits;
use crate::mcp;

const PUBLIC: [(&str, &str); 3] =
    [("PAGES", "public"), ("PAGES_PER_MINUTE", "100000"), ("PAGES_BURST", "100000")];

/// Pages and feeds, which the OpenAPI document does not list.
const PAGES: [&str; 21] = [
    "/s/COLA",
    "/s/COLA?range=max",
    "/s/COLA/why/dps_ttm",
    "/s/COLA/dividends.csv",
    "/s/COLA/prices.csv",
    "/s/NEW",
    "/search?q=cola",
    "/calendar",
    "/calendar.csv",
    "/calendar.ics?symbols=COLA",
    "/screener",
    "/screener.csv",
    "/sectors",
    "/sectors/financials",
    "/quality",
    "/sitemap.xml",
    "/feed/{key}/calendar.ics?symbols=COLA",
    "/feed/{key}/income.ics?holdings=COLA:10",
    "/feed/{key}/events.atom?symbols=COLA",
    "/feed/{key}/cell/COLA/dps_ttm",
    "/feed/{key}/v1/stocks?format=csv",
];

/// Rows of all kinds that change every figure of the market.
fn wrong_rows() -> String {
    let security = |symbol: &str, name: &str, revision: u32| {
        json!({ "kind": "security", "symbol": symbol, "name": name, "type": "stock", "exchange": "XNYS", "currency": "USD",
                "sector": "Financials", "industry": "Banks", "country": "US", "revision": revision })
    };
    let price = |symbol: &str, date: &str| json!({ "kind": "price", "symbol": symbol, "date": date, "close": "71.50", "volume": 9, "revision": 1 });
    let dividend = |symbol: &str, id: String, ex_date: String, amount: String| {
        json!({ "kind": "dividend", "symbol": symbol, "id": id, "ex_date": ex_date, "payment_date": ex_date,
                "declaration_date": ex_date, "amount": amount, "frequency": "quarterly", "revision": 1 })
    };
    let mut rows = vec![
        security("COLA", "Wrong Cola Company", 1),
        security("NEW", "New Cola", 0),
        dividend("COLA", "c20243".into(), "2024-03-13".into(), "1.23".into()),
        dividend("COLA", "c20247".into(), "2024-07-15".into(), "1.45".into()),
        json!({ "kind": "split", "symbol": "COLA", "ex_date": "2024-07-10", "from": "1", "to": "3" }),
        json!({ "kind": "fundamentals", "symbol": "COLA", "as_of": "2024-05-31", "eps_ttm": "9.5" }),
        json!({ "kind": "etf", "symbol": "FUND", "as_of": "2024-06-17", "issuer": "Wrong", "expense_ratio": "0.99" }),
        json!({ "kind": "holding", "etf_symbol": "FUND", "as_of": "2024-06-17", "symbol": "COLA", "name": "Cola", "weight": "99" }),
        json!({ "kind": "fx", "base": "EUR", "quote": "USD", "date": "2024-06-14", "rate": "1.99", "revision": 1 }),
    ];
    for symbol in ["COLA", "NEW", "FUND", "BRK.B"] {
        rows.extend(["2024-06-13", "2024-06-14", "2024-06-17"].map(|date| price(symbol, date)));
    }
    // Rising dividends of more than fifty years.
    for year in 1970..=2024 {
        let amount = format!("0.{}", year - 1_900);
        rows.extend((3..=12).step_by(3).map(|month| {
            dividend("NEW", format!("n{year}{month}"), format!("{year}-{month:02}-10"), amount.clone())
        }));
    }
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Status and body of each answer, by request.
type Answers = BTreeMap<String, (u16, String)>;

struct Walk {
    world: World,
    /// Requests of each endpoint in the OpenAPI document, by path.
    requests: BTreeMap<String, Vec<String>>,
    /// Paths with answers of earlier data versions.
    past: BTreeSet<String>,
}

impl Walk {
    async fn start() -> Result<Self> {
        let world = World::start_with(&PUBLIC).await?;
        lift_limits(&world.app).await?;
        let rate =
            json!({ "kind": "fx", "base": "EUR", "quote": "USD", "date": "2024-06-14", "rate": "1.08" });
        world.app.feed("rates.ndjson", format!("{rate}\n")).apply().await?;
        let list = world.json("/v1/dividends/history?symbols=COLA").await?;
        let since = list["meta"]["sync_from"].as_str().context("a position")?;
        let document = world.api.get("/openapi.json", None).await?.json()?;
        let (mut requests, mut past) = (BTreeMap::new(), BTreeSet::new());
        for (path, item) in document["paths"].as_object().context("paths")? {
            // The status counts the requests of this test.
            let item = item.get("get").filter(|_| !["/v1/status", "/v1/files"].contains(&path.as_str()));
            let Some(parameters) = item.and_then(|item| item["parameters"].as_array()) else { continue };
            requests.insert(path.clone(), variants(path, parameters, since));
            if parameters.iter().any(|parameter| parameter["name"] == "data_version") {
                past.insert(path.clone());
            }
        }
        Ok(Self { world, requests, past })
    }

    /// Applies the log, and requests everything.
    async fn answers(&self) -> Result<(String, Answers)> {
        let Self { world, requests, .. } = self;
        world.app.catch_up().await?;
        let version: String = world.app.sql_value("select 'g1.' || sequence from read_g1.version").await?;
        world.json(&format!("/v1/stocks/COLA/quote?min_version={version}")).await?;
        let mut answers = Answers::new();
        for request in requests.values().flatten().map(String::as_str).chain(PAGES) {
            let reply = world.get(&request.replace("{key}", &world.professional)).await?;
            ensure!(reply.status.as_u16() < 500, "{request}: {}", reply.text());
            answers.insert(request.to_owned(), (reply.status.as_u16(), reply.text()));
        }
        for (tool, arguments) in [
            ("security", json!({ "symbol": "COLA", "view": "metrics", "explain": true })),
            ("search", json!({ "q": "cola" })),
            ("dividend_history", json!({ "symbols": "COLA,NEW" })),
            ("dividend_calendar", json!({ "by": "ex_date" })),
            ("screener", json!({})),
        ] {
            let (answer, is_error) = mcp::call(world, &world.professional, tool, arguments).await?;
            answers.insert(format!("tool {tool}"), (u16::from(is_error), answer.to_string()));
        }
        Ok((version, answers))
    }

    /// Fails if an answer of an earlier version is not the one that was served then.
    async fn are_reproduced(&self, version: &str, answers: &Answers) -> Result<()> {
        let past = self.requests.iter().filter(|(path, _)| self.past.contains(*path));
        let requests = past.flat_map(|(_, requests)| requests);
        // Changes since a position are always those of the newest version.
        for request in requests.filter(|request| !request.contains("since=")) {
            let reply = self.world.get(&format!("{request}&data_version={version}")).await?;
            let again = (reply.status.as_u16(), reply.text());
            let (status, body) = &answers[request];
            // Some options need other options, and a symbol may be unknown.
            ensure!(
                again.0 == *status && (*status != 200 || again.1 == *body),
                "{request} of {version}\nserved {status} {body}\nagain  {} {}",
                again.0,
                again.1
            );
        }
        Ok(())
    }
}

/// Requests of a path: without options, and with the first and the last value of each option.
fn variants(path: &str, parameters: &[Value], since: &str) -> Vec<String> {
    let mut urls = vec![format!("{}?{}", filled(path), needed(path))];
    if path.contains("{symbol}") {
        urls.push(format!("{}?{}", path.replace("{symbol}", "NEW"), needed(path)));
    }
    let first = urls[0].clone();
    for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
        let (name, schema) = (parameter["name"].as_str().unwrap_or_default(), &parameter["schema"]);
        let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let listed = schema["enum"].as_array().or(schema["items"]["enum"].as_array());
        let values = match name {
            "fields" => Vec::new(),
            "symbols" => texts(&["COLA,NEW,FUND"]),
            "since" | "updated_since" => texts(&[since]),
            "as_of" | "date" | "start_date" | "end_date" => texts(&["2024-06-14", "2024-07-15"]),
            "currency" => texts(&["EUR"]),
            _ if schema["type"] == "boolean" => texts(&["true", "false"]),
            _ => listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        };
        if !first.contains(&format!("{name}=")) {
            let ends: BTreeSet<&String> = values.first().into_iter().chain(values.last()).collect();
            urls.extend(ends.into_iter().map(|value| format!("{first}&{name}={value}")));
        }
    }
    urls
}

/// Fields and lines that name the data version, a position in the journal or the time of the request.
const VERSIONS: [&[&str]; 2] =
    [&["data_version", "sync_from", "next_cursor", "request_id"], &["id: ", "retry: ", "DTSTAMP:"]];
/// Fields and lines that also name the last change, even if it was undone.
const CHANGES: [&[&str]; 2] = [&["factors_changed_at"], &["SEQUENCE:"]];

fn masked(body: &str, masks: &[[&[&str]; 2]]) -> String {
    let (fields, starts) =
        (masks.iter().flat_map(|[fields, _]| *fields), || masks.iter().flat_map(|[_, lines]| *lines));
    let lines = body.split_inclusive('\n').filter(|line| !starts().any(|start| line.starts_with(start)));
    fields.fold(lines.collect(), |body: String, name| {
        let field = format!("\"{name}\":\"");
        let mut parts = body.split(&field);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('"').map_or(part, |(_, rest)| rest))
    })
}

/// Requests whose answers differ, apart from masked parts.
fn differing<'a>(before: &'a Answers, after: &'a Answers, masks: &[[&[&str]; 2]]) -> Vec<&'a str> {
    let differs = |request: &&str| {
        let [(a, before), (b, after)] = [&before[*request], &after[*request]];
        a != b || masked(before, masks) != masked(after, masks)
    };
    before.keys().map(String::as_str).filter(differs).collect()
}

/// True for a request whose answer lists earlier changes.
fn lists_changes(request: &str) -> bool {
    ["/v1/changes", "since=", "/revisions", "events.atom"].iter().any(|part| request.contains(part))
}

#[tokio::test]
async fn no_answer_has_a_held_row_and_every_answer_has_it_after_the_release() -> Result<()> {
    let walk = Walk::start().await?;
    let app = &walk.world.app;
    let mut served = vec![walk.answers().await?];
    let run = stage(app, "test", "wrong.ndjson", &wrong_rows()).await?;
    served.push(walk.answers().await?);
    for command in ["release", "undo", "release"] {
        app.ingest(&[command, run_of(&run)?]).await?.success()?;
        served.push(walk.answers().await?);
    }
    let states: Vec<&Answers> = served.iter().map(|(_, answers)| answers).collect();
    let [before, held, released, undone, again] = states[..] else { anyhow::bail!("five states") };
    assert_eq!(differing(before, held, &[VERSIONS]), [""; 0], "a held run");
    let changed = differing(before, released, &[VERSIONS]);
    for requests in walk.requests.values() {
        assert!(requests.iter().any(|request| changed.contains(&request.as_str())), "{requests:?}");
    }
    for page in PAGES {
        assert!(changed.contains(&page), "{page}");
    }
    for (expected, found, state) in [(before, undone, "undone"), (released, again, "released again")] {
        let mut differing = differing(expected, found, &[VERSIONS, CHANGES]);
        differing.retain(|request| !lists_changes(request));
        assert_eq!(differing, [""; 0], "{state}");
    }
    for (version, answers) in &served {
        walk.are_reproduced(version, answers).await?;
    }
    Ok(())
}
