//! Nothing of a request is stored or logged.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Market, transactions};

const MARKERS: [&str; 3] = ["zebra-account", "77.1234567", "ZQMARKER"];

#[tokio::test]
async fn the_body_is_in_no_log_and_in_no_table() -> Result<()> {
    let market = Market::start_with(&[("RUST_LOG", "debug")]).await?;
    let lines = [
        "zebra-account,KO,2024-01-03,77.1234567",
        ",ZQMARKER,2024-01-03,1",
        "zebra-account,KO,2024-01-03,-99",
    ];
    let answer = market.answer("", &lines[..2]).await?;
    assert_eq!(
        (&answer["data"][0]["account"], &answer["meta"]["missing"]),
        (&json!(MARKERS[0]), &json!([MARKERS[2]]))
    );
    let mut bad = transactions(&lines);
    let oversold = market.post("", "application/json", &bad.to_string()).await?;
    bad["transactions"][0]["date"] = json!("zebra-account");
    let invalid = market.post("format=csv", "application/json", &bad.to_string()).await?;
    let text = bad.to_string();
    let cut = market.post("", "application/json", &text[..text.len() - 2]).await?;
    assert_eq!([oversold.status, invalid.status, cut.status].map(|status| status.as_u16()), [400; 3]);

    let log = market.api.process.log();
    ensure!(log.contains("answered"), "no debug log: {log}");
    for marker in MARKERS {
        ensure!(!log.contains(marker), "{marker} in {log}");
    }
    let tables = "select format('%I.%I', table_schema, table_name) as name from information_schema.tables
        where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')";
    let tables = market.app.sql(tables, &[]).await?;
    ensure!(tables.len() > 30, "{} tables", tables.len());
    for table in tables {
        let name: String = table.get("name");
        // The text of a binary value is hexadecimal.
        for text in MARKERS.iter().flat_map(|marker| [(*marker).to_owned(), hexadecimal(marker)]) {
            let rows =
                market.app.sql(&format!("select from {name} t where t::text like '%{text}%'"), &[]).await?;
            ensure!(rows.is_empty(), "{text} in {name}");
        }
    }
    Ok(())
}

fn hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
