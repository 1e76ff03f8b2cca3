//! Conventions that every endpoint follows. The tests read the list of endpoints from the published OpenAPI document.

use std::collections::BTreeSet;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::{World, check};

/// Replaces the placeholders in a path of the document by test values, for example `{symbol}` by `COLA`.
pub(crate) fn filled(path: &str) -> String {
    let path = path.replace("{symbol}", if path.starts_with("/v1/etfs") { "FUND" } else { "COLA" });
    path.replace("{sector}", "financials")
}

/// Query string with the required parameters of an endpoint and their test values.
pub(crate) fn needed(path: &str) -> &'static str {
    match path {
        "/v1/search" => "q=cola",
        "/v1/compare" | "/v1/dividends/history" => "symbols=COLA",
        "/v1/portfolio/income" => "holdings=COLA:10",
        "/v1/fx" => "base=EUR&quote=USD",
        // A month has a point by default, and each point is derived anew, which takes unoptimized code long.
        "/v1/stocks/{symbol}/metrics/history" => "interval=year",
        "/v1/changes" => "symbols=COLA&follow=false",
        path if path.starts_with("/v1/bulk/") => "symbols=COLA",
        _ => "",
    }
}

async fn document(world: &World) -> Result<Value> {
    let reply = world.api.get("/openapi.json", None).await?;
    assert_eq!(reply.status, 200);
    reply.json()
}

/// Paths without a key, and without the common parameters.
const WITHOUT_KEY: [&str; 2] = ["/v1/health", "/v1/status"];

/// Paths whose responses are never cached, and have one form: the change stream, and addresses of files.
const WITHOUT_FORMS: [&str; 2] = ["/v1/changes", "/v1/files"];

/// Paths with a GET, except health and status.
fn paths(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let gets =
        paths.filter(|(path, item)| !WITHOUT_KEY.contains(&path.as_str()) && item.get("get").is_some());
    gets.map(|(path, _)| path.clone()).collect()
}

/// Request body of a path from the example in the document; `None` for a path with a GET.
pub(crate) fn example_body(document: &Value, path: &str) -> Option<Vec<u8>> {
    let example = document["paths"][path].pointer("/post/requestBody/content/application~1json/example")?;
    Some(example.to_string().into_bytes())
}

