//! Licences of the sources: an answer names its sources, `/v1/sources` has their licences, and a source that must not be
//! redistributed is left out of bulk responses and of pages without a key.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::TestApp;
use serde_json::{Value, json};

use crate::api_world::{World, check, column};
use crate::converted_amounts;
use crate::dashboard::visitor::Person;
use crate::market_pages::PUBLIC;
use crate::undo::load;

const BULK: [&str; 3] = [
    "/v1/bulk/quotes?symbols=COLA,shut,NOPE",
    "/v1/bulk/metrics?symbols=COLA,SHUT,NOPE",
    "/v1/bulk/dividends?symbols=COLA,SHUT,NOPE",
];
const LATER: Duration = Duration::from_secs(60);

/// Starts a service with public pages and a security `SHUT`, of which only its split is from the source `closed`.
async fn world() -> Result<World> {
    let world = World::start_with(&PUBLIC).await?;
    let rows = [
        json!({ "kind": "security", "symbol": "SHUT", "name": "Shut Company", "type": "stock", "exchange": "XNYS", "currency": "USD" }),
        json!({ "kind": "price", "symbol": "SHUT", "date": "2024-06-14", "close": "20" }),
        json!({ "kind": "dividend", "symbol": "SHUT", "ex_date": "2024-05-14", "amount": "0.25", "currency": "USD" }),
    ];
    let text = rows.map(|row| format!("{row}\n")).concat();
    world.app.feed("open.ndjson", text).today("2024-06-17").load().await?;
    let split = json!({ "kind": "split", "symbol": "SHUT", "ex_date": "2023-03-01", "from": "1", "to": "2" });
    world
        .app
        .feed("closed.ndjson", format!("{split}\n"))
        .source("closed")
        .today("2024-06-17")
        .apply()
        .await?;
    harness::eventually(LATER, async || {
        ensure!(world.get("/v1/stocks/SHUT/quote").await?.status == 200, "SHUT is not served yet");
        Ok(())
    })
    .await?;
    Ok(world)
}

async fn state_licence(app: &TestApp, source: &str, redistribution: &str) -> Result<()> {
    let (licence, url) = (format!("Licence of {source}"), format!("https://licences.example/{source}"));
    let attribution = format!("Data by {source}");
    let arguments =
        ["source", "set", source, "--licence", &licence, "--url", &url, "--attribution", &attribution];
    app.projector(&[&arguments[..], &["--redistribution", redistribution]].concat()).await?.success()?;
    Ok(())
}

