//! Tools for language models (MCP), called as an MCP host does: over HTTP, with a key.

use anyhow::{Context, Result};
use harness::Reply;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::World;

fn headers(key: &str) -> Vec<(&'static str, String)> {
    vec![
        ("authorization", format!("Bearer {key}")),
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("mcp-protocol-version", "2025-06-18".to_owned()),
    ]
}

fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn post(world: &World, key: &str, message: &Value) -> Result<Reply> {
    world.api.send_body(Method::POST, "/mcp", &headers(key), message.to_string().into_bytes()).await
}

/// Calls a tool. Returns its text, parsed as JSON, and `true` if the result is an error.
pub(crate) async fn call(world: &World, key: &str, tool: &str, arguments: Value) -> Result<(Value, bool)> {
    let asked = message("tools/call", json!({ "name": tool, "arguments": arguments }));
    let reply = post(world, key, &asked).await?;
    assert_eq!(reply.status, 200, "{tool}: {}", reply.text());
    assert!(reply.body.len() <= 32 * 1024, "{tool}: {} bytes", reply.body.len());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let result = reply.json()?["result"].clone();
    let text = result["content"][0]["text"].as_str().with_context(|| format!("{tool}: {result}"))?;
    Ok((serde_json::from_str(text)?, result["isError"] == true))
}

/// Returns the remaining calls of the minute and of the month, from the headers of a reply.
fn left(reply: &Reply) -> (i64, i64) {
    let number = |name: &str| reply.header(name).and_then(|value| value.parse().ok()).expect("a number");
    (number("x-ratelimit-remaining"), number("x-quota-remaining"))
}

#[tokio::test]
async fn a_host_is_greeted_and_shown_a_few_small_tools() -> Result<()> {
    let world = World::start().await?;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } });
        let mut headers = headers(&world.free);
        headers.retain(|(name, _)| *name != "mcp-protocol-version");
        let body = message("initialize", hello).to_string().into_bytes();
        let reply = world.api.send_body(Method::POST, "/mcp", &headers, body).await?;
        let result = reply.json()?["result"].clone();
        assert_eq!(result["protocolVersion"], version, "{}", reply.text());
        assert_eq!(result["serverInfo"]["name"], "dividend-data-service");
        assert!(result["capabilities"]["tools"].is_object() && result["instructions"].is_string());
        assert_eq!(reply.header("mcp-session-id"), None, "nothing is remembered");
    }
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(&world, &world.free, &ready).await?.status, 202);
    let listed = post(&world, &world.free, &message("tools/list", json!({}))).await?;
    assert!(listed.body.len() <= 11 * 1024, "{} bytes", listed.body.len());
    let tools = listed.json()?["result"]["tools"].as_array().context("tools")?.clone();
    assert!(tools.len() <= 10);
    for tool in &tools {
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 40), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    Ok(())
}

