//! Comparison of received dividends with expected payments.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::{Market, text, transactions};

/// Symbol, date, result, reason and figures of each entry; `None` without a reconciliation.
pub(super) fn summary(answer: &Value) -> Option<Vec<String>> {
    let line = |entry: &Value| {
        let day = ["payment_date", "received_date"].map(|name| text(entry, name));
        let mut words =
            vec![text(entry, "symbol"), day.into_iter().find(|day| !day.is_empty()).unwrap_or_default()];
        words.extend(["result", "reason"].map(|name| text(entry, name)));
        for (name, word) in [("exchange_rate", ""), ("tax_rate", "tax"), ("quantity", "shares")] {
            words.extend(
                (!entry[name].is_null()).then(|| format!("{word} {}", text(entry, name)).trim().to_owned()),
            );
        }
        let days = entry["days"].as_i64().filter(|days| *days != 0);
        words.extend(days.map(|days| format!("days {days}")));
        words.retain(|word| !word.is_empty());
        words.join(" ")
    };
    Some(answer["meta"]["reconciliation"].as_array()?.iter().map(line).collect())
}

/// Body with transactions as `account,symbol,date,quantity`, and received rows as
/// `account,symbol,date,amount,currency`.
fn body(lines: &[&str], received: &[&str]) -> Value {
    let names = ["account", "symbol", "date", "amount", "currency"];
    let object = |line: &&str| -> Value {
        let cells = names.iter().zip(line.split(',')).filter(|(_, cell)| !cell.is_empty());
        cells.map(|(name, cell)| ((*name).to_owned(), json!(cell))).collect::<Map<_, _>>().into()
    };
    let mut body = transactions(lines);
    body["received"] = received.iter().map(object).collect();
    body
}

impl Market {
    async fn reconciled(&self, query: &str, lines: &[&str], received: &[&str]) -> Result<Value> {
        let body = body(lines, received).to_string();
        let reply = self.post(&format!("decimals=string&{query}"), "application/json", &body).await?;
        anyhow::ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
        reply.json()
    }

    /// Entry for a received row of the payment of 2024-01-02: 100 shares at 0.46 dollars.
    async fn entry(&self, query: &str, received: &str) -> Result<String> {
        let answer = self.reconciled(query, &[",KO,2023-11-01,100"], &[received]).await?;
        Ok(summary(&answer).context("a reconciliation")?.join("; "))
    }
}

#[tokio::test]
async fn each_difference_has_its_reason() -> Result<()> {
    let market = Market::start().await?;
    for (query, received, expected) in [
        ("", ",KO,2024-01-02,46", "matched"),
        ("", ",OLDKO,2024-01-02,46.00,USD", "matched"),
        // Less than a cent.
        ("", ",KO,2024-01-02,45.995", "matched"),
        ("", ",KO,2024-01-12,46", "different date days 10"),
        ("", ",KO,2023-12-29,46", "different date days -4"),
        // 46 less 15 % is 39.10; less 12.5 % is 40.25; less 33 % is 30.82.
        ("", ",KO,2024-01-02,39.1", "different tax_rate tax 15"),
        ("", ",KO,2024-01-04,39.1", "different tax_rate tax 15 days 2"),
        ("", ",KO,2024-01-02,40.25", "different tax_rate tax 12.5"),
        ("", ",KO,2024-01-02,30.82", "different tax_rate tax 33"),
        // 26.375 % of 46 is 12.13. Only the request has this rate.
        ("tax=US:26.375", ",KO,2024-01-02,33.87", "different tax_rate tax 26.375"),
        ("", ",KO,2024-01-02,33.87", "different"),
        // 99 and 120 shares.
        ("", ",KO,2024-01-02,45.54", "different quantity shares 99"),
        ("", ",KO,2024-01-02,55.2", "different quantity shares 120"),
        ("", ",KO,2024-01-02,55.3", "different"),
        // The rate of the day is 1 / 1.10. 46 x 0.92 = 42.32; less 15 %: 35.97. 44 is 5 % more than 46 / 1.10.
        ("", ",KO,2024-01-02,42.32,EUR", "different exchange_rate 0.92"),
        ("", ",KO,2024-01-03,41.82,EUR", "different exchange_rate 0.90913 days 1"),
        ("", ",KO,2024-01-02,35.97,EUR", "different exchange_rate 0.919949 tax 15"),
        ("tax=*:26.375", ",KO,2024-01-02,30.79,EUR", "different exchange_rate 0.909131 tax 26.375"),
        ("", ",KO,2024-01-02,44,EUR", "different"),
        ("", ",KO,2024-01-02,40,CHF", "different"),
        // 3536 pence are pounds, without a rate on this day.
        ("", ",KO,2024-01-02,3536,GBX", "different"),
    ] {
        assert_eq!(
            market.entry(query, received).await?,
            format!("KO 2024-01-02 {expected}"),
            "{query} {received}"
        );
    }
    // More than ten days are another payment, which was not expected. No row covers the expected payment.
    assert_eq!(market.entry("", ",KO,2024-01-13,46").await?, "KO 2024-01-13 extra");
    // Without the share of yen, 1 yen is the minor unit: 10 x 100 less 15 % is 850.
    let answer = market.reconciled("", &[",NIP,2024-03-01,100"], &[",NIP,2024-06-20,850"]).await?;
    assert_eq!(summary(&answer), Some(vec!["NIP 2024-06-20 different tax_rate tax 15".to_owned()]));
    // An amount of 0.23 less 15 % is 0.20, which also is 0.23 less 13 %.
    let answer = market.reconciled("", &[",KO,2023-11-01,0.5"], &[",KO,2024-01-02,0.2"]).await?;
    assert_eq!(summary(&answer), Some(vec!["KO 2024-01-02 different tax_rate tax 15".to_owned()]));
    Ok(())
}

