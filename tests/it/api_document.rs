//! OpenAPI document of the API. The document is complete and correct, and equals the committed file. Its examples are
//! real responses.

use std::path::PathBuf;

use anyhow::{Context, Result};
use harness::Reply;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::api_contract::{example_body, filled, needed};
use crate::generated::Generated;

/// Pairs of a path and the lowest tier that may call it. The test fails if a path is missing here or in the document.
const TIERS: &[(&str, &str)] = &[
    ("/v1/health", "none"),
    ("/v1/status", "none"),
    ("/v1/stocks", "free"),
    ("/v1/stocks/{symbol}", "free"),
    ("/v1/stocks/{symbol}/quote", "free"),
    ("/v1/stocks/{symbol}/fundamentals", "starter"),
    ("/v1/stocks/{symbol}/metrics", "free"),
    ("/v1/stocks/{symbol}/metrics/history", "free"),
    ("/v1/stocks/{symbol}/growth", "free"),
    ("/v1/stocks/{symbol}/dividends", "starter"),
    ("/v1/stocks/{symbol}/splits", "free"),
    ("/v1/stocks/{symbol}/events", "free"),
    ("/v1/stocks/{symbol}/etf-holders", "free"),
    ("/v1/stocks/{symbol}/revisions", "free"),
    ("/v1/dividends/calendar", "free"),
    ("/v1/dividends/history", "free"),
    ("/v1/dividends/ex-dates", "free"),
    ("/v1/dividends/payment-dates", "free"),
    ("/v1/splits/calendar", "free"),
    ("/v1/screener", "free"),
    ("/v1/screener/high-yield", "free"),
    ("/v1/screener/dividend-growth", "free"),
    ("/v1/screener/dividend-aristocrats", "free"),
    ("/v1/screener/dividend-kings", "free"),
    ("/v1/etfs", "free"),
    ("/v1/etfs/{symbol}", "free"),
    ("/v1/etfs/{symbol}/holdings", "free"),
    ("/v1/prices/{symbol}", "free"),
    ("/v1/prices/{symbol}/latest", "free"),
    ("/v1/fx", "free"),
    ("/v1/search", "free"),
    ("/v1/compare", "free"),
    ("/v1/sectors", "free"),
    ("/v1/sectors/{sector}", "free"),
    ("/v1/portfolio/income", "free"),
    ("/v1/portfolio/dividends", "free"),
    ("/v1/sources", "free"),
    ("/v1/quality", "free"),
    ("/v1/changes", "free"),
    ("/v1/bulk/quotes", "professional"),
    ("/v1/bulk/metrics", "professional"),
    ("/v1/bulk/dividends", "professional"),
    ("/v1/bulk/prices", "professional"),
    ("/v1/files", "professional"),
];
const ORDER: [&str; 5] = ["none", "free", "starter", "premium", "professional"];

fn committed(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../api").join(file)
}

/// Compares a value with a committed file. If they differ, writes the value to a temporary file and fails. The error
/// contains the command that copies the temporary file over the committed file.
fn hold(file: &str, actual: &Value) -> Result<()> {
    let text = format!("{}\n", serde_json::to_string_pretty(actual)?);
    let known = std::fs::read_to_string(committed(file)).unwrap_or_default();
    if known != text {
        let new = std::env::temp_dir().join(format!("new-{file}"));
        std::fs::write(&new, &text)?;
        let differs = known.lines().zip(text.lines()).position(|(a, b)| a != b).map_or(0, |line| line + 1);
        anyhow::bail!(
            "api/{file} differs from line {differs} on; if the new one is right: cp {} {}",
            new.display(),
            committed(file).display()
        );
    }
    Ok(())
}

