//! Responses of the endpoints for the small test market, compared with known values.

use anyhow::Result;
use market::decimal::with_decimals_as_text;
use market::row::{FundamentalsRow, Quote};
use serde::Serialize;
use serde_json::json;
use store::FromRow;

use crate::api_world::{World, check, column};

#[tokio::test]
async fn one_stock_from_every_side() -> Result<()> {
    let world = World::start().await?;
    let quote = world.json("/v1/stocks/cola/quote").await?;
    check(
        &quote["data"],
        json!({ "symbol": "COLA", "currency": "USD", "source": "eod", "price_date": "2024-06-14" }),
    );
    check(&quote["meta"], json!({ "as_of": "2024-06-14" }));

    let snapshot = world.json("/v1/stocks/COLA?include=coverage,dividends").await?;
    check(&snapshot["data"]["coverage"], json!({ "prices_from": "2018-01-01", "prices_to": "2024-06-14" }));
    check(&snapshot["data"]["dividends"]["next"], json!({ "ex_date": "2024-09-13", "status": "declared" }));
    assert!(
        snapshot["data"].get("company").is_none() && snapshot["data"].get("identifiers").is_some(),
        "{snapshot}"
    );

    let metrics = world.json("/v1/stocks/COLA/metrics").await?;
    check(
        &metrics["data"],
        json!({ "symbol": "COLA", "frequency": "quarterly", "dividend_status": "active" }),
    );
    let then = world.json("/v1/stocks/COLA/metrics?as_of=2020-06-30").await?;
    check(&then["data"], json!({ "as_of": "2020-06-30", "latest_increase_date": "2020-03-13" }));
    assert_eq!(then["meta"]["data_version"], metrics["meta"]["data_version"]);
    let explained = world.json("/v1/stocks/COLA/metrics?explain=true").await?;
    assert!(
        explained["data"]["explanation"]["metrics"].as_array().is_some_and(|metrics| !metrics.is_empty()),
        "{explained}"
    );

    let fundamentals = world.json("/v1/stocks/COLA/fundamentals").await?;
    check(&fundamentals["data"], json!({ "symbol": "COLA", "eps_ttm": 2.5 }));
    let nothing = world.json("/v1/stocks/BRK.B/fundamentals").await?;
    check(&nothing["data"], json!({ "symbol": "BRK.B", "eps_ttm": null }));
    let splits = world.json("/v1/stocks/COLA/splits").await?;
    check(
        &splits["data"][0],
        json!({ "ex_date": "2024-03-01", "ratio": 2, "text": "2:1", "type": "forward" }),
    );
    let renamed = world.json("/v1/stocks/OLDCO/quote").await?;
    check(&renamed["data"], json!({ "symbol": "NEWCO" }));
    let split = world.json("/v1/stocks/COLA/events?type=split,spin_off").await?;
    assert_eq!(column(&split, "date"), [json!("2024-03-01")]);
    check(
        &split["data"][0],
        json!({ "type": "split", "status": "effective", "ratio": 2, "price_factor": 0.5 }),
    );
    let renamed = json!({ "symbol": "NEWCO", "date": "2022-06-09", "type": "rename", "from_symbol": "OLDCO", "to_symbol": "NEWCO" });
    check(&world.json("/v1/stocks/OLDCO/events").await?["data"][0], renamed);
    assert_eq!(world.json("/v1/stocks/OLDCO/events?start_date=2022-06-10").await?["data"], json!([]));
    check(
        &world.json("/v1/stocks/GONE/events").await?["data"][0],
        json!({ "date": "2023-12-29", "type": "delisting" }),
    );
    Ok(())
}

/// The API writes the JSON of quotes and fundamentals directly from the database columns. The test fails if a response
/// differs in any byte from the JSON of the structs `Quote` and `FundamentalsRow`.
#[tokio::test]
async fn quotes_and_fundamentals_have_the_bytes_of_their_structs() -> Result<()> {
    async fn check_all<T: FromRow + Serialize>(world: &World, table: &str, resource: &str) -> Result<()> {
        let rows = world.app.sql(&format!("select * from read_g1.{table} order by symbol"), &[]).await?;
        assert!(!rows.is_empty(), "{table}");
        for row in rows {
            let (symbol, said): (&str, T) = (row.try_get("symbol")?, T::from_row(&row)?);
            let path = format!("/v1/stocks/{symbol}/{resource}");
            let as_text = with_decimals_as_text(|| serde_json::to_string(&said))?;
            for (query, expected) in [("", serde_json::to_string(&said)?), ("?decimals=string", as_text)] {
                let reply = world.api.get(&format!("{path}{query}"), Some(&world.professional)).await?;
                let expected = format!("{{\"data\":{expected},\"meta\":");
                assert!(reply.text().starts_with(&expected), "{} is not {expected}", reply.text());
            }
        }
        Ok(())
    }
    let world = World::start().await?;
    check_all::<Quote>(&world, "quotes", "quote").await?;
    check_all::<FundamentalsRow>(&world, "fundamentals", "fundamentals").await
}