#[tokio::test]
async fn a_post_is_documented_and_stored_nowhere() -> Result<()> {
    let world = World::start().await?;
    let document = document(&world).await?;
    let posts: Vec<&String> = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(path, item)| item.get("post").map(|_| path))
        .collect();
    assert_eq!(posts, ["/v1/portfolio/dividends"]);
    for path in posts {
        let operation = &document["paths"][path]["post"];
        let body = example_body(&document, path).unwrap_or_default();
        let send = async |query: &str, key: &str| {
            let headers = [("x-api-key", key.to_owned()), ("content-type", "application/json".to_owned())];
            world.api.send_body(Method::POST, &format!("{path}?{query}"), &headers, body.clone()).await
        };
        let refused = send("nonsense=1", &world.professional).await?.json()?;
        check(&refused, json!({ "code": "INVALID_PARAMETER", "param": "nonsense" }));
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let documented: BTreeSet<&str> = parameters.filter_map(|one| one["name"].as_str()).collect();
        let accepted = refused["allowed"].as_array().into_iter().flatten().filter_map(Value::as_str);
        assert_eq!(documented, accepted.collect(), "{path}");
        for status in
            ["200", "400", "401", "403", "405", "408", "412", "413", "415", "429", "431", "500", "503"]
        {
            assert!(!operation["responses"][status].is_null(), "{path} documents no {status}");
        }
        assert!(operation["responses"]["304"].is_null(), "{path}");
        for query in ["", "format=csv"] {
            let reply = send(query, &world.professional).await?;
            let headers = ["cache-control", "etag"].map(|name| reply.header(name));
            assert_eq!((reply.status.as_u16(), headers), (200, [Some("no-store"), None]), "{query}");
        }
        assert_eq!(send("", "dds_live_wrong").await?.status, 401);
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let key = [("x-api-key", world.professional.clone())];
            let other = world.api.send(Method::from_bytes(method.as_bytes())?, path, &key).await?;
            assert_eq!((other.status.as_u16(), other.header("allow")), (405, Some("POST")), "{method}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_document_tells_the_truth_about_parameters_and_fields() -> Result<()> {
    let world = World::start().await?;
    let document = document(&world).await?;
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    assert_eq!(paths(&document).len(), 41, "{:?}", paths(&document));
    for path in paths(&document) {
        let operation = &document["paths"][&path]["get"];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let documented: BTreeSet<&str> =
            parameters.filter(|p| p["in"] == "query").filter_map(|p| p["name"].as_str()).collect();
        let (status, body) = world
            .refused(&format!("{}?nonsense=1&{}", filled(&path), needed(&path)), &world.professional)
            .await?;
        assert_eq!(status, 400, "{path}: {body}");
        check(&body, json!({ "code": "INVALID_PARAMETER", "param": "nonsense" }));
        let accepted: BTreeSet<&str> =
            body["allowed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(documented, accepted, "{path}");
        let has_conditional_answers = !WITHOUT_FORMS.contains(&path.as_str());
        assert_eq!(operation["responses"]["304"].is_null(), !has_conditional_answers, "{path}");
        for status in ["200", "400", "401", "403", "404", "405", "429", "431", "500", "503"] {
            assert!(!operation["responses"][status].is_null(), "{path} documents no {status}");
        }
        let named = operation["parameters"].as_array().into_iter().flatten();
        for parameter in named {
            assert!(
                parameter["description"].as_str().is_some_and(|text| text.len() > 5),
                "{path}: {parameter}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_endpoint_answers_in_every_form() -> Result<()> {
    let world = World::start().await?;
    let of_rows =
        paths(&document(&world).await?).into_iter().filter(|path| !WITHOUT_FORMS.contains(&path.as_str()));
    for path in of_rows {
        let url = format!("{}?{}", filled(&path), needed(&path));
        let reply = world.get(&url).await?;
        assert_eq!(reply.status, 200, "{url}: {}", reply.text());
        let body = reply.json()?;
        assert!(body["data"].is_object() || body["data"].is_array(), "{url}");
        assert!(
            body["meta"]["data_version"].as_str().is_some_and(|version| version.starts_with('g')),
            "{url}: {body}"
        );
        let etag = reply.header("etag").unwrap_or_default().to_owned();
        assert!(etag.starts_with("W/\""), "{url}");
        assert!(
            reply.header("cache-control").is_some_and(|value| value.starts_with("private, max-age=")),
            "{url}"
        );

        let key = ("x-api-key", world.professional.clone());
        let same = world.api.send(Method::GET, &url, &[key.clone(), ("if-none-match", etag.clone())]).await?;
        assert_eq!((same.status.as_u16(), same.body.len()), (304, 0), "{url}");
        let head = world.api.send(Method::HEAD, &url, std::slice::from_ref(&key)).await?;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "{url}");
        assert_eq!(head.header("etag"), Some(etag.as_str()), "{url}");
        let csv =
            world.api.send(Method::GET, &url, &[key.clone(), ("accept", "text/csv".to_owned())]).await?;
        assert_eq!(csv.status, 200, "{url}");
        assert!(csv.header("content-type").is_some_and(|kind| kind.starts_with("text/csv")), "{url}");
        assert_ne!(csv.header("etag"), Some(etag.as_str()), "{url}");
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"] {
            let other = world
                .api
                .send(Method::from_bytes(method.as_bytes())?, &url, std::slice::from_ref(&key))
                .await?;
            assert_eq!(
                (other.status.as_u16(), other.header("allow")),
                (405, Some("GET, HEAD")),
                "{method} {url}"
            );
        }
        let none = world.api.get(&url, None).await?;
        assert_eq!((none.status.as_u16(), none.header("www-authenticate")), (401, Some("Bearer")), "{url}");
    }
    Ok(())
}

#[tokio::test]
async fn mistakes_are_named_all_at_once() -> Result<()> {
    let world = World::start().await?;
    for (path, expected) in [
        ("/v1/stocks?limit=0&min_yield=x&bogus=1", &["limit", "min_yield", "bogus"][..]),
        ("/v1/stocks?limit=1&limit=2", &["limit"]),
        ("/v1/stocks?min_yield=5&max_yield=4", &["min_yield"]),
        ("/v1/stocks?min_yield=1001", &["min_yield"]),
        ("/v1/stocks?sort=foo.asc", &["sort"]),
        ("/v1/stocks?fields=symbol,nope", &["fields"]),
        ("/v1/stocks?symbols=", &["symbols"]),
        ("/v1/stocks?type=bond", &["type"]),
        ("/v1/stocks?pays_dividend=true&has_dividends=true", &["has_dividends"]),
        ("/v1/prices/COLA?start_date=2024-02-30", &["start_date"]),
        ("/v1/prices/COLA?start_date=2024-02-02&end_date=2024-02-01", &["end_date"]),
        ("/v1/prices/COLA?range=1y&start_date=2024-02-01", &["range"]),
        ("/v1/stocks/COLA/dividends?limit=101", &["limit"]),
        ("/v1/dividends/calendar?start_date=2024-01-01&end_date=2025-02-01", &["end_date"]),
        ("/v1/splits/calendar?start_date=2024-01-01&end_date=2025-02-01", &["end_date"]),
        ("/v1/splits/calendar?type=special", &["type"]),
        ("/v1/dividends/history", &["symbols"]),
        ("/v1/screener/dividend-kings?min_streak=49", &["min_streak"]),
        ("/v1/screener/dividend-kings?limit=501", &["limit"]),
        ("/v1/search?q=", &["q"]),
        ("/v1/dividends/ex-dates?sector=%00", &["sector"]),
        ("/v1/compare?symbols=A,B,C,D,E,F,G,H,I,J,K", &["symbols"]),
        ("/v1/stocks/COLA/metrics?as_of=2030-01-01", &["as_of"]),
    ] {
        let (status, body) = world.refused(path, &world.professional).await?;
        assert_eq!(status, 400, "{path}: {body}");
        let named: BTreeSet<&str> =
            body["errors"].as_array().into_iter().flatten().filter_map(|e| e["param"].as_str()).collect();
        assert_eq!(named, expected.iter().copied().collect(), "{path}: {body}");
    }
    let (status, body) = world.refused("/v1/stocks?cursor=abc", &world.professional).await?;
    assert_eq!((status, &body["code"]), (400, &json!("INVALID_CURSOR")));
    assert!(body.get("allowed").is_none(), "{body}");
    let (_, body) = world.refused("/v1/stocks?limit=1&limit=2", &world.professional).await?;
    assert!(body.get("allowed").is_none(), "{body}");
    Ok(())
}

#[tokio::test]
async fn an_unknown_symbol_is_answered_with_similar_ones() -> Result<()> {
    let world = World::start().await?;
    for (path, nearest) in [
        ("/v1/stocks/COLAS", "COLA"),
        ("/v1/stocks/COAL/metrics", "COLA"),
        ("/v1/stocks/brook/splits", "BRK.B"),
        ("/v1/prices/NEWC", "NEWCO"),
        ("/v1/prices/NEWC?range=max&limit=5000", "NEWCO"),
        ("/v1/etfs/FUMD", "FUND"),
        ("/v1/etfs/FUMD/holdings", "FUND"),
    ] {
        let (status, body) = world.refused(path, &world.professional).await?;
        assert_eq!((status, &body["nearest"][0]["symbol"]), (404, &json!(nearest)), "{path}: {body}");
        assert!(body["error"].as_str().is_some_and(|text| text.contains(nearest)), "{path}: {body}");
        assert!(body["nearest"][0]["name"].is_string(), "{path}: {body}");
    }
    // The only ETF is not similar to a stock, and a stock is not suggested as an ETF.
    for path in ["/v1/etfs/COLA", "/v1/etfs/COLAS", "/v1/stocks/ZZZZ/quote"] {
        let (status, body) = world.refused(path, &world.professional).await?;
        assert_eq!((status, body.as_object().map(serde_json::Map::len)), (404, Some(1)), "{path}: {body}");
    }
    Ok(())
}

#[tokio::test]
async fn many_unknown_symbols_are_one_warning() -> Result<()> {
    let world = World::start().await?;
    let unknown: Vec<String> = (1..=21).map(|number| format!("NONE{number}")).collect();
    for path in ["/v1/stocks", "/v1/dividends/history", "/v1/dividends/calendar", "/v1/splits/calendar"] {
        let body = world.json(&format!("{path}?symbols={}", unknown.join(","))).await?;
        assert_eq!(body["meta"]["missing"], json!(unknown), "{path}");
        let codes: Vec<&Value> = body["meta"]["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|warning| &warning["code"])
            .collect();
        assert_eq!(codes, ["unknown_symbol"], "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn a_key_in_the_query_is_answered_with_the_header_to_use() -> Result<()> {
    let world = World::start().await?;
    for name in ["apikey", "apiKey", "api_key", "apiToken", "api_token", "token"] {
        for key in [None, Some(world.professional.as_str())] {
            let reply = world.api.get(&format!("/v1/stocks?{name}=SECRET123"), key).await?;
            let body = reply.json()?;
            assert_eq!((reply.status.as_u16(), &body["code"]), (401, &json!("INVALID_API_KEY")), "{name}");
            let error = body["error"].as_str().unwrap_or_default();
            assert!(error.contains("Authorization") && error.contains("X-API-Key"), "{name}: {error}");
            assert!(!reply.text().contains("SECRET123"), "{name}: {}", reply.text());
        }
    }
    let plain = world.api.get("/v1/stocks", None).await?.json()?;
    assert_eq!(plain["error"], "Missing, invalid or expired API key");
    Ok(())
}

#[tokio::test]
async fn bodies_shrink_and_pages_work_offline() -> Result<()> {
    let world = World::start().await?;
    for coding in ["gzip", "br", "zstd"] {
        let headers = [("x-api-key", world.professional.clone()), ("accept-encoding", coding.to_owned())];
        let reply = world.api.send(Method::GET, "/v1/stocks", &headers).await?;
        assert_eq!(reply.status, 200);
        assert!(reply.header("vary").is_some_and(|vary| vary.contains("Accept-Encoding")));
        assert_eq!(reply.header("content-encoding"), Some(coding));
    }
    for page in ["/docs", "/plans", "/methods", "/methods/R3", "/versions"] {
        let reply = world.api.get(page, None).await?;
        let text = reply.text();
        assert!(text.starts_with("<!doctype html>"), "{page}: {text}");
        for loaded in ["src=\"", "href=\"", "action=\""].iter().flat_map(|name| text.split(name).skip(1)) {
            assert!(loaded.starts_with(['/', '#']) && !loaded.starts_with("//"), "{page}: {loaded:.80}");
        }
        assert!(
            reply
                .header("content-security-policy")
                .is_some_and(|policy| policy.starts_with("default-src 'none'"))
        );
        for part in text.split('"').filter(|part| part.starts_with("/assets/")) {
            assert_eq!(world.api.get(part, None).await?.status, 200, "{part}");
        }
    }
    assert_eq!(world.api.get("/docs/index.html", None).await?.status, 404);
    let missing = world.api.get("/nowhere", None).await?;
    assert_eq!(
        (missing.status.as_u16(), missing.json()?.as_object().map(serde_json::Map::len)),
        (404, Some(1))
    );
    Ok(())
}
