//! Nothing of a request is stored or logged.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Market, transactions};
use crate::dashboard::visitor::Person;
use crate::market_pages::PUBLIC;

const MARKERS: [&str; 5] = ["zebra-account", "77.1234567", "ZQMARKER", "88.7654321", "zebra-kind"];

#[tokio::test]
async fn the_body_is_in_no_log_and_in_no_table() -> Result<()> {
    let market = Market::start_with(&[&PUBLIC[..], &[("RUST_LOG", "debug")]].concat()).await?;
    let lines = [
        "zebra-account,KO,2024-01-03,77.1234567",
        ",ZQMARKER,2024-01-03,1",
        "zebra-account,KO,2024-01-03,-99",
    ];
    let answer = market.answer("", &lines[..2]).await?;
    let mut with_received = transactions(&lines[..2]);
    with_received["received"] =
        json!([{ "account": MARKERS[0], "symbol": "KO", "date": "2024-04-01", "amount": MARKERS[3] }]);
    let compared = market.post("", "application/json", &with_received.to_string()).await?;
    ensure!(compared.text().contains(MARKERS[3]), "{}", compared.text());
    let file = "Run Date,Account,Action,Symbol,Quantity,Price,Amount\n\
        01/03/2024,zebra-account,YOU BOUGHT,KO,77.1234567,88.7654321,-1\n\
        01/03/2024,zebra-account,YOU BOUGHT,ZQMARKER,1,1,-1\n\
        04/01/2024,zebra-account,DIVIDEND RECEIVED,KO,,,88.7654321\n\
        04/01/2024,zebra-account,zebra-kind,KO,,,1\n";
    let read = market.post("", "text/csv", file).await?;
    ensure!(read.status == 200 && read.text().contains(MARKERS[0]), "{}", read.text());
    let unreadable = market.post("", "text/csv", &file.replace(",1,1,-1", ",zebra-kind,1,-1")).await?;
    let unknown = market.post("", "text/csv", &file.replace("Run Date", MARKERS[2])).await?;
    assert_eq!([unreadable.status, unknown.status].map(|status| status.as_u16()), [400; 2]);
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

    let mut person = Person::at(&market.api)?;
    let valid = "2024-01-03 KO 77.1234567 1 USD zebra-account\n2024-01-03 ZQMARKER 1";
    for text in [valid, "2024-01-03 KO zebra-account", "zebra-account,ZQMARKER\n77.1234567,1\n"] {
        for path in ["", ".csv", ".ics"] {
            let fields = [("text", text), ("tax", "*:15")];
            let page = person.post(&format!("/income/transactions{path}"), &fields).await?;
            ensure!(page.status == 200 || page.status == 422, "{path}: {} {}", page.status, page.text);
            ensure!(text != valid || page.has("zebra-account"), "{path}: {}", page.text);
        }
    }

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