#[tokio::test]
async fn prices_on_every_basis_and_interval() -> Result<()> {
    let world = World::start().await?;
    let path = "/v1/prices/COLA?start_date=2024-02-26&end_date=2024-03-04&sort=date.asc";
    let split = world.json(path).await?;
    assert_eq!(
        column(&split, "date"),
        ["2024-02-26", "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-04"]
            .map(|day| json!(day))
    );
    check(&split["data"][4], json!({ "split_ratio": 2, "split_factor": 1 }));
    let raw = world.json(&format!("{path}&adjustment=raw")).await?;
    for (split, raw) in
        split["data"].as_array().into_iter().flatten().zip(raw["data"].as_array().into_iter().flatten())
    {
        assert_eq!(split["raw_close"], raw["close"], "{split} {raw}");
        assert_eq!(raw["raw_close"], raw["close"]);
    }
    assert_eq!(split["data"][3]["split_factor"], json!(0.5));
    let all = world.json(&format!("{path}&adjustment=all")).await?;
    assert_eq!(all["data"][0]["close"], split["data"][0]["adj_close"]);
    check(&all["meta"], json!({ "adjustment": "all" }));
    for (list, expected, meta) in
        [("split,dividend", &all, "all"), ("spin_off", &raw, "spin_off"), ("raw,raw", &raw, "raw")]
    {
        let listed = world.json(&format!("{path}&adjustment={list}")).await?;
        assert_eq!(listed["data"], expected["data"], "{list}");
        check(&listed["meta"], json!({ "adjustment": meta }));
    }
    let refused = world.get(&format!("{path}&adjustment=raw,split")).await?;
    assert_eq!(refused.status, 400, "{}", refused.text());

    let yearly = world.json("/v1/prices/COLA?range=max&interval=yearly&sort=date.asc").await?;
    assert_eq!(yearly["data"].as_array().map(Vec::len), Some(7), "{yearly}");
    check(&yearly["data"][6], json!({ "date": "2024-06-14" }));
    check(
        &yearly["meta"],
        json!({ "interval": "yearly", "adjustment": "split", "has_more": false, "currency": "USD" }),
    );
    check(&yearly["meta"]["depth"], json!({ "tier": "professional", "from": "1924-06-17" }));

    let latest = world.json("/v1/prices/COLA/latest").await?;
    check(
        &latest["data"],
        json!({ "symbol": "COLA", "date": "2024-06-14", "age_sessions": 0, "currency": "USD" }),
    );
    let csv = world.get("/v1/prices/COLA?range=5d&format=csv&fields=date,close").await?.text();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.starts_with("date,close\r\n2024-06-14,"), "{csv}");
    let text = world.json("/v1/prices/COLA?range=5d&decimals=string&fields=close").await?;
    assert!(text["data"][0]["close"].is_string(), "{text}");
    let none = world.json("/v1/prices/GONE").await?;
    assert_eq!(none["data"], json!([]));
    Ok(())
}

