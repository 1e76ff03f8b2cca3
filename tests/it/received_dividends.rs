//! Received dividends: payments to an owner, computed from purchases and sales.

mod brokers;
mod calendar;
mod corporate_actions;
mod privacy;
mod reconciliation;
mod reference;

use anyhow::{Context, Result};
use harness::{Api, Reply, TestApp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::undo::load;

const PATH: &str = "/v1/portfolio/dividends";
const TODAY: &str = "2024-06-28";
/// A company with quarterly dividends, a split 2:1 and a former symbol; a fund in pounds that pays dollars; a Japanese
/// company, whose payment has a second row in dollars; a company with a spin-off.
const MARKET: [(&str, &str); 5] = [
    (
        "securities.ndjson",
        r#"{"kind":"security","symbol":"KO","name":"Cola","type":"stock","currency":"USD","country":"US","isin":"US1912161007","former_symbols":[{"symbol":"OLDKO","to":"2022-01-03"}]}
{"kind":"security","symbol":"USDF","name":"Dollar fund","type":"etf","currency":"GBP","country":"IE"}
{"kind":"security","symbol":"NIP","name":"Nippon","type":"stock","currency":"JPY","country":"JP","isin":"JP9998887773"}
{"kind":"security","symbol":"PAR","name":"Parent","type":"stock","currency":"USD","country":"US"}
"#,
    ),
    (
        "prices.csv",
        "symbol,date,close\nKO,2023-06-14,120\nKO,2024-06-27,63.5\nUSDF,2024-06-19,40\nUSDF,2024-06-27,40\n\
         NIP,2024-06-27,1000\nPAR,2024-06-27,10\n",
    ),
    (
        "dividends.csv",
        "symbol,ex_date,payment_date,amount,currency,type\nKO,2023-03-15,2023-04-03,0.92,USD,regular\n\
         KO,2023-06-15,2023-07-03,0.92,USD,regular\nKO,2023-09-14,2023-10-02,0.46,USD,regular\n\
         KO,2023-12-14,2024-01-02,0.46,USD,regular\nKO,2024-03-14,2024-04-01,0.485,USD,regular\n\
         KO,2024-06-14,2024-07-01,0.485,USD,regular\nUSDF,2024-06-20,2024-07-05,0.50,USD,regular\n\
         NIP,2024-03-28,2024-06-20,10,JPY,regular\nNIP,2024-03-28,2024-06-20,0.066,USD,regular\n",
    ),
    ("splits.csv", "symbol,ex_date,from,to,type\nKO,2023-08-01,1,2,forward\nPAR,2024-02-01,10,11,spin_off\n"),
    (
        "fx.csv",
        "date,base,quote,rate\n2024-06-13,GBP,USD,1.28\n2024-06-18,GBP,USD,1.25\n2024-06-27,GBP,USD,1.27\n\
         2023-04-03,EUR,USD,1.10\n2023-07-03,EUR,USD,1.09\n2024-01-02,EUR,USD,1.10\n2024-04-01,EUR,USD,1.08\n",
    ),
];

struct Market {
    app: TestApp,
    api: Api,
    key: String,
}

impl Market {
    async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    async fn start_with(env: &[(&str, &str)]) -> Result<Self> {
        let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
        load(&app, "market", &MARKET.map(|(name, text)| (name, text.to_owned()))).await?;
        app.catch_up().await?;
        let (api, key) = (app.api_serve_with(env).await?, app.key("professional").await?);
        Ok(Self { app, api, key })
    }

    async fn post(&self, query: &str, media_type: &str, body: &str) -> Result<Reply> {
        let headers = [("x-api-key", self.key.clone()), ("content-type", media_type.to_owned())];
        let path = format!("{PATH}?{query}");
        self.api.send_body(Method::POST, &path, &headers, body.as_bytes().to_vec()).await
    }

    /// Answer for transactions as `account,symbol,date,quantity,price,currency`.
    async fn answer(&self, query: &str, lines: &[&str]) -> Result<Value> {
        let body = transactions(lines).to_string();
        let reply = self.post(&format!("decimals=string&{query}"), "application/json", &body).await?;
        anyhow::ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
        reply.json()
    }

    /// Ex-date, quantity and gross amount of each payment that is not projected.
    async fn payments(&self, query: &str, lines: &[&str]) -> Result<Vec<String>> {
        let answer = self.answer(query, lines).await?;
        let rows = answer["data"].as_array().context("rows")?;
        let known = rows.iter().filter(|row| row["status"] != "projected");
        Ok(known.map(|row| ["ex_date", "quantity", "gross"].map(|name| text(row, name)).join(" ")).collect())
    }
}

/// Text of a member; empty without a text.
fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

fn transactions(lines: &[&str]) -> Value {
    let names = ["account", "symbol", "date", "quantity", "price", "currency"];
    let object = |line: &&str| -> Value {
        let cells = names.iter().zip(line.split(',')).filter(|(_, cell)| !cell.is_empty());
        cells.map(|(name, cell)| ((*name).to_owned(), json!(cell))).collect::<serde_json::Map<_, _>>().into()
    };
    json!({ "transactions": lines.iter().map(object).collect::<Vec<_>>() })
}

#[tokio::test]
async fn a_quantity_is_the_sum_of_earlier_transactions_carried_through_splits() -> Result<()> {
    let market = Market::start().await?;
    // A purchase, a partial sale, and the split of 1 August.
    let lines = [",KO,2023-03-01,100", ",KO,2023-05-02,-25.5", ",KO,2023-11-01,-49"];
    let expected = [
        "2023-03-15 100 92",
        "2023-06-15 74.5 68.54",
        "2023-09-14 149 68.54",
        "2023-12-14 100 46",
        "2024-03-14 100 48.5",
        "2024-06-14 100 48.5",
    ];
    assert_eq!(market.payments("", &lines).await?, expected);
    // The order of the lines does not matter, and a former symbol is the same security.
    let lines = [",OLDKO,2023-11-01,-49", ",ko,2023-05-02,-25.5", ",KO,2023-03-01,100"];
    assert_eq!(market.payments("", &lines).await?, expected);
    // Today's basis: 200 shares of today were 100 shares before the split.
    let lines = [",KO,2023-03-01,200", ",KO,2023-05-02,-51", ",KO,2023-11-01,-49"];
    assert_eq!(market.payments("quantity_basis=today", &lines).await?, expected);
    // A purchase on the ex-date gets nothing. A sale on the ex-date still gets the dividend.
    assert_eq!(market.payments("", &[",KO,2024-06-14,10"]).await?, [""; 0]);
    let lines = [",KO,2024-06-13,10", ",KO,2024-06-14,-10"];
    assert_eq!(market.payments("", &lines).await?, ["2024-06-14 10 4.85"]);
    // A purchase on the day of the split is on the new basis.
    let lines = [",KO,2023-08-01,10", ",KO,2024-01-02,-10"];
    assert_eq!(market.payments("", &lines).await?, ["2023-09-14 10 4.6", "2023-12-14 10 4.6"]);
    // Payments are selected by payment date.
    let payments =
        market.payments("start_date=2024-01-02&end_date=2024-04-01", &[",KO,2023-03-01,1"]).await?;
    assert_eq!(payments, ["2023-12-14 2 0.92", "2024-03-14 2 0.97"]);
    // Fractions are exact.
    let lines = [",KO,2024-06-13,0.3333333333"];
    assert_eq!(market.payments("", &lines).await?, ["2024-06-14 0.3333333333 0.161667"]);
    Ok(())
}

#[tokio::test]
async fn accounts_and_sums_are_separate() -> Result<()> {
    let market = Market::start().await?;
    let lines = [
        "ira,KO,2024-01-03,10,50,USD",
        "ira,KO,2024-01-04,10,70",
        ",KO,2024-01-03,5",
        "ira,NOPE,2024-01-03,5",
    ];
    let answer = market.answer("end_date=2024-12-31", &lines).await?;
    let accounts: Vec<&Value> =
        answer["data"].as_array().context("rows")?.iter().map(|row| &row["account"]).take(4).collect();
    assert_eq!(accounts, [&Value::Null, &json!("ira"), &Value::Null, &json!("ira")]);
    let meta = &answer["meta"];
    assert_eq!(meta["missing"], json!(["NOPE"]));
    assert_eq!(meta["gaps"][0], json!({ "symbol": "NOPE", "reason": "unknown_symbol" }));
    assert_eq!(
        (&meta["warnings"][0]["code"], &meta["warnings"][0]["param"]),
        (&json!("unknown_symbol"), &json!("transactions"))
    );
    let totals = &meta["totals"];
    let status = |name: &str| {
        let rows = answer["data"].as_array().into_iter().flatten().filter(|row| row["status"] == name);
        rows.count()
    };
    assert!(status("projected") >= 2, "{answer}");
    assert_eq!(totals["currencies"][0]["payments"], json!(status("projected") + 4));
    assert_eq!(totals["currencies"][0]["tax"], Value::Null);
    let first = json!({ "month": "2024-04-01", "currency": "USD", "gross": "12.125", "tax": null, "net": null, "received": "12.125", "projected": "0", "payments": 2 });
    assert_eq!(totals["months"][0], first, "{totals}");
    assert_eq!(
        (&totals["years"][0]["year"], totals["years"].as_array().map(Vec::len)),
        (&json!(2024), Some(1))
    );
    assert_eq!(totals["accounts"].as_array().map(Vec::len), Some(2));
    // A share of one account has no price.
    assert_eq!(
        (&totals["symbols"][0]["symbol"], &totals["symbols"][0]["yield_on_cost"]),
        (&json!("KO"), &Value::Null)
    );
    // 20 shares for 1,200; a sale of five leaves 900. The dividends of twelve months are 20 x 0.485.
    let lines = ["ira,KO,2024-01-03,10,50,USD", "ira,KO,2024-01-04,10,70", "ira,KO,2024-06-20,-5,99"];
    let answer = market.answer("", &lines).await?;
    assert_eq!(answer["meta"]["totals"]["symbols"][0]["yield_on_cost"], "1.0778", "{answer}");
    Ok(())
}

#[tokio::test]
async fn tax_is_rounded_to_the_minor_unit() -> Result<()> {
    let market = Market::start().await?;
    let lines = [",KO,2024-06-13,2", ",NIP,2024-03-01,1", ",USDF,2024-06-01,1"];
    let answer = market.answer("tax=US:50,JP:15&end_date=2024-07-31", &lines).await?;
    let rows: Vec<String> = answer["data"]
        .as_array()
        .context("rows")?
        .iter()
        .map(|row| {
            ["symbol", "gross", "tax", "net"].map(|name| row[name].as_str().unwrap_or_default()).join(" ")
        })
        .collect();
    // 0.485 is rounded to 0.49, and 1.5 yen to 2 yen.
    assert_eq!(rows, ["NIP 10 2 8", "KO 0.97 0.49 0.48", "USDF 0.5 0 0.5"]);
    assert_eq!(answer["meta"]["warnings"][0]["code"], "no_tax_rate");
    let dollars = &answer["meta"]["totals"]["currencies"][1];
    assert_eq!((&dollars["tax"], &dollars["net"]), (&json!("0.49"), &json!("0.98")));
    let all = market.answer("tax=*:10&end_date=2024-07-31", &lines).await?;
    assert_eq!((&all["meta"]["warnings"], &all["data"][2]["tax"]), (&json!([]), &json!("0.05")));
    for (tax, param) in [("US", "tax"), ("US:101", "tax"), ("XX:1", "tax"), ("US:1,US:2", "tax")] {
        let reply =
            market.post(&format!("tax={tax}"), "application/json", &transactions(&lines).to_string()).await?;
        assert_eq!((reply.status.as_u16(), &reply.json()?["param"]), (400, &json!(param)), "{tax}");
    }
    Ok(())
}

#[tokio::test]
async fn payments_are_converted_to_the_requested_currency() -> Result<()> {
    let market = Market::start().await?;
    let lines = [",KO,2024-06-13,10", ",USDF,2024-06-01,100", ",NIP,2024-03-01,1"];
    let answer = market.answer("currency=GBP&tax=*:10&end_date=2024-07-31", &lines).await?;
    let amounts: Vec<&Value> =
        answer["data"].as_array().context("rows")?.iter().map(|row| &row["converted"]["amount"]).collect();
    // 4.85 / 1.28 and 50 / 1.25, at the rates of the sessions before the ex-dates.
    assert_eq!(amounts, [&Value::Null, &json!("3.789063"), &json!("40")]);
    let total = &answer["meta"]["totals"]["converted"];
    assert_eq!(
        (&total["gross"], &total["currency"], &total["unconverted"], &total["payments"]),
        (&json!("43.789063"), &json!("GBP"), &json!(1), &json!(2))
    );
    assert_eq!((&total["tax"], &total["net"]), (&json!("4.382813"), &json!("39.40625")), "{total}");
    Ok(())
}

#[tokio::test]
async fn a_sale_of_more_shares_than_an_account_has_is_refused() -> Result<()> {
    let market = Market::start().await?;
    let lines =
        [",KO,2023-03-01,100", "ira,KO,2023-03-01,1", ",KO,2023-11-01,-200.5", "ira,KO,2023-03-01,-2"];
    let body = transactions(&lines).to_string();
    let reply = market.post("", "application/json", &body).await?;
    let error = reply.json()?;
    let params: Vec<&Value> =
        error["errors"].as_array().context("errors")?.iter().map(|one| &one["param"]).collect();
    assert_eq!(reply.status, 400);
    assert_eq!(params, ["transactions[2].quantity", "transactions[3].quantity"]);
    let payments = market.payments("short=true&end_date=2024-04-30", &lines[..3]).await?;
    let expected = [
        "2023-03-15 100 92",
        "2023-03-15 1 0.92",
        "2023-06-15 100 92",
        "2023-06-15 1 0.92",
        "2023-09-14 200 92",
        "2023-09-14 2 0.92",
        "2023-12-14 -0.5 -0.23",
        "2023-12-14 2 0.92",
        "2024-03-14 -0.5 -0.2425",
        "2024-03-14 2 0.97",
    ];
    assert_eq!(payments, expected);
    // On one day, purchases come first.
    market.answer("", &[",KO,2024-01-03,-5", ",KO,2024-01-03,5"]).await?;
    Ok(())
}

#[tokio::test]
async fn csv_in_and_out_equals_json() -> Result<()> {
    let market = Market::start().await?;
    let lines = ["ira,KO,2023-03-01,100,50,USD", ",USDF,2024-06-01,100"];
    let json = market.answer("", &lines).await?;
    let csv = "symbol,date,quantity,account,currency,price\r\nKO,2023-03-01,100,ira,USD,50\r\nUSDF,2024-06-01,1e2,,,\r\n";
    let reply = market.post("decimals=string", "text/csv; charset=utf-8", csv).await?;
    assert_eq!(reply.json()?, json);
    let numbers = r#"{"transactions":[{"account":"ira","symbol":"KO","date":"2023-03-01","quantity":100.0,"price":50,"currency":"USD"},
        {"account":null,"symbol":"USDF","date":"2024-06-01","quantity":1E2}]}"#;
    let reply = market.post("decimals=string", "application/json", numbers).await?;
    assert_eq!(reply.json()?, json);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("etag"), None);
    let sheet = market
        .post("format=csv&fields=account,symbol,gross&end_date=2023-05-01", "text/csv", csv)
        .await?
        .text();
    assert_eq!(sheet, "account,symbol,gross\r\nira,KO,92\r\n");
    Ok(())
}

