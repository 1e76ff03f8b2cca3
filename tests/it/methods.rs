//! Tests of the pages `/methods`, and of the links to them from figures, explanations and the OpenAPI document.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use market::event::DividendType;
use serde_json::{Value, json};

use crate::api_world::World;
use crate::dashboard::visitor::Person;
use crate::market_pages::PUBLIC;

const CASES: &str = include_str!("../../schema/market/domain-cases.json");
const PRUNE: &str = include_str!("../../projector/queries/journal_prune.sql");

/// Paths of the pages of rules that a text links to.
fn linked_rules(text: &str) -> BTreeSet<String> {
    let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.starts_with("/methods/")).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_rule_has_a_page_with_its_worked_examples() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut reader = Person::at(&world.api)?;
    let overview = reader.get("/methods").await?;
    let rules: BTreeSet<String> = (1..=45).map(|number| format!("/methods/R{number}")).collect();
    assert_eq!(linked_rules(&overview.text), rules);
    let cases: Value = serde_json::from_str(CASES)?;
    for path in &rules {
        let page = reader.get(path).await?;
        ensure!(page.status == 200 && !page.has("[`") && !page.has("crate::"), "{path}: {}", page.text);
        assert!(linked_rules(&page.text).is_subset(&rules), "{path}: {:?}", linked_rules(&page.text));
        let of_rule = |case: &&Value| case["rule"].as_str() == path.strip_prefix("/methods/");
        let cases = cases["cases"].as_array().context("cases")?.iter().filter(of_rule).count();
        assert!(cases >= 1, "{path} has no example");
        assert_eq!(page.text.matches("<h4>Result</h4>").count(), cases, "{path}");
    }
    for unknown in ["/methods/R0", "/methods/R46", "/methods/r9", "/methods/%FF"] {
        let page = reader.get(unknown).await?;
        assert!(page.status == 404 && page.has("<h1>Nothing is here</h1>"), "{unknown}: {}", page.text);
    }
    let reference = reader.get("/docs").await?;
    assert!(linked_rules(&reference.text).is_subset(&rules) && linked_rules(&reference.text).len() > 20);
    Ok(())
}

#[tokio::test]
async fn a_figure_leads_to_the_rule_of_its_explanation() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let document = world.json("/openapi.json").await?;
    assert_eq!(document["info"]["x-methods"], "/methods");
    let explained = world.json("/v1/stocks/COLA/metrics?explain=true").await?;
    let page = Person::at(&world.api)?.get("/s/COLA").await?;
    let (mut described, mut shown) = (0, 0);
    for entry in explained["data"]["explanation"]["metrics"].as_array().context("metrics")? {
        let (metric, rule) = (entry["metric"].as_str().context("a name")?, &entry["rule"]);
        let path = format!("/methods/{}", rule.as_str().context("a rule")?);
        assert_eq!(entry["rule_page"], json!(path), "{metric}");
        let description = &document["components"]["schemas"]["Metrics"]["properties"][metric]["description"];
        let named = description.as_str().context("a description")?.split("(R").nth(1);
        assert_eq!(
            named.and_then(|rest| rest.split(')').next()),
            path.strip_prefix("/methods/R"),
            "{metric}"
        );
        described += 1;
        if let Ok(figure) = page.between(&format!("<dd id=\"{metric}\">"), "</dd>") {
            assert!(figure.contains(&format!("href=\"{path}\"")), "{metric}: {figure}");
            shown += 1;
            let why = Person::at(&world.api)?.get(&format!("/s/COLA/why/{metric}")).await?;
            assert!(why.has(&format!("<dt>Rule</dt><dd><a href=\"{path}\">")), "{metric}: {}", why.text);
        }
    }
    assert!((described, shown) >= (40, 25), "{described} {shown}");
    Ok(())
}

#[tokio::test]
async fn the_table_of_types_says_what_the_figures_include() -> Result<()> {
    let world = World::start().await?;
    let records = DividendType::ALL.iter().flat_map(|kind| {
        let symbol = format!("T{}", kind.as_str().replace('_', "").to_uppercase());
        let price = |date: &str| json!({ "kind": "price", "symbol": symbol, "date": date, "close": "100" });
        [
            json!({ "kind": "security", "symbol": symbol, "name": kind, "type": "stock", "currency": "USD" }),
            price("2024-05-31"),
            price("2024-06-14"),
            json!({ "kind": "dividend", "symbol": symbol, "ex_date": "2024-06-03", "amount": "0.1", "type": kind }),
        ]
    });
    let lines: Vec<String> = records.map(|record| record.to_string()).collect();
    let feed = world.app.folder().join("types.ndjson");
    std::fs::write(&feed, lines.join("\n"))?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "types"]).await?.success()?;
    world.app.catch_up().await?;
    let page = Person::at(&world.api)?.get("/methods").await?;
    for kind in DividendType::ALL {
        let symbol = format!("T{}", kind.as_str().replace('_', "").to_uppercase());
        let metrics =
            world.json(&format!("/v1/stocks/{symbol}/metrics?fields=dps_ttm,dps_ttm_total")).await?;
        let bars = world.json(&format!("/v1/prices/{symbol}?adjustment=all&limit=2")).await?;
        let closes = bars["data"].as_array().context("bars")?;
        let oldest = closes.iter().find(|bar| bar["date"] == "2024-05-31").context("a bar")?;
        let is_adjusted = oldest["close"] != json!(100);
        let includes = |name: &str| metrics["data"][name].as_f64().is_some_and(|amount| amount > 0.0);
        let row = page.between(&format!("<code>{kind}</code></th>"), "</tr>")?;
        let cells: Vec<&str> =
            row.split("\">").skip(1).filter_map(|cell| cell.split('<').next()).map(str::trim).collect();
        let yes_or_no = |is_included: bool| if is_included { "yes" } else { "no" };
        assert_eq!(
            cells[..2],
            [yes_or_no(includes("dps_ttm")), yes_or_no(includes("dps_ttm_total"))],
            "{kind}: {metrics}"
        );
        assert_eq!(cells[3] != "no", is_adjusted, "{kind}: {oldest}");
    }
    Ok(())
}

#[tokio::test]
async fn the_page_names_the_time_for_which_changes_are_kept() -> Result<()> {
    let world = World::start_with(&[("DASHBOARD", "off"), ("PAGES", "off")]).await?;
    let page = Person::at(&world.api)?.get("/methods").await?;
    for (statement, sentence) in [
        ("changes where at < now() - interval '400 days'", "changes of the last 400 days"),
        ("notices where at < now() - interval '90 days'", "kept for 90 days"),
    ] {
        assert!(PRUNE.contains(statement) && page.has(sentence), "{sentence}: {}", page.text);
    }
    let method = world.json("/v1/stocks/COLA/metrics?fields=method_version").await?;
    assert!(page.has(method["data"]["method_version"].as_str().context("a version")?), "{}", page.text);
    assert!(!page.has("/sign-in"), "visitors cannot sign in");
    Ok(())
}
