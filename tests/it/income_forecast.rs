//! Tests of the forecast of dividend payments in the next twelve months (`include_projected=true`).

use anyhow::Result;
use serde_json::{Value, json};

use crate::api_world::{World, column};

fn told(rows: &Value, day: &str) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    rows.map(|row| format!("{} {} {}", row[day].as_str().unwrap_or("-"), row["amount"], row["amount_status"]))
        .collect()
}

#[tokio::test]
async fn a_year_of_payments_is_declared_or_estimated() -> Result<()> {
    let world = World::start().await?;
    let year = "start_date=2024-06-17&end_date=2025-06-17";
    // A dividend of 1.1 is paid each quarter, 15 days after the ex-date. 28 December 2024 is a Saturday, so that
    // payment is estimated for Monday.
    let payments = [
        r#"2024-06-28 1.1 "declared""#,
        r#"2024-09-28 1.1 "declared""#,
        r#"2024-12-30 1.1 "estimated""#,
        r#"2025-03-28 1.1 "estimated""#,
    ];
    for calendar in ["calendar", "payment-dates"] {
        let rows = world.json(&format!("/v1/dividends/{calendar}?{year}&include_projected=true")).await?;
        assert_eq!(told(&rows["data"], "payment_date"), payments);
        assert_eq!(column(&rows, "price_currency"), [(); 4].map(|()| json!("USD")));
        let declared = world.json(&format!("/v1/dividends/{calendar}?{year}")).await?;
        assert_eq!(told(&declared["data"], "payment_date"), payments[..2]);
    }
    let mut ex_dates = vec![
        r#"2024-09-13 1.1 "declared""#,
        r#"2024-12-13 1.1 "estimated""#,
        r#"2025-03-13 1.1 "estimated""#,
        r#"2025-06-13 1.1 "estimated""#,
    ];
    let rows = world.json(&format!("/v1/dividends/ex-dates?{year}&include_projected=true")).await?;
    assert_eq!(told(&rows["data"], "ex_date"), ex_dates);
    ex_dates.reverse();
    for (path, pointer) in [
        ("/v1/stocks/COLA/dividends?", "/data"),
        ("/v1/dividends/history?symbols=COLA&", "/data"),
        ("/v1/bulk/dividends?symbols=COLA&", "/data/0/dividends"),
    ] {
        let all = world.json(&format!("{path}{year}&include_projected=true")).await?;
        let none = Value::Null;
        assert_eq!(told(all.pointer(pointer).unwrap_or(&none), "ex_date"), ex_dates, "{path}");
        let declared = world.json(&format!("{path}{year}")).await?;
        assert_eq!(told(declared.pointer(pointer).unwrap_or(&none), "ex_date"), ex_dates[3..], "{path}");
    }
    Ok(())
}