#[tokio::test]
async fn pages_neither_skip_nor_repeat() -> Result<()> {
    let world = World::start().await?;
    for (path, key) in [
        ("/v1/prices/COLA?start_date=2024-05-01&limit=7", "date"),
        ("/v1/prices/COLA?interval=monthly&range=5y&limit=9&sort=date.asc", "date"),
        ("/v1/stocks/COLA/dividends?limit=9&sort=amount.desc", "ex_date"),
        ("/v1/dividends/history?symbols=COLA,BRK.B&limit=11", "ex_date"),
        ("/v1/dividends/history?symbols=COLA&limit=11&sort=ex_date.asc", "ex_date"),
        ("/v1/stocks?limit=2&sort=market_cap.desc", "symbol"),
        ("/v1/screener?limit=1", "symbol"),
        ("/v1/dividends/calendar?start_date=2023-12-01&end_date=2024-11-01&limit=1", "event_date"),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        let (start, end) = (path.find("limit=").unwrap_or(0), path.len());
        let limit_end = path[start..].find('&').map_or(end, |length| start + length);
        let whole_path = format!("{}limit=100{}", &path[..start], &path[limit_end..]);
        let whole = column(&world.json(&whole_path).await?, key);
        loop {
            let body = world.json(&format!("{path}{cursor}")).await?;
            seen.extend(column(&body, key));
            assert_eq!(body["meta"]["count"], json!(body["data"].as_array().map(Vec::len)));
            match body["meta"]["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen[..whole.len().min(seen.len())], whole[..], "{path}");
        assert!(seen.len() >= whole.len() && !whole.is_empty(), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn lists_across_securities() -> Result<()> {
    let world = World::start().await?;
    let stocks = world.json("/v1/stocks").await?;
    assert_eq!(column(&stocks, "symbol"), ["BRK.B", "COLA", "FUND", "NEWCO"].map(|symbol| json!(symbol)));
    let named = world.json("/v1/stocks?symbols=oldco,NOPE,gone&is_active=false").await?;
    assert_eq!(column(&named, "symbol"), [json!("GONE")]);
    check(&named["meta"]["warnings"][0], json!({ "code": "unknown_symbol", "param": "symbols" }));

    let kings = world.json("/v1/screener/dividend-kings").await?;
    check(&kings["meta"], json!({ "screener": "dividend-kings", "limit": 50 }));
    let screened = world.json("/v1/screener?min_yield=0.1&min_streak=20").await?;
    assert_eq!(column(&screened, "symbol"), [json!("COLA")]);
    check(&screened["meta"]["criteria"], json!({ "min_yield": 0.1, "min_streak": 20 }));
    check(&screened["meta"], json!({ "total": 1 }));
    // A facet counts the securities that match all filters except its own.
    let counted =
        world.json("/v1/screener?sector=Financials&type=stock&facets=sector,type,index&limit=1").await?;
    let sectors = json!({ "Consumer Staples": 1, "Financials": 1 });
    let facets = json!({ "sector": sectors, "type": { "stock": 1 }, "index": { "sp500": 1 } });
    check(&counted["meta"], json!({ "total": 1, "facets": facets }));

    let calendar = world.json("/v1/dividends/ex-dates?end_date=2024-09-30").await?;
    check(
        &calendar["data"][0],
        json!({ "symbol": "COLA", "event_date": "2024-09-13", "event_type": "ex_dividend", "days_until": 88, "name": "Cola Company" }),
    );
    let payments = world.json("/v1/dividends/payment-dates").await?;
    check(
        &payments["data"][0],
        json!({ "symbol": "COLA", "event_date": "2024-06-28", "event_type": "payment", "days_until": 11 }),
    );

    let year = "start_date=2024-01-01&end_date=2024-06-30";
    let splits = world.json(&format!("/v1/splits/calendar?{year}")).await?;
    assert_eq!(splits["meta"]["count"], 1, "{splits}");
    check(
        &splits["data"][0],
        json!({ "symbol": "COLA", "ex_date": "2024-03-01", "event_date": "2024-03-01", "days_until": -108, "text": "2:1",
                "type": "forward", "status": "effective", "name": "Cola Company", "price_currency": "USD" }),
    );
    for (filter, count) in [
        ("symbols=COLA,NEWCO", 1),
        ("symbols=NEWCO", 0),
        ("type=reverse", 0),
        ("type=forward,reverse&sort=event_date.desc", 1),
        ("min_yield=0.1", 1),
        ("min_yield=90", 0),
        ("declared_from=2024-01-01", 0),
    ] {
        let filtered = world.json(&format!("/v1/splits/calendar?{year}&{filter}")).await?;
        assert_eq!(filtered["meta"]["count"], count, "{filter}: {filtered}");
    }
    let coming = world.json("/v1/splits/calendar").await?;
    assert_eq!((&coming["meta"]["count"], &coming["meta"]["today"]), (&json!(0), &json!("2024-06-17")));

    let found = world.json("/v1/search?q=brk-b").await?;
    check(&found["data"][0], json!({ "symbol": "BRK.B", "match": "symbol", "score": 1 }));
    check(
        &world.json("/v1/search?q=OLDCO").await?["data"][0],
        json!({ "symbol": "NEWCO", "match": "former_symbol" }),
    );
    check(
        &world.json("/v1/search?q=US0000000001").await?["data"][0],
        json!({ "symbol": "NEWCO", "match": "isin" }),
    );

    let compared = world.json("/v1/compare?symbols=BRK.B,COLA,NOPE").await?;
    assert_eq!(column(&compared, "symbol"), [json!("BRK.B"), json!("COLA")]);
    check(&compared["meta"], json!({ "missing": ["NOPE"] }));
    check(&compared["meta"]["best"], json!({ "dividend_yield": "COLA" }));

    let sectors = world.json("/v1/sectors").await?;
    assert!(column(&sectors, "sector").contains(&json!("Consumer Staples")), "{sectors}");
    let sector = world.json("/v1/sectors/consumer%20staples").await?;
    check(&sector["data"]["top_payers"][0], json!({ "symbol": "COLA" }));

    let funds = world.json("/v1/etfs?q=fund").await?;
    check(&funds["data"][0], json!({ "symbol": "FUND", "issuer": "Issuer", "expense_ratio": 0.06 }));
    check(&world.json("/v1/etfs/FUND").await?["data"], json!({ "holdings_count": 2 }));
    let holdings = world.json("/v1/etfs/FUND/holdings").await?;
    assert_eq!(column(&holdings, "symbol"), [json!("COLA"), json!("BRK.B")]);
    check(&holdings["meta"], json!({ "weight_total": 99.5, "stale": false, "as_of": "2024-06-14" }));

    let holders = world.json("/v1/stocks/cola/etf-holders").await?;
    assert_eq!(column(&holders, "etf_symbol"), [json!("FUND")]);
    check(
        &holders["data"][0],
        json!({ "symbol": "COLA", "rank": 1, "weight": holdings["data"][0]["weight"], "as_of": "2024-06-14" }),
    );
    assert_eq!(world.json("/v1/stocks/NEWCO/etf-holders").await?["data"], json!([]));
    assert_eq!(world.get("/v1/stocks/NOPE/etf-holders").await?.status, 404);

    let bulk = world.json("/v1/bulk/quotes?symbols=COLA,NOPE,brk-b").await?;
    assert_eq!(column(&bulk, "symbol"), [json!("COLA"), json!("BRK.B")]);
    check(&bulk["meta"]["errors"][0], json!({ "symbol": "NOPE", "code": "NOT_FOUND" }));
    check(&bulk["meta"]["summary"], json!({ "requested": 3, "returned": 2, "failed": 1 }));
    let dividends = world.json("/v1/bulk/dividends?symbols=COLA,BRK.B&per_symbol=2").await?;
    assert_eq!(dividends["data"][0]["dividends"].as_array().map(Vec::len), Some(2));
    assert_eq!(dividends["data"][1]["dividends"], json!([]));
    let metrics = world.json("/v1/bulk/metrics?symbols=COLA").await?;
    check(&metrics["data"][0], json!({ "symbol": "COLA" }));
    Ok(())
}

#[tokio::test]
async fn a_comparison_and_yearly_totals_are_flat_in_csv() -> Result<()> {
    let world = World::start().await?;
    let quote = world.json("/v1/stocks/COLA/quote").await?;
    let fields = "symbol,quote.price,metrics.increase_streak_years";
    let sheet =
        world.get(&format!("/v1/compare?symbols=COLA,BRK.B&format=csv&fields={fields}")).await?.text();
    let lines: Vec<&str> = sheet.lines().collect();
    let streak = world.json("/v1/stocks/COLA/metrics").await?["data"]["increase_streak_years"].clone();
    assert_eq!(
        lines[..2],
        [fields.to_owned(), format!("COLA,{},{streak}", quote["data"]["price"])],
        "{sheet}"
    );
    assert_eq!(lines.len(), 3, "{sheet}");
    // The name of a section selects all of its columns. `sections` leaves out the other sections.
    let sheet = world.get("/v1/compare?symbols=COLA&format=csv&sections=quote").await?.text();
    let header = sheet.lines().next().unwrap_or_default();
    assert!(header.starts_with("symbol,quote.name,") && !header.contains("metrics"), "{header}");
    let same = world.get("/v1/compare?symbols=COLA&format=csv&fields=symbol,quote").await?.text();
    assert_eq!(same, sheet);

    let metrics = world.json("/v1/stocks/COLA/metrics").await?;
    let years = metrics["data"]["annual_totals"].as_array().cloned().unwrap_or_default();
    let expected: Vec<String> = years
        .iter()
        .map(|year| format!("COLA,{},{},{}", year["year"], year["amount"], year["complete"]))
        .collect();
    assert!(expected.len() > 3, "{expected:?}");
    for path in ["/v1/stocks/COLA/metrics?", "/v1/bulk/metrics?symbols=COLA&"] {
        let sheet = world.get(&format!("{path}fields=symbol,annual_totals&format=csv")).await?.text();
        let (header, rows) = sheet.split_once("\r\n").unwrap_or_default();
        assert_eq!(header, "symbol,year,amount,complete", "{path}");
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected, "{path}");
    }
    // Without `fields`, there is one row with all figures. The yearly totals are one cell of it.
    let sheet = world.get("/v1/stocks/COLA/metrics?format=csv").await?.text();
    assert_eq!(sheet.lines().count(), 2, "{sheet}");
    Ok(())
}

#[tokio::test]
async fn an_older_name_of_a_parameter_has_the_same_effect() -> Result<()> {
    let world = World::start().await?;
    for wanted in [true, false] {
        let named = world.json(&format!("/v1/stocks?pays_dividend={wanted}")).await?;
        let older = world.json(&format!("/v1/stocks?has_dividends={wanted}")).await?;
        assert_eq!(named["data"], older["data"]);
        assert!(column(&named, "pays_dividend").iter().all(|pays| *pays == json!(wanted)), "{named}");
        assert!(!column(&named, "symbol").is_empty(), "{wanted}: {named}");
    }
    Ok(())
}