/// Request whose response is the published example for a path. The request names a security that has dividends, splits
/// and fundamentals, so that the example contains data. A limit keeps the example short.
fn example_request(path: &str) -> String {
    let symbol = if path.starts_with("/v1/etfs") { "SPY" } else { "SILABA" };
    let filled = path.replace("{symbol}", symbol).replace("{sector}", "utilities");
    let query = match path {
        "/v1/search" => "q=synthetic&limit=2",
        "/v1/compare" => "symbols=SILABA,NOPE&sections=quote",
        "/v1/dividends/history" => "symbols=SILABA&limit=2",
        "/v1/bulk/dividends" => "symbols=SILABA,NOPE&per_symbol=2",
        "/v1/bulk/quotes" | "/v1/bulk/metrics" => "symbols=SILABA,NOPE",
        "/v1/fx" => "base=EUR&quote=USD&limit=2",
        "/v1/stocks/{symbol}/metrics/history" => "interval=quarter&start_date=2024-01-02",
        "/v1/stocks/{symbol}/growth" => "interval=yearly&start_date=2023-01-03",
        "/v1/portfolio/income" => "holdings=SILABA:120:5000,NOPE:1",
        "/v1/portfolio/dividends" => "start_date=2024-01-01",
        "/v1/screener/dividend-growth" => "min_growth_5y=5&limit=2",
        "/v1/sectors/{sector}" => "limit=1",
        "/v1/dividends/calendar" | "/v1/dividends/payment-dates" | "/v1/dividends/ex-dates" => {
            "end_date=2024-07-31&limit=2"
        }
        "/v1/splits/calendar" => "start_date=2021-06-01&end_date=2022-05-31&limit=2",
        "/v1/stocks/{symbol}" | "/v1/etfs/{symbol}" => "",
        path if ["quote", "metrics", "fundamentals", "latest"].iter().any(|one| path.ends_with(one)) => "",
        _ => "limit=2",
    };
    if query.is_empty() { filled } else { format!("{filled}?{query}") }
}

/// Appends parameters to the query of a request.
fn with(request: &str, extra: &str) -> String {
    let separator = if request.contains('?') { '&' } else { '?' };
    if extra.is_empty() { request.to_owned() } else { format!("{request}{separator}{extra}") }
}

/// Replaces `sync_from` and `factors_changed_at` in a response by constants, because these values differ between
/// databases.
fn timeless(mut answer: Value) -> Value {
    if let Some(meta) = answer["meta"].as_object_mut() {
        for (name, value) in [("sync_from", "7f3a9c1d.812"), ("factors_changed_at", "2024-06-17T20:15:00Z")] {
            meta.entry(name).and_modify(|known| *known = value.into());
        }
    }
    answer
}

async fn document(world: &Generated) -> Result<Value> {
    world.api.get("/openapi.json", None).await?.json()
}

fn paths(document: &Value) -> Vec<String> {
    document["paths"].as_object().into_iter().flat_map(Map::keys).cloned().collect()
}

/// Paths that respond with market data: all paths except health, status, the change stream and files.
fn row_paths(document: &Value) -> Vec<String> {
    paths(document)
        .into_iter()
        .filter(|path| !["/v1/health", "/v1/status", "/v1/changes", "/v1/files"].contains(&path.as_str()))
        .collect()
}

/// The only operation of a path.
fn operation<'a>(document: &'a Value, path: &str) -> &'a Value {
    let operations = document["paths"][path].as_object().into_iter().flat_map(Map::values);
    operations.last().unwrap_or(&Value::Null)
}

/// Sends a request to a path: a GET, or a POST with the example in the document.
async fn call(
    world: &Generated,
    document: &Value,
    path: &str,
    request: &str,
    key: Option<&str>,
) -> Result<Reply> {
    let Some(body) = example_body(document, path) else { return world.api.get(request, key).await };
    let mut headers = vec![("content-type", "application/json".to_owned())];
    headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
    world.api.send_body(Method::POST, request, &headers, body).await
}

/// Body of a successful response to a path.
async fn answer(world: &Generated, document: &Value, path: &str, request: &str) -> Result<Vec<u8>> {
    let reply = call(world, document, path, request, Some(&world.key)).await?;
    anyhow::ensure!(reply.status == 200, "{request}: {} {}", reply.status, reply.text());
    Ok(reply.body)
}