#[tokio::test]
async fn mistakes_in_the_body_are_named() -> Result<()> {
    let market = Market::start().await?;
    let refused = async |media_type: &str, body: &str| -> Result<(u16, Vec<String>)> {
        let reply = market.post("", media_type, body).await?;
        let error = reply.json()?;
        let errors = error["errors"].as_array().into_iter().flatten();
        let params = errors.filter_map(|one| one["param"].as_str()).map(str::to_owned).collect();
        Ok((reply.status.as_u16(), params))
    };
    let json = "application/json";
    let body = r#"{"transactions":[{"symbol":"KO","date":"2023-03-01","quantity":"1"},
        {"symbol":"","date":"2023-02-30","quantity":"x","price":"-1","currency":"dollars","account":true,"note":"a"}]}"#;
    let params = ["account", "note", "symbol", "date", "quantity", "currency", "price"];
    let params: Vec<String> = params.iter().map(|name| format!("transactions[1].{name}")).collect();
    assert_eq!(refused(json, body).await?, (400, params));
    for quantity in ["\"0\"", "1000000001", "\"0.12345678901\"", "1e400", "\"NaN\"", "\"1,5\"", "[1]"] {
        let body =
            format!(r#"{{"transactions":[{{"symbol":"KO","date":"2023-03-01","quantity":{quantity}}}]}}"#);
        assert_eq!(
            refused(json, &body).await?,
            (400, vec!["transactions[0].quantity".to_owned()]),
            "{quantity}"
        );
    }
    let csv = "symbol,date,quantity\nKO,2023-03-01,1\n\nKO,2023-03-01,\nKO,1.3.2023,1\n";
    let expected = ["line 4.quantity", "line 5.date"].map(str::to_owned).to_vec();
    assert_eq!(refused("text/csv", csv).await?, (400, expected));
    for body in
        ["", "{}", "[]", "{\"transactions\":[]}", "{\"transactions\":[1]}", "{\"transactions\":[{}],\"x\":1}"]
    {
        let (status, params) = refused(json, body).await?;
        assert_eq!((status, params.first().map(String::as_str)), (400, Some("transactions")), "{body}");
    }
    assert_eq!(refused("text/csv", "").await?.0, 400);
    assert_eq!(refused("text/plain", "x").await?.0, 415);
    let long = format!("symbol,date,quantity\n{}", "KO,2024-01-03,1\n".repeat(10_001));
    assert_eq!(refused("text/csv", &long).await?, (400, vec!["transactions".to_owned()]));
    assert_eq!(refused("text/csv", &" ".repeat(1024 * 1024 + 1)).await?.0, 413);
    let get = market.api.get(PATH, Some(&market.key)).await?;
    assert_eq!((get.status.as_u16(), get.header("allow")), (405, Some("POST")));
    Ok(())
}

