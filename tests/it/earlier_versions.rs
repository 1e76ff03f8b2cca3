//! Tests of the promise on `/versions`. The example requests of every earlier minor version are answered with bodies that
//! the schemas of that version accept, and a deprecated part is announced.
//!
//! `tests/keep-version` keeps the requests and schemas of a release in `tests/fixtures/versions`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Map, Value};

use crate::dashboard::visitor::Person;
use crate::generated::Generated;

const CHANGELOG: &str = include_str!("../../CHANGELOG.md");

/// Minor versions in the change log that were released, such as 0.1.
fn released() -> impl Iterator<Item = &'static str> {
    let versions = CHANGELOG.lines().filter_map(|line| line.strip_prefix("## [")?.split(']').next());
    versions.filter_map(|version| version.rsplit_once('.')).map(|(minor, _)| minor)
}

fn kept(minor: &str) -> Result<Value> {
    let path = harness::fixture(&format!("versions/{minor}.json"));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{path}: run tests/keep-version on the released document"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Names of all fields of a body, with the names of the objects that contain them.
fn fields(document: &Value, schema: &Value, parent: &str, found: &mut BTreeSet<String>) {
    if let Some(target) = schema["$ref"].as_str().and_then(|reference| document.pointer(&reference[1..])) {
        return fields(document, target, parent, found);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        schema[name].as_array().into_iter().flatten().for_each(|part| fields(document, part, parent, found));
    }
    if schema["items"].is_object() {
        fields(document, &schema["items"], parent, found);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let name = format!("{parent}.{name}");
        if found.insert(name.clone()) {
            fields(document, field, &name, found);
        }
    }
}

async fn answer(world: &Generated, operation: &Value) -> Result<Value> {
    let request = operation["request"].as_str().context("a request")?;
    let headers = [("x-api-key", world.key.clone()), ("content-type", "application/json".to_owned())];
    let reply = match &operation["body"] {
        Value::Null => world.api.send(Method::GET, request, &headers[..1]).await?,
        body => world.api.send_body(Method::POST, request, &headers, body.to_string().into_bytes()).await?,
    };
    ensure!(reply.status == 200, "{request}: {} {}", reply.status, reply.text());
    reply.json()
}

#[tokio::test]
async fn requests_of_earlier_versions_have_bodies_that_these_versions_accept() -> Result<()> {
    let world = Generated::start().await?;
    let document = world.api.get("/openapi.json", None).await?.json()?;
    let mut wrong = vec![];
    for minor in released() {
        let kept = kept(minor)?;
        let operations = kept["operations"].as_object().context("operations")?;
        ensure!(operations.len() >= 30, "{minor}: {}", operations.len());
        for (path, operation) in operations {
            let mut schema = operation["schema"].clone();
            schema["components"] = kept["components"].clone();
            let body = answer(&world, operation).await?;
            let schema = jsonschema::options().should_validate_formats(true).build(&schema)?;
            let errors = schema.iter_errors(&body);
            wrong.extend(errors.map(|error| format!("{minor} {path} {}: {error}", error.instance_path())));
            let now = document["paths"][path].as_object().into_iter().flat_map(Map::values).next();
            let now = now.with_context(|| format!("{minor} {path} is not documented"))?;
            let parameters = now["parameters"].as_array().into_iter().flatten();
            let parameters: BTreeSet<&str> = parameters.filter_map(|one| one["name"].as_str()).collect();
            let earlier = operation["parameters"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = earlier.filter(|name| !parameters.contains(name));
            wrong.extend(missing.map(|name| format!("{minor} {path}: no parameter {name}")));
            let [mut before, mut after] = [BTreeSet::new(), BTreeSet::new()];
            fields(&kept, &operation["schema"], "", &mut before);
            let answered = &now["responses"]["200"]["content"]["application/json"]["schema"];
            fields(&document, answered, "", &mut after);
            wrong.extend(before.difference(&after).map(|name| format!("{minor} {path}: no field {name}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[tokio::test]
async fn a_deprecated_parameter_is_announced() -> Result<()> {
    let world = Generated::start().await?;
    let used = world.api.get("/v1/stocks?limit=2&has_dividends=true", Some(&world.key)).await?;
    let today = world.api.get("/v1/stocks?limit=2&pays_dividend=true", Some(&world.key)).await?;
    let rows = |reply: &harness::Reply| Ok::<_, anyhow::Error>(reply.json()?["data"].clone());
    assert_eq!(rows(&used)?, rows(&today)?);
    assert_eq!(used.header("deprecation"), Some("@1796083200"), "1 December 2026");
    assert_eq!(used.header("sunset"), Some("Fri, 01 Dec 2028 00:00:00 GMT"));
    let feed = format!("/feed/{}/v1/stocks?limit=2&has_dividends=true&format=csv", world.key);
    assert_eq!(world.api.get(&feed, None).await?.header("sunset"), used.header("sunset"));
    let sheet = world.api.get("/v1/stocks?limit=2&has_dividends=true&format=csv", Some(&world.key)).await?;
    let links: Vec<&str> =
        sheet.headers.get_all("link").iter().filter_map(|link| link.to_str().ok()).collect();
    assert!(links.iter().any(|link| link.contains("rel=\"next\"")), "{links:?}");
    assert!(links.contains(&"</versions>; rel=\"deprecation\"; type=\"text/html\""), "{links:?}");
    assert_eq!(["deprecation", "sunset"].map(|name| today.header(name)), [None, None]);
    let refused = world.api.get("/v1/stocks?has_dividends=perhaps", Some(&world.key)).await?;
    assert_eq!((refused.status.as_u16(), refused.header("sunset")), (400, used.header("sunset")));
    let document = world.api.get("/openapi.json", None).await?.json()?;
    let operation = &document["paths"]["/v1/stocks"]["get"];
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let deprecated: Vec<&Value> =
        parameters.filter(|one| one["deprecated"] == true).map(|one| &one["name"]).collect();
    assert_eq!(deprecated, ["has_dividends"]);
    for name in ["Deprecation", "Sunset"] {
        assert!(operation["responses"]["200"]["headers"][name].is_object(), "{name}");
    }
    let page = Person::at(&world.api)?.get("/versions").await?;
    for part in
        ["<code>has_dividends</code> of <code>/v1/stocks</code>", "not before 1 December 2028", "24 months"]
    {
        assert!(page.has(part), "{part}: {}", page.text);
    }
    Ok(())
}