fn schema(document: &Value, path: &str) -> Result<jsonschema::Validator> {
    let mut schema =
        operation(document, path)["responses"]["200"]["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    Ok(jsonschema::options().should_validate_formats(true).build(&schema)?)
}

#[tokio::test]
async fn every_path_is_gated_as_the_interface_says() -> Result<()> {
    let world = Generated::start().await?;
    let document = document(&world).await?;
    let mut listed: Vec<&str> = TIERS.iter().map(|(path, _)| *path).collect();
    listed.sort_unstable();
    assert_eq!(paths(&document), listed, "every path of the document, and no other, has a tier here");
    let mut keys = vec![];
    for tier in &ORDER[1..] {
        keys.push((*tier, world.app.key(tier).await?));
    }
    let rank = |tier: &str| ORDER.iter().position(|known| *known == tier);
    for (path, least) in TIERS {
        let url = format!(
            "{}?{}",
            filled(path).replace("COLA", "SPY").replace("FUND", "SPY"),
            needed(path).replace("COLA", "SPY")
        );
        let without = call(&world, &document, path, &url, None).await?.status.as_u16();
        assert_eq!(without, if *least == "none" { 200 } else { 401 }, "{url} without a key");
        for (tier, key) in &keys {
            let status = call(&world, &document, path, &url, Some(key)).await?.status.as_u16();
            // Nothing is published here.
            let admitted = if *path == "/v1/files" { 404 } else { 200 };
            assert_eq!(status, if rank(tier) >= rank(least) { admitted } else { 403 }, "{url} as {tier}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_document_and_its_examples_are_the_committed_ones() -> Result<()> {
    let world = Generated::start().await?;
    // Cursors contain this id, which differs between databases.
    world.app.sql("update control.journal set id = '7f3a9c1d'", &[]).await?;
    let document = document(&world).await?;
    let mut examples = Map::new();
    for path in row_paths(&document) {
        let request = example_request(&path);
        let recorded: Value = serde_json::from_slice(&answer(&world, &document, &path, &request).await?)?;
        examples.insert(path.clone(), json!({ "request": request, "answer": timeless(recorded) }));
    }
    let both = [hold("examples.json", &examples.into()), hold("openapi.json", &document)];
    both.into_iter().collect::<Result<Vec<()>>>().map(drop)
}

#[tokio::test]
async fn answers_fit_their_schemas_in_every_form() -> Result<()> {
    let world = Generated::start().await?;
    let document = document(&world).await?;
    for path in row_paths(&document) {
        let schema = schema(&document, &path)?;
        let request = example_request(&path);
        let mut properties = fields(&document, &path);
        // Cells of the CSV.
        properties.retain(|name| !name.starts_with("converted."));
        let first = format!("fields={}", properties[0]);
        let extras = ["", "decimals=string", &first, IN_DOLLARS];
        let is_convertible = properties.iter().any(|name| name == "converted");
        for extra in &extras[..if is_convertible { 4 } else { 3 }] {
            let body: Value =
                serde_json::from_slice(&answer(&world, &document, &path, &with(&request, extra)).await?)?;
            let wrong: Vec<String> = schema
                .iter_errors(&body)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(wrong.is_empty(), "{path} {extra}: {wrong:?}");
            let row = if body["data"].is_array() { &body["data"][0] } else { &body["data"] };
            let served: Vec<&String> = row.as_object().into_iter().flat_map(Map::keys).collect();
            let expected = match *extra {
                extra if extra == first => 1,
                IN_DOLLARS => properties.len(),
                _ => properties.len() - usize::from(is_convertible),
            };
            // For these paths, `fields` accepts the columns of a CSV row, which differ from the fields of a JSON row. The
            // last path returns few figures by default.
            let differs = [
                "/v1/compare",
                "/v1/bulk/dividends",
                "/v1/portfolio/income",
                "/v1/stocks/{symbol}/metrics/history",
            ]
            .contains(&path.as_str());
            assert!(
                row.is_null() || served.len() == expected || differs,
                "{path} {extra}: {served:?}, documented {properties:?}"
            );
        }
    }
    Ok(())
}

/// Converts amounts to the currency of the market, so that each has a rate.
const IN_DOLLARS: &str = "currency=USD";

/// Values that the parameter `fields` of a path accepts.
fn fields(document: &Value, path: &str) -> Vec<String> {
    let parameters = operation(document, path)["parameters"].as_array().into_iter().flatten();
    let fields = parameters.filter(|parameter| parameter["name"] == "fields");
    let names =
        fields.flat_map(|parameter| parameter["schema"]["items"]["enum"].as_array().into_iter().flatten());
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Rows that the CSV response for bulk dividends must contain, one per dividend. `symbols` is the JSON response, in
/// which the dividends are grouped by symbol.
fn dividends(symbols: &[Value]) -> Vec<Value> {
    let of_symbol = |symbol: &Value| {
        let mut rows = symbol["dividends"].as_array().cloned().unwrap_or_default();
        rows.iter_mut().for_each(|row| row["has_more"] = symbol["has_more"].clone());
        rows
    };
    symbols.iter().flat_map(of_symbol).collect()
}

#[tokio::test]
async fn csv_has_the_cells_of_the_json() -> Result<()> {
    let world = Generated::start().await?;
    let document = document(&world).await?;
    for path in row_paths(&document) {
        let mut request = example_request(&path);
        if fields(&document, &path).iter().any(|name| name == "converted") {
            request = with(&request, IN_DOLLARS);
        }
        let body: Value = serde_json::from_slice(&answer(&world, &document, &path, &request).await?)?;
        let rows = match &body["data"] {
            Value::Array(symbols) if path == "/v1/bulk/dividends" => dividends(symbols),
            Value::Array(rows) => rows.clone(),
            income if path == "/v1/portfolio/income" => {
                income["payments"].as_array().cloned().unwrap_or_default()
            }
            one => vec![one.clone()],
        };
        let sheet = answer(&world, &document, &path, &with(&request, "format=csv")).await?;
        let mut sheet = csv::Reader::from_reader(sheet.as_slice());
        let header = sheet.headers()?.clone();
        let lines: Vec<csv::StringRecord> = sheet.records().collect::<Result<_, _>>()?;
        assert_eq!(lines.len(), rows.len(), "{path}");
        for (line, row) in lines.iter().zip(&rows) {
            for (name, cell) in header.iter().zip(line) {
                // A column name with dots is a path in the JSON row, for example `quote.price`.
                let value = row.pointer(&format!("/{}", name.replace('.', "/")));
                let expected = match value.unwrap_or(&Value::Null) {
                    Value::Null => String::new(),
                    Value::String(text) if text.starts_with(['=', '+', '-', '@']) => format!("'{text}"),
                    Value::String(text) => text.clone(),
                    nested @ (Value::Array(_) | Value::Object(_)) => {
                        assert_eq!(&serde_json::from_str::<Value>(cell)?, nested, "{path} {name}");
                        continue;
                    }
                    other => other.to_string(),
                };
                let same = cell == expected
                    || cell
                        .parse::<f64>()
                        .ok()
                        .zip(expected.parse::<f64>().ok())
                        .is_some_and(|(a, b)| a == b);
                assert!(same, "{path} {name}: {cell} is not {expected}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_field_is_described() -> Result<()> {
    let world = Generated::start().await?;
    let document = document(&world).await?;
    let schemas = document["components"]["schemas"].as_object().context("schemas")?;
    let mut silent = vec![];
    for (name, schema) in schemas {
        let parts = [schema].into_iter().chain(schema["allOf"].as_array().into_iter().flatten());
        for (field, property) in parts.flat_map(|part| part["properties"].as_object().into_iter().flatten()) {
            if property["description"].as_str().is_none_or(|text| text.len() < 4) {
                silent.push(format!("{name}.{field}"));
            }
        }
    }
    assert!(silent.is_empty(), "fields without a description: {silent:?}");
    let paths = paths(&document);
    let operations = paths.iter().map(|path| operation(&document, path));
    let mut ids: Vec<&str> = operations.filter_map(|operation| operation["operationId"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), TIERS.len(), "operation ids are unique");
    Ok(())
}
