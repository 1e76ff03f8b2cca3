//! Requests with NUL characters. Postgres text cannot contain NUL, so such a text names nothing: the response is an error
//! of the client, never of the service.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::World;
use crate::dashboard::visitor::Person;

const PUBLIC: [(&str, &str); 5] = [
    ("PAGES", "public"),
    ("SIGN_UP", "open"),
    ("BILLING", "self_service"),
    ("PAGES_PER_MINUTE", "100000"),
    ("PAGES_BURST", "100000"),
];
/// Texts with NUL, encoded as in a path or a query.
const TEXTS: [&str; 2] = ["%00", "COLA%00"];

async fn start() -> Result<World> {
    let world = World::start_with(&PUBLIC).await?;
    world.app.sql("update accounts.tiers set burst = 100000, rate_per_minute = 100000", &[]).await?;
    Ok(world)
}

/// Paths and queries of all endpoints in the OpenAPI document, with a text with NUL in one parameter each.
fn calls(document: &Value) -> Vec<String> {
    let mut calls = Vec::new();
    for (path, endpoint) in document["paths"].as_object().into_iter().flatten() {
        let Some(parameters) = endpoint["get"]["parameters"].as_array() else { continue };
        let names =
            parameters.iter().filter_map(|parameter| Some((parameter["name"].as_str()?, &parameter["in"])));
        for (name, place) in names.filter(|(_, place)| *place == "path" || *place == "query") {
            for text in TEXTS {
                let in_path = path.replace(&format!("{{{name}}}"), text);
                let filled = in_path.replace("{symbol}", "COLA").replace("{sector}", "financials");
                calls.push(if place == "path" { filled } else { format!("{filled}?{name}={text}") });
            }
        }
    }
    calls
}

#[tokio::test]
async fn no_endpoint_fails_at_a_nul() -> Result<()> {
    let world = start().await?;
    let document = world.api.get("/openapi.json", None).await?.json()?;
    let calls = calls(&document);
    assert!(calls.len() > 300, "{}", calls.len());
    for path in &calls {
        let reply = world.get(path).await?;
        ensure!(matches!(reply.status.as_u16(), 400 | 404), "{path}: {} {}", reply.status, reply.text());
    }
    for path in ["/%00", "/v1/%00", "/v1/stocks/COLA/%00", "/v1/stocks?%00=1", "/docs?%00", "/livez?%00"] {
        let reply = world.get(path).await?;
        ensure!(reply.status.as_u16() < 500, "{path}: {} {}", reply.status, reply.text());
    }
    Ok(())
}

