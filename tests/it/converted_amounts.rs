//! Amounts in the currency that a client asks for with `currency=`: dividends, calendars, income and comparison (R42).

use anyhow::{Context, Result};
use harness::{Api, TestApp};
use serde_json::{Value, json};

use crate::undo::load;

pub(crate) const TODAY: &str = "2024-06-28";
/// A fund that pays dollars and trades in pounds, and a company that pays and trades in dollars.
pub(crate) const MARKET: [(&str, &str); 4] = [
    (
        "securities.csv",
        "symbol,name,type,currency,sector\nUSDF,Dollar fund,etf,GBP,\nKO,Coca-Cola,stock,USD,Consumer Staples\n",
    ),
    (
        "prices.csv",
        "symbol,date,close\nUSDF,2024-06-19,40\nUSDF,2024-06-27,40\nKO,2024-06-19,60\nKO,2024-06-27,63.5\n",
    ),
    (
        "dividends.csv",
        "symbol,ex_date,payment_date,amount,currency,type\nUSDF,2024-06-20,2024-07-05,0.50,USD,regular\n\
         KO,2024-06-14,2024-07-01,0.485,USD,regular\n",
    ),
    (
        "fx.csv",
        "date,base,quote,rate\n2024-06-13,GBP,USD,1.28\n2024-06-18,GBP,USD,1.25\n2024-06-27,GBP,USD,1.27\n",
    ),
];

async fn market() -> Result<(TestApp, Api, String)> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    load(&app, "market", &MARKET.map(|(name, text)| (name, text.to_owned()))).await?;
    app.catch_up().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    Ok((app, api, key))
}

async fn get(api: &Api, key: &str, path: &str) -> Result<Value> {
    api.get(path, Some(key)).await?.json()
}

