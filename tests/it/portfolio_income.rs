//! Income of holdings: the calendar's payments, summed by month, holding and currency.

use anyhow::{Context, Result};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::api_world::{World, check, column};

#[tokio::test]
async fn the_sums_are_the_calendars() -> Result<()> {
    let world = World::start().await?;
    let call = "/v1/portfolio/income?holdings=COLA:120:6000,BRK.B:10,OLDCO:5,NOPE:1&decimals=string";
    let answer = world.json(call).await?;
    let data = &answer["data"];
    check(data, json!({ "from": "2024-06-01", "until": "2025-05-31" }));
    let calendar = world
        .json("/v1/dividends/payment-dates?start_date=2024-06-01&end_date=2025-05-31&symbols=COLA&include_projected=true&decimals=string")
        .await?;
    let amounts = column(&calendar, "amount");
    assert_eq!(column(&json!({ "data": data["payments"] }), "amount"), amounts);
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<Decimal>().ok());
    let expected: Decimal = amounts.iter().filter_map(number).map(|amount| amount * Decimal::from(120)).sum();
    let total = &data["totals"][0];
    assert_eq!(number(&total["income"]), Some(expected), "{total}");
    check(
        total,
        json!({ "currency": "USD", "confirmed": "264", "estimated": "264", "payments": 4, "cost": "6000", "yield_on_cost": "8.8" }),
    );
    // There are twelve consecutive months, and their sums add up to the total.
    let months = data["months"].as_array().context("months")?;
    assert_eq!(
        (months.len(), &months[0]["month"], &months[11]["month"]),
        (12, &json!("2024-06-01"), &json!("2025-05-01"))
    );
    assert_eq!(months.iter().filter_map(|month| number(&month["income"])).sum::<Decimal>(), expected);
    check(&months[0], json!({ "confirmed": "132", "estimated": "0", "payments": 1 }));
    check(&months[6], json!({ "confirmed": "0", "estimated": "132", "payments": 1 }));
    // Missing payments are listed.
    let gaps: Vec<String> = data["gaps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|gap| format!("{} {}", gap["symbol"], gap["reason"]))
        .collect();
    assert!(gaps.contains(&"\"NOPE\" \"unknown_symbol\"".to_owned()), "{gaps:?}");
    assert_eq!(column(&json!({ "data": data["holdings"] }), "symbol"), ["COLA", "BRK.B", "NEWCO"]);
    let stock = world.json("/v1/stocks/COLA?decimals=string").await?;
    check(
        &data["holdings"][0],
        json!({ "dividend_yield": stock["data"]["dividend_yield"], "price": stock["data"]["price"], "growth_5y": stock["data"]["dividends"]["growth_5y"] }),
    );
    // Lots of one security are one holding, even under different symbols.
    let lots = world
        .json("/v1/portfolio/income?holdings=COLA:100:5000,cola:20:1000,NEWCO:2,OLDCO:3&decimals=string")
        .await?;
    check(&lots["data"]["holdings"][0], json!({ "shares": "120", "cost": "6000" }));
    check(&lots["data"]["holdings"][1], json!({ "symbol": "NEWCO", "shares": "5", "cost": null }));
    let sheet = world.get("/v1/portfolio/income?holdings=COLA:120&format=csv").await?.text();
    assert!(sheet.starts_with("symbol,id,ex_date,payment_date") && sheet.lines().count() == 5, "{sheet}");
    Ok(())
}

#[tokio::test]
async fn mistakes_in_holdings_are_named() -> Result<()> {
    let world = World::start().await?;
    let many = (0..101).map(|number| format!("S{number}:1")).collect::<Vec<_>>().join(",");
    for holdings in [
        "",
        "COLA",
        "COLA:0",
        "COLA:-1",
        "COLA:1e9",
        ":3",
        "COLA:1:2:3",
        "COLA:1,,BRK.B:2",
        many.as_str(),
        "COLA:9999999999",
    ] {
        let (status, body) =
            world.refused(&format!("/v1/portfolio/income?holdings={holdings}"), &world.free).await?;
        assert_eq!((status, &body["param"]), (400, &json!("holdings")), "{holdings}: {body}");
    }
    let hundred = (0..100).map(|number| format!("S{number}:999999999.999999")).collect::<Vec<_>>().join(",");
    let answer = world.json(&format!("/v1/portfolio/income?holdings={hundred}")).await?;
    assert_eq!(answer["data"]["gaps"].as_array().map(Vec::len), Some(100));
    world.json("/v1/portfolio/income?holdings=COLA:999999999.999999:999999999.999999").await?;
    Ok(())
}