#[tokio::test]
async fn every_tool_says_what_its_endpoint_says() -> Result<()> {
    let world = World::start().await?;
    let twins = [
        ("search", json!({ "q": "cola" }), "/v1/search?q=cola&limit=10"),
        ("compare", json!({ "symbols": ["COLA", "BRK-B"] }), "/v1/compare?symbols=COLA,BRK.B"),
        ("security", json!({ "symbol": "cola" }), "/v1/stocks/COLA"),
        (
            "security",
            json!({ "symbol": "COLA", "view": "metrics", "as_of": "2024-01-10" }),
            "/v1/stocks/COLA/metrics?as_of=2024-01-10",
        ),
        (
            "security",
            json!({ "symbol": "COLA", "view": "metrics", "explain": true, "fields": ["dividend_yield"] }),
            "/v1/stocks/COLA/metrics?explain=true&fields=dividend_yield",
        ),
        ("security", json!({ "symbol": "FUND", "view": "holdings" }), "/v1/etfs/FUND/holdings"),
        ("security", json!({ "symbol": "COLA", "view": "etf_holders" }), "/v1/stocks/COLA/etf-holders"),
        (
            "security",
            json!({ "symbol": "COLA", "view": "splits", "fields": ["ratio"] }),
            "/v1/stocks/COLA/splits?fields=ratio",
        ),
        (
            "dividend_history",
            json!({ "symbols": "COLA", "fields": ["id", "amount"] }),
            "/v1/dividends/history?symbols=COLA&limit=50&fields=id,amount",
        ),
        (
            "dividend_calendar",
            json!({ "by": "payment_date", "include_projected": true, "fields": ["id"] }),
            "/v1/dividends/payment-dates?include_projected=true&limit=50&fields=id",
        ),
        (
            "split_calendar",
            json!({ "start_date": "2024-02-20", "type": "forward", "fields": ["id"] }),
            "/v1/splits/calendar?start_date=2024-02-20&type=forward&limit=50&fields=id",
        ),
        (
            "portfolio_income",
            json!({ "holdings": ["COLA:120", "NOPE:1"], "fields": ["totals", "gaps"] }),
            "/v1/portfolio/income?holdings=COLA:120,NOPE:1&fields=totals,gaps",
        ),
        (
            "screener",
            json!({ "min_yield": 0.5, "fields": ["symbol", "dividend_yield"] }),
            "/v1/screener?min_yield=0.5&limit=25&fields=symbol,dividend_yield",
        ),
        (
            "prices",
            json!({ "symbol": "COLA", "interval": "monthly", "fields": ["date", "close"] }),
            "/v1/prices/COLA?interval=monthly&limit=60&fields=date,close",
        ),
        (
            "sectors",
            json!({ "fields": ["sector", "median_yield"] }),
            "/v1/sectors?fields=sector,median_yield",
        ),
    ];
    for (tool, arguments, path) in twins {
        let (told, is_error) = call(&world, &world.professional, tool, arguments).await?;
        assert!(!is_error, "{tool}: {told}");
        assert!(!told["data"].as_array().is_some_and(Vec::is_empty), "{tool}: {told}");
        assert_eq!(told, world.get(path).await?.json()?, "{path}");
        let explained = told["data"]["explanation"]["metrics"].as_array();
        assert!(explained.is_none_or(|one| one.len() == 1 && one[0]["metric"] == "dividend_yield"), "{told}");
        assert_eq!(explained.is_some(), path.contains("explain"), "{told}");
    }
    // A tool with transactions sends them as the body.
    let transactions = json!([{ "symbol": "COLA", "date": "2023-01-03", "quantity": "10.5" }]);
    let arguments = json!({ "view": "received", "transactions": transactions, "tax": "US:15" });
    let (told, is_error) = call(&world, &world.professional, "portfolio_income", arguments).await?;
    assert!(!is_error && told["data"].as_array().is_some_and(|rows| rows.len() > 5), "{told}");
    let body = json!({ "transactions": transactions }).to_string().into_bytes();
    let path = "/v1/portfolio/dividends?tax=US:15";
    let twin = world.api.send_body(Method::POST, path, &headers(&world.professional), body).await?;
    assert_eq!(told, twin.json()?);
    // Numbers have all digits of the endpoint. They are not converted to floats.
    let asked = message("tools/call", json!({ "name": "security", "arguments": { "symbol": "COLA" } }));
    let reply = post(&world, &world.professional, &asked).await?.json()?;
    assert_eq!(reply["result"]["content"][0]["text"], world.get("/v1/stocks/COLA").await?.text());
    Ok(())
}

#[tokio::test]
async fn transactions_are_in_no_log() -> Result<()> {
    let world = World::start_with(&[("RUST_LOG", "debug")]).await?;
    for (symbol, is_refused) in [("COLA", false), ("ZQMARKER", true)] {
        let line = json!({ "account": "zebra-account", "symbol": symbol, "date": "2024-01-03", "quantity": "77.1234567" });
        let arguments = json!({ "view": "received", "transactions": [line] });
        let (told, is_error) = call(&world, &world.free, "portfolio_income", arguments).await?;
        assert_eq!(is_error, is_refused, "{told}");
    }
    let log = world.api.process.log();
    assert!(log.contains("answered"), "no debug log: {log}");
    for marker in ["zebra-account", "77.1234567", "ZQMARKER"] {
        assert!(!log.contains(marker), "{marker} in {log}");
    }
    Ok(())
}