#[tokio::test]
async fn a_dividend_has_the_rate_of_the_session_before_its_ex_date() -> Result<()> {
    let (_app, api, key) = market().await?;
    let path = "/v1/stocks/USDF/dividends?decimals=string&currency=";
    // The market was closed on 19 June, so the session before the ex-date is 18 June: 0.50 / 1.25 = 0.40.
    let pounds = get(&api, &key, &format!("{path}gbp")).await?;
    let expected = json!({
        "amount": "0.4", "currency": "GBP", "rate": "0.8", "rate_date": "2024-06-18", "rate_source": "test",
    });
    assert_eq!((&pounds["data"][0]["converted"], &pounds["data"][0]["amount"]), (&expected, &json!("0.5")));
    let dollars = get(&api, &key, &format!("{path}USD")).await?;
    let expected = json!({
        "amount": "0.5", "currency": "USD", "rate": "1", "rate_date": null, "rate_source": null,
    });
    assert_eq!(dollars["data"][0]["converted"], expected);
    let history =
        get(&api, &key, "/v1/dividends/history?symbols=KO,USDF&decimals=string&currency=GBP").await?;
    assert_eq!(history["data"][0]["converted"], pounds["data"][0]["converted"], "{history}");
    let krone = get(&api, &key, &format!("{path}DKK")).await?;
    assert_eq!(krone["data"][0].get("converted"), Some(&Value::Null));
    assert_eq!(krone["meta"]["warnings"][0]["code"], "unconverted", "{krone}");
    let original = get(&api, &key, "/v1/stocks/USDF/dividends").await?;
    assert_eq!(original["data"][0].get("converted"), None);

    let fields = "symbol,converted.amount,converted.rate_date";
    let csv = api.get(&format!("{path}GBP&format=csv&fields={fields}"), Some(&key)).await?;
    assert_eq!(csv.text(), "symbol,converted.amount,converted.rate_date\r\nUSDF,0.4,2024-06-18\r\n");
    for (query, param) in
        [("GBX", "currency"), ("pounds", "currency"), ("GBP&updated_since=2024-06-01", "currency")]
    {
        let refused = api.get(&format!("{path}{query}"), Some(&key)).await?;
        assert_eq!((refused.status.as_u16(), &refused.json()?["param"]), (400, &json!(param)), "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn calendars_compare_and_convert_amounts_in_one_currency() -> Result<()> {
    let (_app, api, key) = market().await?;
    let rows = async |query: &str| -> Result<Vec<(String, Value)>> {
        let path = format!(
            "/v1/dividends/ex-dates?start_date=2024-06-01&end_date=2024-06-30&decimals=string{query}"
        );
        let page = get(&api, &key, &path).await?;
        let row = |row: &Value| {
            (row["symbol"].as_str().unwrap_or_default().to_owned(), row["converted"]["amount"].clone())
        };
        Ok(page["data"].as_array().context("rows")?.iter().map(row).collect())
    };
    let row = |symbol: &str, amount: Value| (symbol.to_owned(), amount);
    // 0.485 / 1.28 and 0.5 / 1.25.
    let both = [row("KO", json!("0.378906")), row("USDF", json!("0.4"))];
    assert_eq!(rows("&currency=GBP").await?, both);
    // 0.39 pounds are 0.4953 dollars at the newest rate.
    assert_eq!(rows("&currency=GBP&min_amount=0.39").await?, both[1..]);
    assert_eq!(rows("&currency=GBP&min_amount=0.38").await?, both);
    // Without a currency, the minimum is in the reporting currency.
    assert_eq!(rows("&min_amount=0.49").await?, [row("USDF", Value::Null)]);
    Ok(())
}

#[tokio::test]
async fn income_of_several_currencies_has_one_total() -> Result<()> {
    let (app, api, key) = market().await?;
    let path = "/v1/portfolio/income?holdings=USDF:100,KO:10&decimals=string&currency=GBP";
    let income = get(&api, &key, path).await?;
    let payments: Vec<(&Value, &Value, &Value)> = income["data"]["payments"]
        .as_array()
        .context("payments")?
        .iter()
        .map(|payment| (&payment["symbol"], &payment["income"], &payment["converted"]["amount"]))
        .take(2)
        .collect();
    assert_eq!(
        payments,
        [(&json!("KO"), &json!("4.85"), &json!("3.789063")), (&json!("USDF"), &json!("50"), &json!("40"))]
    );
    let converted = &income["data"]["converted"];
    // 100 x 40 pounds, and 10 x 63.5 dollars / 1.27.
    assert_eq!(
        (&converted["total"]["currency"], &converted["total"]["value"]),
        (&json!("GBP"), &json!("4500"))
    );
    assert_eq!((&converted["unconverted"], &converted["unconverted_values"]), (&json!(0), &json!(0)));
    let july = &converted["months"][1];
    assert_eq!((&july["month"], &july["income"]), (&json!("2024-07-01"), &json!("43.789063")), "{converted}");
    // Without a rate, amounts are left out and counted.
    let krone = get(&api, &key, &path.replace("GBP", "DKK")).await?;
    let converted = &krone["data"]["converted"];
    let all = income["data"]["payments"].as_array().context("payments")?.len();
    assert_eq!((&converted["unconverted"], &converted["unconverted_values"]), (&json!(all), &json!(2)));
    assert_eq!(converted["total"]["income"], "0");
    // A holding whose dividends have no rate does not count in the yield.
    let baht = [
        ("securities.csv", "symbol,name,type,currency,sector\nBAHT,Baht payer,stock,USD,Energy\n"),
        ("prices.csv", "symbol,date,close\nBAHT,2024-06-27,10\n"),
        ("dividends.csv", "symbol,ex_date,amount,currency,type\nBAHT,2024-06-14,3,THB,regular\n"),
    ];
    load(&app, "baht", &baht.map(|(name, text)| (name, text.to_owned()))).await?;
    app.catch_up().await?;
    let total = async |holdings: &str| {
        let path = format!("/v1/portfolio/income?holdings={holdings}&decimals=string&currency=GBP");
        Ok::<_, anyhow::Error>(get(&api, &key, &path).await?["data"]["converted"]["total"].take())
    };
    let (of_one, of_both) = (total("KO:10").await?, total("KO:10,BAHT:10").await?);
    assert_eq!((&of_both["yield"], &of_both["income"]), (&of_one["yield"], &of_one["income"]));
    assert!(of_one["yield"].is_string() && of_both["value"] != of_one["value"], "{of_both}");
    assert_eq!(total("BAHT:10").await?["yield"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn a_comparison_converts_prices_and_dividends() -> Result<()> {
    let (_app, api, key) = market().await?;
    let path = "/v1/compare?symbols=USDF,KO&sections=quote&decimals=string&currency=EUR";
    let unknown = get(&api, &key, path).await?;
    assert_eq!(unknown["data"][0]["converted"]["price"], Value::Null, "{unknown}");
    let pounds = get(&api, &key, &path.replace("EUR", "GBP")).await?;
    let amounts = |item: usize| {
        ["price", "annual_dividend"].map(|field| pounds["data"][item]["converted"][field]["amount"].clone())
    };
    assert_eq!(amounts(0)[0], "40", "{pounds}");
    assert_eq!(amounts(1)[0], "50", "{pounds}");
    let csv = api.get(&format!("{}&format=csv", path.replace("EUR", "GBP")), Some(&key)).await?.text();
    assert!(
        csv.lines()
            .next()
            .is_some_and(|head| head.contains("quote.price,") && head.contains(",converted.price.amount"))
    );
    Ok(())
}
