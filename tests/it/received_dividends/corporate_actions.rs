//! Corporate actions: spin-offs and mergers of securities that an owner has.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Market, TODAY};

#[tokio::test]
async fn a_spin_off_is_a_warning() -> Result<()> {
    let market = Market::start().await?;
    let answer = market.answer("", &[",PAR,2024-01-03,10"]).await?;
    let warning =
        answer["meta"]["warnings"].as_array().into_iter().flatten().find(|one| one["code"] == "spin_off");
    let message =
        warning.and_then(|warning| warning["message"].as_str()).with_context(|| answer.to_string())?;
    assert!(message.contains("PAR") && message.contains("2024-02-01"), "{message}");
    let later = market.answer("", &[",PAR,2024-02-01,10"]).await?;
    assert_eq!(later["meta"]["warnings"], json!([]));
    Ok(())
}

#[tokio::test]
async fn shares_of_a_merged_company_become_shares_of_its_successor() -> Result<()> {
    let market = Market::start().await?;
    let merged = |symbol: &str, successor: &str, more: &str| {
        format!(
            r#"{{"kind":"security","symbol":"{symbol}","name":"{symbol}","type":"stock","currency":"USD","status":"delisted","delisted_on":"2023-06-30","successor":"{successor}"{more}}}"#
        )
    };
    // FIRST became MIDDLE at 0.5. MIDDLE became KO at 4 one session later. CASH has no ratio.
    let rows = [
        merged("FIRST", "MIDDLE", r#","merger_ratio":"0.5""#),
        merged("MIDDLE", "KO", r#","merger_ratio":"4""#).replace("06-30", "07-03"),
        merged("CASH", "KO", ""),
        r#"{"kind":"dividend","symbol":"FIRST","ex_date":"2023-06-20","payment_date":"2023-07-10","amount":"0.10"}"#
            .to_owned(),
    ];
    market.app.feed("merged.ndjson", rows.join("\n")).today(TODAY).load().await?;
    market.app.catch_up().await?;
    // 30 shares of FIRST are 60 of KO before the split of August, and 120 after it.
    let lines =
        ["ira,FIRST,2023-03-01,40,10,USD", "ira,FIRST,2023-05-02,-10,12,USD", "ira,KO,2023-12-20,1,60,USD"];
    let expected = [
        "2023-06-20 30 3",
        "2023-09-14 120 55.2",
        "2023-12-14 120 55.2",
        "2024-03-14 121 58.685",
        "2024-06-14 121 58.685",
    ];
    assert_eq!(market.payments("", &lines).await?, expected);
    let today = market.payments("quantity_basis=today", &lines).await?;
    assert_eq!(today[1], "2023-09-14 120 55.2");
    // 30 shares cost 10 each, and one cost 60. Three payments until 28 June: 169.085 of 360.
    let answer = market.answer("end_date=2024-06-28", &lines).await?;
    let yields = |symbol: &str| {
        let mut symbols = answer["meta"]["totals"]["symbols"].as_array().into_iter().flatten();
        symbols.find(|row| row["symbol"] == symbol).map(|row| row["yield_on_cost"].clone())
    };
    assert_eq!(yields("KO"), Some(json!("46.9681")));
    assert_eq!(yields("FIRST"), Some(Value::Null), "no share remains");
    // The sale after the merger needs no purchase. Shares that were sold or booked out are not exchanged.
    market.answer("", &["ira,FIRST,2023-03-01,40", "ira,KO,2023-07-10,-80"]).await?;
    let booked = ["ira,FIRST,2023-03-01,40", "ira,FIRST,2023-07-05,-40", "ira,KO,2023-07-05,80"];
    assert_eq!(
        market.payments("end_date=2023-12-31", &booked).await?,
        ["2023-06-20 40 4", "2023-09-14 160 73.6"]
    );
    let answer = market.answer("", &["ira,CASH,2023-03-01,40"]).await?;
    assert_eq!(answer["meta"]["warnings"][0]["code"], "merger", "{answer}");
    Ok(())
}