#[tokio::test]
async fn payments_between_the_received_rows_of_an_account_are_missing() -> Result<()> {
    let market = Market::start().await?;
    let lines = ["a,KO,2023-03-01,10", "b,KO,2023-03-01,10", "a,NIP,2024-03-01,5"];
    let received =
        ["a,KO,2023-07-03,9.20", "a,KO,2024-04-01,9.70", "a,GONE,2023-08-01,1", "c,KO,2023-07-03,9.20,USD"];
    let answer = market.reconciled("", &lines, &received).await?;
    // The split of August doubles the shares. Account b has no rows, and NIP paid after the last row.
    let expected = [
        "KO 2023-07-03 matched",
        "KO 2023-07-03 extra",
        "GONE 2023-08-01 extra",
        "KO 2023-10-02 missing",
        "KO 2024-01-02 missing",
        "KO 2024-04-01 matched",
    ];
    assert_eq!(summary(&answer), Some(expected.map(str::to_owned).to_vec()));
    let entries = &answer["meta"]["reconciliation"];
    let id = answer["data"].as_array().context("rows")?.iter().find(|row| row["ex_date"] == "2023-06-15");
    let matched = json!({
        "account": "a", "symbol": "KO", "result": "matched", "reason": null,
        "ids": [id.context("a payment")?["id"]], "payment_date": "2023-07-03", "expected": "9.2",
        "expected_currency": "USD", "received_date": "2023-07-03", "received": "9.2", "received_currency": "USD",
        "place": "received[0]", "days": 0, "tax_rate": null, "exchange_rate": null, "quantity": null,
    });
    assert_eq!(entries[0], matched);
    let (extra, missing) = (&entries[1], &entries[3]);
    assert_eq!(
        (&extra["account"], &extra["place"], &extra["ids"]),
        (&json!("c"), &json!("received[3]"), &json!([]))
    );
    assert_eq!((&extra["received_currency"], &extra["expected"]), (&json!("USD"), &Value::Null));
    assert_eq!(
        (&missing["expected"], &missing["received"], &missing["days"]),
        (&json!("9.2"), &Value::Null, &Value::Null)
    );
    assert_eq!(answer["meta"]["missing"], json!(["GONE"]));
    // Without received rows, there is no reconciliation.
    assert!(market.answer("", &lines).await?["meta"].get("reconciliation").is_none());
    Ok(())
}