/// Waits until `/v1/bulk/quotes` lists these symbols as left out.
async fn left_out_is(world: &World, expected: Value) -> Result<()> {
    harness::eventually(LATER, async || {
        let left_out = &world.json(BULK[0]).await?["meta"]["left_out"];
        ensure!(*left_out == expected, "{left_out} is not {expected}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_answer_leads_to_its_licence() -> Result<()> {
    let world = world().await?;
    let before = world.json("/v1/sources").await?;
    assert_eq!(column(&before, "source"), ["closed", "test"]);
    check(&before["data"][0], json!({ "kinds": ["split"], "licence": null, "redistribution": null }));
    state_licence(&world.app, "closed", "no").await?;
    left_out_is(&world, json!({ "sources": ["closed"], "symbols": ["SHUT"] })).await?;

    let dividends = world.json("/v1/stocks/COLA/dividends").await?;
    assert_eq!(dividends["meta"]["sources"], json!(["test"]));
    let of_cola = world.json("/v1/sources?symbols=COLA,NOPE").await?;
    assert_eq!(
        (column(&of_cola, "source"), &of_cola["meta"]["missing"]),
        (vec![json!("test")], &json!(["NOPE"]))
    );
    let of_shut = world.json("/v1/sources?symbols=shut").await?;
    assert_eq!(column(&of_shut, "source"), ["closed", "test"]);
    let licence = json!({
        "source": "closed", "kinds": ["split"], "licence": "Licence of closed", "redistribution": false,
        "url": "https://licences.example/closed", "attribution": "Data by closed",
    });
    check(&of_shut["data"][0], licence);
    let csv = world.get("/v1/sources?symbols=shut&format=csv&fields=source,licence").await?.text();
    assert_eq!(csv.lines().collect::<Vec<_>>(), ["source,licence", "closed,Licence of closed", "test,"]);

    // The list of the operator has every source, and a licence without any loaded rows.
    let later = ["source", "set", "later", "--licence", "L", "--redistribution", "yes"];
    let stated = world.app.projector(&later).await?.success()?;
    assert!(stated.stdout.contains("no rows of later are loaded"), "{}", stated.stdout);
    let listed = world.app.projector(&["source", "list", "--json"]).await?.success()?.json()?;
    let sources: Vec<&Value> = listed.as_array().into_iter().flatten().map(|one| &one["source"]).collect();
    assert_eq!(sources, ["closed", "later", "test"]);
    let refused = world
        .app
        .projector(&["source", "set", "x", "--licence", "L", "--url", "x", "--redistribution", "no"])
        .await?;
    assert!(refused.code == 1 && refused.stderr.contains("begin it with https://"), "{}", refused.stderr);
    let named = ["source", "set", "=x", "--licence", "L", "--redistribution", "no"];
    let refused = world.app.projector(&named).await?;
    assert!(refused.code == 2 && refused.stderr.contains("1 to 64 letters"), "{}", refused.stderr);
    let long = "L".repeat(501);
    let refused =
        world.app.projector(&["source", "set", "x", "--licence", &long, "--redistribution", "no"]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("more than 500 characters"), "{}", refused.stderr);
    Ok(())
}

#[tokio::test]
async fn converted_figures_rest_on_the_source_of_the_rates() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", converted_amounts::TODAY).start().await?;
    let [files @ .., (_, rates)] = &converted_amounts::MARKET;
    load(&app, "market", &files.map(|(name, text)| (name, text.to_owned()))).await?;
    // The factors of an earlier dividend in another currency rest on a rate too, although no yield is converted.
    let old = [
        ("securities.csv", "symbol,name,type,currency,sector\nOLD,Old payer,stock,USD,Energy\n"),
        ("prices.csv", "symbol,date,close\nOLD,2021-06-17,10\nOLD,2021-06-18,10\nOLD,2024-06-27,10\n"),
        ("dividends.csv", "symbol,ex_date,amount,currency,type\nOLD,2021-06-18,0.1,GBP,regular\n"),
    ];
    load(&app, "old", &old.map(|(name, text)| (name, text.to_owned()))).await?;
    app.feed("fx.csv", *rates).source("closed").apply().await?;
    let (api, key) = (app.api_serve_with(&PUBLIC).await?, app.key("professional").await?);
    let [own, with_rates] = [json!(["test"]), json!(["closed", "test"])];
    for (currency, sources) in [("", &own), ("currency=USD", &own), ("currency=GBP", &with_rates)] {
        let dividends = api.get(&format!("/v1/stocks/KO/dividends?{currency}"), Some(&key)).await?.json()?;
        assert_eq!(&dividends["meta"]["sources"], sources, "{currency}");
    }
    let mut reader = Person::at(&api)?;
    let converted = ["/s/KO?currency=GBP", "/s/KO/dividends.csv?currency=GBP", "/calendar?currency=GBP"];
    for path in converted {
        assert_eq!(reader.get(path).await?.status, 200, "{path}");
    }
    state_licence(&app, "closed", "no").await?;
    harness::eventually(LATER, async || {
        let quotes = api.get("/v1/bulk/quotes?symbols=USDF,KO,OLD", Some(&key)).await?.json()?;
        let left_out = json!({ "sources": ["closed"], "symbols": ["OLD", "USDF"] });
        ensure!(quotes["meta"]["left_out"] == left_out && column(&quotes, "symbol") == ["KO"], "{quotes}");
        Ok(())
    })
    .await?;
    for path in converted {
        let page = reader.get(path).await?;
        let text = "The exchange rates of closed are left out, because their licence forbids redistribution";
        assert!(page.status == 403 && page.has(text), "{path}: {} {}", page.status, page.text);
    }
    assert_eq!(reader.get("/s/KO").await?.status, 200);
    assert_eq!(reader.get("/s/KO/dividends.csv").await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn bulk_answers_leave_out_what_must_not_be_redistributed_at_once() -> Result<()> {
    let world = world().await?;
    let bars = "/v1/bulk/prices?date=2024-06-14";
    let mut before = Vec::new();
    for path in BULK.iter().chain([&bars]) {
        let reply = world.get(path).await?;
        assert!(reply.text().contains("SHUT") && reply.json()?["meta"].get("left_out").is_none(), "{path}");
        before.push(reply);
    }
    state_licence(&world.app, "closed", "no").await?;
    left_out_is(&world, json!({ "sources": ["closed"], "symbols": ["SHUT"] })).await?;
    for (path, before) in BULK.iter().chain([&bars]).zip(&before) {
        let tag = before.header("etag").unwrap_or_default().to_owned();
        let headers = [("authorization", format!("Bearer {}", world.professional)), ("if-none-match", tag)];
        let reply = world.api.send(reqwest::Method::GET, path, &headers).await?;
        assert_eq!(reply.status, 200, "{path}: the copy of a client is outdated");
        let body = reply.json()?;
        assert_eq!(body["meta"]["left_out"], json!({ "sources": ["closed"], "symbols": ["SHUT"] }), "{path}");
        assert_eq!(body["meta"]["data_version"], before.json()?["meta"]["data_version"], "{path}");
        let symbols = column(&body, "symbol");
        assert!(symbols.contains(&json!("COLA")) && !symbols.contains(&json!("SHUT")), "{path}: {symbols:?}");
        if *path != bars {
            let summary = json!({ "requested": 3, "returned": 1, "failed": 1, "left_out": 1 });
            assert_eq!(body["meta"]["summary"], summary, "{path}");
            assert_eq!(body["meta"]["missing"], json!(["NOPE"]), "{path}");
        }
        let csv = world.get(&format!("{path}&format=csv")).await?.text();
        assert!(csv.contains("COLA") && !csv.contains("SHUT"), "{path}: {csv}");
        let version = body["meta"]["data_version"].as_str().unwrap_or_default();
        if *path != bars {
            let past = world.json(&format!("{path}&data_version={version}")).await?;
            assert_eq!(past["meta"]["left_out"], body["meta"]["left_out"], "{path}");
        }
    }
    // The key of an account still answers for one security and in lists.
    assert_eq!(world.get("/v1/stocks/SHUT/dividends").await?.status, 200);
    assert!(world.get("/v1/stocks").await?.text().contains("SHUT"));

    state_licence(&world.app, "closed", "yes").await?;
    left_out_is(&world, Value::Null).await?;
    assert!(world.get(bars).await?.text().contains("SHUT"));
    // Each statement stays, with its time and operator.
    let entries =
        "select string_agg(redistribution::text, ' ' order by stated_at) from control.source_licences";
    assert_eq!(world.app.sql_value::<String>(entries).await?, "false true");
    Ok(())
}

#[tokio::test]
async fn pages_without_an_account_leave_out_what_must_not_be_redistributed() -> Result<()> {
    let world = world().await?;
    let mut holder = Person::signed_up(&world.api, "sources@example.com").await?;
    let mut reader = Person::at(&world.api)?;
    let screener = "/screener?preset=all";
    assert!(reader.get(screener).await?.has("/s/SHUT") && reader.get("/s/SHUT").await?.status == 200);
    assert_eq!(reader.get("/screener.csv?preset=all").await?.status, 200);
    state_licence(&world.app, "closed", "no").await?;
    left_out_is(&world, json!({ "sources": ["closed"], "symbols": ["SHUT"] })).await?;

    let listed = reader.get(screener).await?;
    assert!(!listed.has("/s/SHUT") && listed.has("/s/COLA"), "{}", listed.text);
    assert!(
        listed.has("1 security is left out: the licence of closed forbids redistribution."),
        "{}",
        listed.text
    );
    for path in [
        "/s/SHUT",
        "/s/shut",
        "/s/SHUT/why/dividend_yield",
        "/s/SHUT/dividends.csv",
        "/screener.csv?preset=all",
        "/s/COLA/holdings.csv",
        "/s/COLA/etf-holders.csv",
    ] {
        let page = reader.get(path).await?;
        assert!(page.status == 403 && page.has("/quality#sources"), "{path}: {} {}", page.status, page.text);
    }
    assert_eq!(reader.get("/s/COLA/dividends.csv").await?.status, 200);
    let found = reader.get("/search?q=company").await?;
    assert!(!found.has("Shut Company") && found.has("Cola Company"), "{}", found.text);

    let map = reader.get("/sitemap.xml").await?;
    assert!(!map.has("/s/SHUT<") && map.has("/s/COLA<"), "{}", map.text);

    for path in ["/s/SHUT", "/screener.csv?preset=all"] {
        assert_eq!(holder.get(path).await?.status, 200, "{path} with an account");
    }
    // Sums would show the amounts of a security that is left out.
    let income = "/income?holdings=COLA:10";
    assert_eq!(reader.get(income).await?.status, 200);
    // The page of a security and the list of all sources link to the licence.
    let link = "<a href=\"https://licences.example/closed\" rel=\"license\">Licence of closed</a>";
    for (person, path) in [(&mut holder, "/s/SHUT"), (&mut reader, "/quality")] {
        let page = person.get(path).await?;
        assert!(page.has(link) && page.has("Data by closed"), "{path}: {}", page.text);
    }
    let cola = reader.get("/s/COLA").await?;
    assert!(cola.has("GET /v1/sources?symbols=COLA") && !cola.has(link), "{}", cola.text);
    state_licence(&world.app, "test", "no").await?;
    harness::eventually(LATER, async || {
        let page = reader.get(income).await?;
        ensure!(page.status == 403, "{}", page.text);
        Ok(())
    })
    .await?;
    Ok(())
}