#[tokio::test]
async fn a_call_of_a_tool_costs_what_the_call_of_its_endpoint_costs() -> Result<()> {
    let world = World::start().await?;
    let (tools, twin) = (&world.free, world.app.key("free").await?);
    let call =
        |name: &str, arguments: Value| message("tools/call", json!({ "name": name, "arguments": arguments }));
    let pairs = [
        // Pings, lists of tools, and invalid calls cost one of the minute's calls, like a request to an unknown path.
        (message("tools/list", json!({})), "/v1/nope"),
        (message("ping", json!({})), "/v1/nope"),
        (call("nope", json!({})), "/v1/nope"),
        (call("search", json!({ "query": "cola" })), "/v1/search?query=cola"),
        (call("search", json!({ "q": "cola", "limit": "x" })), "/v1/search?q=cola&limit=x"),
        (call("search", json!({ "q": "cola" })), "/v1/search?q=cola"),
        (call("security", json!({ "symbol": "NOPE" })), "/v1/stocks/NOPE"),
        (
            call("security", json!({ "symbol": "COLA", "view": "fundamentals" })),
            "/v1/stocks/COLA/fundamentals",
        ),
        (
            call("prices", json!({ "symbol": "COLA", "start_date": "1990-01-01" })),
            "/v1/prices/COLA?start_date=1990-01-01",
        ),
    ];
    for (asked, path) in pairs {
        let reply = post(&world, tools, &asked).await?;
        let beside = world.api.get(path, Some(&twin)).await?;
        assert_eq!(left(&reply).1, left(&beside).1, "{path}: the month's calls, {}", reply.text());
        // The calls of the minute refill while the test runs.
        assert!(
            (left(&reply).0 - left(&beside).0).abs() <= 1,
            "{path}: {:?} {:?}",
            left(&reply),
            left(&beside)
        );
    }
    Ok(())
}

#[tokio::test]
async fn refusals_are_errors_that_say_what_to_do() -> Result<()> {
    let world = World::start().await?;
    let cases = [
        ("security", json!({ "symbol": "NOPE" }), Value::Null, "search"),
        ("compare", json!({ "symbols": ["NOPE", "NEIN"] }), json!("UNKNOWN_SYMBOL"), "search"),
        ("dividend_history", json!({ "symbols": ["NOPE"] }), json!("UNKNOWN_SYMBOL"), "search"),
        (
            "security",
            json!({ "symbol": "COLA", "view": "fundamentals" }),
            json!("FEATURE_NOT_AVAILABLE"),
            "plan",
        ),
        (
            "prices",
            json!({ "symbol": "COLA", "start_date": "1990-01-01" }),
            json!("FEATURE_NOT_AVAILABLE"),
            "earliest_date",
        ),
        ("prices", json!({ "symbol": "COLA", "interval": "hourly" }), json!("INVALID_PARAMETER"), "allowed"),
        ("portfolio_income", json!({ "view": "received" }), json!("INVALID_PARAMETER"), "Correct"),
        ("search", json!({}), json!("INVALID_PARAMETER"), "Correct"),
        ("search", json!({ "q": "cola", "symbol": "COLA" }), json!("INVALID_PARAMETER"), "Correct"),
        ("search", json!({ "q": "cola", "cursor": "forged" }), json!("INVALID_CURSOR"), "without cursor"),
    ];
    for (tool, arguments, code, advice) in cases {
        let shown = arguments.to_string();
        let (told, is_error) = call(&world, &world.free, tool, arguments).await?;
        assert!(is_error, "{tool} {shown}: {told}");
        assert_eq!(told["code"], code, "{tool} {shown}: {told}");
        assert!(told["what_to_do"].as_str().is_some_and(|text| text.contains(advice)), "{told}");
    }
    let flood = (0..25).map(|_| call(&world, &world.free, "sectors", json!({})));
    let answers = futures::future::join_all(flood).await.into_iter().collect::<Result<Vec<_>>>()?;
    let (refused, _) = answers.iter().find(|(_, is_error)| *is_error).context("a burst of twenty")?;
    assert_eq!(refused["code"], "RATE_LIMITED");
    assert!(refused["retryAfter"].as_u64().is_some_and(|seconds| seconds >= 1), "{refused}");
    Ok(())
}

#[tokio::test]
async fn long_answers_come_in_parts_that_are_the_whole() -> Result<()> {
    let world = World::start().await?;
    let all = world.get("/v1/prices/COLA?limit=200").await?;
    assert!(all.body.len() > 40_000, "{}", all.body.len());
    let all = all.json()?;
    let fields: Vec<&String> = all["data"][0].as_object().context("a row")?.keys().collect();
    let (mut rows, mut cursor, mut calls) = (vec![], Value::Null, 0);
    while rows.len() < 200 {
        let asked = json!({ "symbol": "COLA", "limit": 200, "fields": fields, "cursor": cursor });
        let (told, is_error) = call(&world, &world.professional, "prices", asked).await?;
        assert!(!is_error, "{told}");
        let page = told["data"].as_array().context("rows")?;
        assert_eq!(
            (told["meta"]["count"].as_u64(), &told["meta"]["has_more"]),
            (Some(page.len() as u64), &json!(true))
        );
        rows.extend(page.clone());
        cursor = told["meta"]["next_cursor"].clone();
        calls += 1;
    }
    assert!(calls > 1);
    assert_eq!(json!(rows), all["data"]);
    assert_eq!(cursor, all["meta"]["next_cursor"], "the last part ends where the page does");
    Ok(())
}