#[tokio::test]
async fn rows_of_one_day_are_added_up_and_the_nearest_day_counts() -> Result<()> {
    let market = Market::start().await?;
    let lines = [",KO,2023-03-01,100"];
    let received = [",KO,2023-07-01,50", ",KO,2023-07-01,42", ",KO,2023-07-03,92", ",KO,2023-10-02,0"];
    let answer = market.reconciled("", &lines, &received).await?;
    let expected = ["KO 2023-07-01 extra", "KO 2023-07-03 matched", "KO 2023-10-02 different"];
    assert_eq!(summary(&answer), Some(expected.map(str::to_owned).to_vec()));
    let added = &answer["meta"]["reconciliation"][0];
    assert_eq!((&added["received"], &added["place"]), (&json!("92"), &json!("received[0]")));
    // A payment that is only declared is compared, but it is not missing.
    let received = [",KO,2023-07-03,92", ",KO,2024-07-02,97"];
    let answer = market.reconciled("", &lines, &received).await?;
    let entries = summary(&answer).context("a reconciliation")?;
    assert_eq!(entries.last().map(String::as_str), Some("KO 2024-07-01 different date days 1"));
    let answer = market.reconciled("", &lines, &[",KO,2023-07-03,92", ",KO,2024-07-20,5"]).await?;
    let entries = summary(&answer).context("a reconciliation")?;
    assert_eq!(entries[3..], ["KO 2024-04-01 missing", "KO 2024-07-20 extra"]);
    Ok(())
}

#[tokio::test]
async fn rows_outside_of_the_requested_days_are_counted() -> Result<()> {
    let market = Market::start().await?;
    let received = [",KO,2023-04-03,92", ",KO,2023-07-03,92", ",KO,2024-04-01,97"];
    let query = "start_date=2023-07-01&end_date=2024-03-31";
    let answer = market.reconciled(query, &[",KO,2023-03-01,100"], &received).await?;
    assert_eq!(summary(&answer), Some(vec!["KO 2023-07-03 matched".to_owned()]));
    let warning = &answer["meta"]["warnings"][0];
    assert_eq!(warning["code"], "outside_range");
    assert!(
        warning["message"].as_str().is_some_and(|message| message.ends_with("not compared: 2")),
        "{warning}"
    );
    // Received rows alone are compared with nothing.
    let answer = market.reconciled("", &[], &received[..1]).await?;
    assert_eq!(
        (&answer["data"], summary(&answer)),
        (&json!([]), Some(vec!["KO 2023-04-03 extra".to_owned()]))
    );
    Ok(())
}

#[tokio::test]
async fn received_rows_are_read_from_csv_too() -> Result<()> {
    let market = Market::start().await?;
    let json = market.reconciled("", &["ira,KO,2023-03-01,100"], &["ira,KO,2023-07-03,78.2,USD"]).await?;
    let csv = "account,symbol,date,quantity,amount,currency\r\nira,KO,2023-03-01,100,,\r\nira,KO,2023-07-03,,78.2,USD\r\n";
    let mut answer = market.post("decimals=string", "text/csv", csv).await?.json()?;
    assert_eq!(summary(&answer), Some(vec!["KO 2023-07-03 different tax_rate tax 15".to_owned()]));
    let place = answer["meta"]["reconciliation"][0]["place"].take();
    assert_eq!(place, "line 3");
    answer["meta"]["reconciliation"][0]["place"] = json!("received[0]");
    assert_eq!(answer, json);
    // A CSV response has the payments only.
    let sheet = market.post("format=csv&fields=symbol,gross&end_date=2023-05-01", "text/csv", csv).await?;
    assert_eq!(sheet.text(), "symbol,gross\r\nKO,92\r\n");
    let both = "symbol,date,quantity,amount\nKO,2023-03-01,1,1\nKO,2023-03-01,,\nKO,2023-07-03,,x\n";
    let error = market.post("", "text/csv", both).await?.json()?;
    let params: Vec<String> =
        error["errors"].as_array().context("errors")?.iter().map(|one| text(one, "param")).collect();
    assert_eq!(params, ["line 2.amount", "line 3.quantity", "line 4.amount"]);
    assert_eq!(
        market.reconciled("", &[",KO,2023-11-01,1"], &[]).await?["meta"]["reconciliation"],
        Value::Null
    );
    let wrong = json!({ "transactions": [], "received": [{ "symbol": "KO", "date": "2023-07-03", "quantity": "1" }] });
    let error = market.post("", "application/json", &wrong.to_string()).await?.json()?;
    let params: Vec<String> =
        error["errors"].as_array().context("errors")?.iter().map(|one| text(one, "param")).collect();
    assert_eq!(params, ["received[0].quantity", "received[0].amount"]);
    Ok(())
}
