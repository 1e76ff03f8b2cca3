//! Raw amounts and closes of a feed that adjusts its rows for a spin-off (R10, R35): from the feed's files to the
//! answers for several days.

use anyhow::{Context, Result, ensure};
use harness::{Api, TestApp};
use serde_json::{Value, json};

const TODAY: &str = "2024-05-24";
const SPLITS: &str = "Date,Stock Splits,Symbol\n2024-04-01,1196:1000,SPR\n";
const DIVIDENDS: &str = "Date,Dividends,Symbol\n2023-02-16,1.254181,SPR\n2023-05-18,1.254181,SPR\n\
    2023-08-18,1.254181,SPR\n2023-11-16,1.254181,SPR\n2024-02-15,1.262542,SPR\n2024-05-23,0.70,SPR\n";
/// The closes and volumes before 2024-04-01 are adjusted for the ratio: 106 and 105, 1,000,000 and 1,100,000 shares.
const PRICES: &str = "Date,Open,High,Low,Close,Adj Close,Volume\n\
    2024-03-27,88.628762,88.628762,88.628762,88.628762,87.9,1196000\n\
    2024-03-28,87.792642,87.792642,87.792642,87.792642,87.1,1315600\n\
    2024-04-01,88,88,88,88,87.3,900000\n2024-04-02,89,89,89,89,88.3,800000\n2024-05-22,94,94,94,94,93.3,700000\n\
    2024-05-23,93,93,93,93,93,600000\n";
const SESSIONS: &str = "date\n2024-05-23\n";

struct Served {
    api: Api,
    key: String,
}

impl Served {
    async fn data(&self, path: &str) -> Result<Value> {
        let reply = self.api.get(path, Some(&self.key)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        Ok(reply.json()?["data"].clone())
    }

    async fn column(&self, path: &str, field: &str) -> Result<Vec<String>> {
        let rows = self.data(path).await?;
        let rows = rows.as_array().context("rows")?;
        Ok(rows.iter().map(|row| row[field].to_string().replace('"', "")).collect())
    }
}

#[tokio::test]
async fn a_feed_with_a_spin_off_has_the_declared_amounts_and_traded_closes() -> Result<()> {
    let app = TestApp::start().await?;
    for (name, text) in [("dividends.csv", DIVIDENDS), ("splits.csv", SPLITS), ("SPR.csv", PRICES)] {
        app.feed(name, text).source("yahoo").today(TODAY).load().await?;
    }
    app.feed("sessions.csv", SESSIONS).source("yahoo").today(TODAY).apply().await?;
    let served = Served { api: app.api_serve().await?, key: app.key("professional").await? };

    let dividends = "/v1/stocks/SPR/dividends?sort=ex_date.asc&status=paid&decimals=string";
    let declared = ["1.5", "1.5", "1.5", "1.5", "1.51", "0.7"];
    assert_eq!(served.column(dividends, "amount").await?, declared);
    assert_eq!(served.column(dividends, "adjusted_amount").await?, declared);

    let prices = "/v1/prices/SPR?start_date=2024-03-01&decimals=string";
    let raw = format!("{prices}&adjustment=raw");
    assert_eq!(served.column(&raw, "close").await?, ["93", "94", "89", "88", "105", "105.999999"]);
    let volumes = ["600000", "700000", "800000", "900000", "1100000", "1000000"];
    assert_eq!(served.column(&raw, "volume").await?, volumes);
    // A chart needs prices that a spin-off does not interrupt. A spin-off changes no volume.
    let adjusted = ["93", "94", "89", "88", "87.792642", "88.628762"];
    assert_eq!(served.column(prices, "close").await?, adjusted);
    assert_eq!(served.column(prices, "volume").await?, volumes);

    for (as_of, trailing, total) in [
        ("2023-12-29", "6", "6"),
        ("2024-02-29", "6.01", "6"),
        ("2024-03-28", "6.01", "6"),
        ("2024-04-01", "6.01", "6"),
        ("2024-05-23", "5.21", "6"),
    ] {
        let metrics = served.data(&format!("/v1/stocks/SPR/metrics?as_of={as_of}&decimals=string")).await?;
        assert_eq!(metrics["dps_ttm"], json!(trailing), "{as_of}");
        let year = metrics["annual_totals"].as_array().into_iter().flatten().find(|row| row["year"] == 2023);
        assert_eq!(year.context("the total of 2023")?["amount"], json!(total), "{as_of}");
    }

    let explained = app.projector(&["explain", "SPR", "dps_ttm"]).await?.success()?.stdout;
    assert!(explained.contains("the feed gave 1.254181, adjusted for the splits in its list"), "{explained}");
    Ok(())
}