/// Returns the status and the error code of a request that is refused.
async fn refused(world: &World, headers: &[(&str, String)], body: Vec<u8>) -> Result<(u16, Value)> {
    let reply = world.api.send_body(Method::POST, "/mcp", headers, body).await?;
    for name in ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert!(reply.header(name).is_some(), "{name}: {reply:?}");
    }
    Ok((reply.status.as_u16(), reply.json()?["code"].clone()))
}

#[tokio::test]
async fn attacks_on_the_tools_are_refused() -> Result<()> {
    let world = World::start().await?;
    let (fine, list) = (headers(&world.free), message("tools/list", json!({})).to_string().into_bytes());
    let with = |name: &'static str, value: &str| {
        let mut headers = fine.clone();
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value.to_owned()));
        headers
    };
    let search = message("tools/call", json!({ "name": "search", "arguments": { "q": "cola" } })).to_string();
    let batch = format!("[{search},{search}]").into_bytes();
    let huge =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(200_000)).into_bytes();
    let key = json!("INVALID_API_KEY");
    let cases = [
        ("no key", fine[1..].to_vec(), list.clone(), 401, key.clone()),
        ("no key for a tool", fine[1..].to_vec(), search.clone().into_bytes(), 401, key.clone()),
        (
            "a false key for a tool",
            with("authorization", "Bearer dds_live_x"),
            search.clone().into_bytes(),
            401,
            key,
        ),
        (
            "another origin",
            with("origin", "https://evil.example"),
            list.clone(),
            403,
            json!("ORIGIN_NOT_ALLOWED"),
        ),
        ("no origin", with("origin", "null"), list.clone(), 403, json!("ORIGIN_NOT_ALLOWED")),
        ("a batch", fine.clone(), batch, 400, json!("BAD_REQUEST")),
        ("no message", fine.clone(), b"{}".to_vec(), 400, json!("BAD_REQUEST")),
        ("no JSON", fine.clone(), b"\xff{".to_vec(), 400, json!("BAD_REQUEST")),
        ("a huge body", fine.clone(), huge.clone(), 413, json!("BODY_TOO_LARGE")),
        ("a huge body without a key", fine[1..].to_vec(), huge, 413, json!("BODY_TOO_LARGE")),
        (
            "another type",
            with("content-type", "text/plain"),
            list.clone(),
            415,
            json!("UNSUPPORTED_MEDIA_TYPE"),
        ),
        (
            "nothing that can be answered",
            with("accept", "text/html"),
            list.clone(),
            406,
            json!("NOT_ACCEPTABLE"),
        ),
    ];
    for (what, headers, body, status, code) in cases {
        assert_eq!(refused(&world, &headers, body).await?, (status, code), "{what}");
    }
    let (status, _) = {
        let reply = world
            .api
            .send_body(Method::POST, "/mcp", &with("mcp-protocol-version", "1999-01-01"), list.clone())
            .await?;
        (reply.status.as_u16(), reply.text())
    };
    assert_eq!(status, 400, "a version that never was");
    // An invented session id is ignored.
    let reply =
        world.api.send_body(Method::POST, "/mcp", &with("mcp-session-id", "forged"), list.clone()).await?;
    assert_eq!((reply.status.as_u16(), reply.header("mcp-session-id")), (200, None));
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let reply = world.api.send(method, "/mcp", &fine).await?;
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST")));
    }
    Ok(())
}

#[tokio::test]
async fn an_origin_that_is_configured_may_call() -> Result<()> {
    let world = World::start().await?;
    let api = world.app.api_serve_with(&[("CORS_ALLOWED_ORIGINS", "https://host.example")]).await?;
    let mut sent = headers(&world.free);
    sent.push(("origin", "https://host.example".to_owned()));
    let list = message("tools/list", json!({})).to_string().into_bytes();
    let reply = api.send_body(Method::POST, "/mcp", &sent, list).await?;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://host.example"));
    let preflight = [
        ("origin", "https://host.example".to_owned()),
        ("access-control-request-method", "POST".to_owned()),
        ("access-control-request-headers", "authorization,content-type,mcp-protocol-version".to_owned()),
    ];
    let reply = api.send(Method::OPTIONS, "/mcp", &preflight).await?;
    assert!(reply.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
    let allowed = reply.header("access-control-allow-headers").unwrap_or_default();
    assert!(allowed.contains("mcp-protocol-version") && allowed.contains("content-type"), "{allowed}");
    Ok(())
}