#[tokio::test]
async fn no_page_and_no_feed_fails_at_a_nul() -> Result<()> {
    let world = start().await?;
    let mut holder = Person::signed_up(&world.api, "nul@example.com").await?;
    let key = holder.create_key("Program").await?;
    for path in ["income.ics", "income.csv", "%00"] {
        let reply = holder.get(&format!("/feed/{key}/portfolios/%00/{path}")).await?;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text);
    }
    let templates = [
        "/s/{}",
        "/s/{}/why/dps_ttm",
        "/s/COLA/why/{}",
        "/s/COLA/{}",
        "/s/COLA/{}.csv",
        "/s/COLA?range={}&prices={}",
        "/search?q={}",
        "/calendar?symbols={}",
        "/calendar?sector={}&min_yield={}&from={}&days={}&span={}",
        "/calendar.csv?symbols={}",
        "/calendar.ics?symbols={}",
        "/screener?sector={}&preset={}&sort={}",
        "/screener.csv?sector={}",
        "/sectors/{}",
        "/income?holdings={}",
        "/quality?{}",
        "/link/{}",
        "/plans?{}",
        "/status?{}",
        "/sign-in?next={}",
        "/dashboard/{}",
        "/dashboard/keys?{}",
        "/dashboard/keys/{}/replace",
        "/dashboard/keys/{}/delete",
        "/dashboard/portfolios?edit={}",
        "/dashboard/usage?days={}&key={}",
        "/dashboard/log?{}",
        "/feed/{}/calendar.ics",
        "/feed/{}/v1/stocks",
        "/feed/KEY/{}",
        "/feed/KEY/v1/{}",
        "/feed/KEY/v1/stocks/{}",
        "/feed/KEY/calendar.ics?symbols={}",
        "/feed/KEY/income.ics?holdings={}",
        "/feed/KEY/portfolios/shares/{}",
    ];
    for template in templates {
        for text in TEXTS {
            let path = template.replace("KEY", &key).replace("{}", text);
            let reply = holder.get(&path).await?;
            ensure!(reply.status < 500, "{template} {text}: {} {}", reply.status, reply.text);
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_form_fails_at_a_nul() -> Result<()> {
    let world = start().await?;
    let forms: [(&str, &[&str]); 19] = [
        ("/sign-in", &["email", "password", "next"]),
        ("/sign-up", &["email", "password"]),
        ("/link/abc", &["password"]),
        ("/dashboard/keys", &["name", "life"]),
        ("/dashboard/keys/1/replace", &["overlap"]),
        ("/dashboard/portfolios", &["name", "holdings", "transactions"]),
        ("/dashboard/portfolios/delete", &["name"]),
        ("/dashboard/portfolios/link", &["name"]),
        ("/dashboard/plan", &["tier"]),
        ("/dashboard/sessions/end", &["id", "session"]),
        ("/dashboard/address", &["email", "password"]),
        ("/dashboard/password", &["current", "password", "old", "new"]),
        ("/dashboard/delete", &["password", "email"]),
        ("/income", &["text", "holdings"]),
        ("/income.csv", &["holdings"]),
        ("/income.ics", &["holdings"]),
        ("/income/transactions", &["text", "currency", "tax", "sort"]),
        ("/income/transactions.csv", &["text"]),
        ("/income/transactions.ics", &["text"]),
    ];
    let mut person = Person::signed_up(&world.api, "forms@example.com").await?;
    for (path, fields) in forms {
        for name in fields {
            for value in ["\0", "COLA 1\0", "a\0@example.com"] {
                let mut filled: BTreeMap<&str, &str> = BTreeMap::from([
                    ("name", "shares"),
                    ("holdings", "COLA 1"),
                    ("email", "b@example.com"),
                    ("password", "correct horse battery"),
                ]);
                filled.insert(name, value);
                let filled: Vec<(&str, &str)> = filled.into_iter().collect();
                // Without this, the sixth wrong password of a minute would wait.
                world.app.sql("delete from accounts.sign_in_limits", &[]).await?;
                let reply = person.fill("/dashboard/account", path, &filled).await?;
                ensure!(reply.status < 500, "{path} {name} {value:?}: {} {}", reply.status, reply.text);
                if reply.status == 303 && reply.location() == "/sign-in" {
                    person = Person::signed_up(&world.api, "again@example.com").await?;
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_tool_fails_at_a_nul() -> Result<()> {
    let world = start().await?;
    let headers = [
        ("authorization", format!("Bearer {}", world.professional)),
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
    ];
    let post = async |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        world.api.send_body(Method::POST, "/mcp", &headers, body.to_string().into_bytes()).await
    };
    let listed = post("tools/list", json!({})).await?.json()?;
    let mut calls = vec![("\0".to_owned(), json!({}))];
    for tool in listed["result"]["tools"].as_array().context("tools")? {
        let name = tool["name"].as_str().context("a name")?;
        for parameter in
            tool["inputSchema"]["properties"].as_object().into_iter().flatten().map(|(name, _)| name)
        {
            calls.push((name.to_owned(), json!({ parameter: "COLA\0" })));
            calls.push((name.to_owned(), json!({ parameter: ["COLA\0"], "symbol": "COLA" })));
        }
    }
    for (name, arguments) in calls {
        let reply = post("tools/call", json!({ "name": name, "arguments": arguments })).await?;
        let text = reply.text();
        ensure!(
            reply.status.as_u16() < 500
                && !text.contains("SERVICE_UNAVAILABLE")
                && !text.contains("INTERNAL"),
            "{name} {arguments}: {text}"
        );
    }
    let host = json!({ "name": "a\0", "version": "\0" });
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": host });
    assert!(post("initialize", greeting).await?.status.as_u16() < 500);
    Ok(())
}