#[tokio::test]
async fn the_history_is_limited_by_the_tier() -> Result<()> {
    let mut market = Market::start().await?;
    market.key = market.app.key("free").await?;
    market.app.sql("update accounts.tiers set depth_years = 1 where tier = 'free'", &[]).await?;
    let lines = [",KO,2023-03-01,1"];
    let api = market.app.api_serve().await?;
    market.api = api;
    let answer = market.answer("", &lines).await?;
    assert_eq!(answer["meta"]["depth"], json!({ "from": "2023-06-28", "tier": "free" }));
    assert_eq!(answer["data"][0]["ex_date"], "2023-06-15", "by payment date");
    let body = transactions(&lines).to_string();
    let reply = market.post("start_date=2023-06-27", "application/json", &body).await?;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()?["required_feature"]),
        (403, &json!("historical_depth"))
    );
    market.answer("start_date=2023-06-28", &lines).await?;
    Ok(())
}

#[tokio::test]
async fn ten_thousand_lines_are_answered() -> Result<()> {
    let market = Market::start().await?;
    let body = format!("symbol,date,quantity\n{}", "KO,2023-03-01,0.5\n".repeat(10_000));
    let reply = market.post("decimals=string&end_date=2023-04-30", "text/csv", &body).await?;
    assert_eq!(reply.json()?["data"][0]["gross"], "4600");
    let accounts: Vec<String> = (0..10_000).map(|number| format!("a{number},KO,2023-03-01,1")).collect();
    let body = format!("account,symbol,date,quantity\n{}", accounts.join("\n"));
    let reply = market.post("decimals=string", "text/csv", &body).await?;
    assert_eq!(reply.json()?["meta"]["totals"]["accounts"].as_array().map(Vec::len), Some(10_000));
    Ok(())
}
