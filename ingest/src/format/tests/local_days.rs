use super::read_helper::{bodies, options, read_text, refused};

#[test]
fn a_column_of_symbols_is_never_one_symbol() {
    let rows = "open,high,low,close,volume,adj_high,adj_low,adj_close,adj_open,adj_volume,symbol,exchange,date\n\
        10,11,9,10.5,1000,11,9,10.5,10,1000,AAX,XNAS,2024-11-21T00:00:00+0000\n\
        100,110,90,105,1000,110,90,105,100,1000,BBX,XNAS,2024-11-21T00:00:00+0000\n";
    for name in ["ms.csv", "AAX.csv", "prices-of-all.csv"] {
        let reason = refused(name, rows);
        assert!(reason.contains("column \"symbol\"") && reason.contains("ingest map"), "{reason}");
        assert!(!reason.contains("--symbol"), "{reason}");
    }
    let named = super::ReaderOptions { symbol: market::symbol::Symbol::parse("KO").ok(), ..options() };
    assert!(bodies("x.csv", rows, &named).is_err());
    let yahoo = "Date,Open,High,Low,Close,Adj Close,Volume,Name\n2024-01-02,1,1,1,1,1,1,AAL\n";
    assert!(refused("SP.csv", yahoo).contains("\"Name\""));
    let json = r#"[{"date":"2024-01-02","close":1,"adjOpen":1,"symbol":"KO"},{"date":"2024-01-02","close":2,"adjOpen":1,"symbol":"PEP"}]"#;
    assert!(refused("KO.json", json).contains("column \"symbol\""));
}

#[test]
fn many_rows_a_day_are_not_one_symbol() {
    let header = "Date,Open,High,Low,Close,Adj Close,Volume,Firm no.\n";
    let rows: String = (1..=5).map(|firm| format!("2024-01-02,1,1,1,1,1,1,{firm}\n")).collect();
    assert!(refused("SP.csv", &format!("{header}{rows}")).contains("5 rows on 1 day"));
}

const YAHOO: &str = "Date,Open,High,Low,Close,Adj Close,Volume\n";

fn closes(name: &str, stamps: &[&str]) -> Vec<String> {
    let rows: String = stamps.iter().map(|stamp| format!("{stamp},1,1,1,1,1,1\n")).collect();
    let found = read_text(name, &format!("{YAHOO}{rows}"));
    let mut days: Vec<String> =
        found.iter().map(|row| row.split(' ').nth(2).unwrap_or_default().to_owned()).collect();
    days.sort();
    days
}

#[test]
fn utc_midnights_are_the_exchange_s_days() {
    let new_york = ["2024-01-02 05:00:00+00:00", "2023-07-03 04:00:00+00:00"];
    assert_eq!(closes("KO.csv", &new_york), ["2023-07-03", "2024-01-02"]);
    let berlin = ["2021-06-30 22:00:00+00:00", "2021-12-29 23:00:00+00:00"];
    assert_eq!(closes("SAP.csv", &berlin), ["2021-07-01", "2021-12-30"]);
    assert_eq!(closes("X.csv", &["2023-11-21T00:00:00+0000"]), ["2023-11-21"]);
    let paid = "Date,Dividends\n2021-06-30 22:00:00+00:00,0.90\n2021-12-29 23:00:00+00:00,0.90\n";
    let found = read_text("SAP.csv", paid);
    assert!(
        found[0].starts_with("dividend SAP 2021-07-01 ") && found[1].contains(" 2021-12-30 "),
        "{found:?}"
    );
    let canonical = "symbol,ex_date,payment_date,amount\nKO,2023-07-03T04:00:00Z,2023-12-01T05:00:00Z,0.5\n";
    assert!(read_text("dividends.csv", canonical)[0].starts_with("dividend KO 2023-07-03 "));
    let json = r#"{"kind":"price","symbol":"KO","date":"2024-01-02T05:00:00.000Z","close":60}"#;
    assert!(read_text("x.ndjson", &format!("{json}\n"))[0].starts_with("price KO 2024-01-02 "));
}

#[test]
fn an_uncertain_midnight_is_refused_and_a_time_is_rejected() {
    let one = format!("{YAHOO}2021-06-30 22:00:00+00:00,1,1,1,1,1,1\n");
    let reason = refused("SAP.csv", &one);
    assert!(reason.contains("2021-06-30 22:00:00+00:00") && reason.contains("Europe/Berlin"), "{reason}");
    assert!(refused("SAP.csv", "Date,Dividends\n2021-06-30 22:00:00+00:00,0.90\n").contains("dates.zone"));
    let hours = format!("{YAHOO}2024-01-02 05:00:00Z,1,1,1,1,1,1\n2024-01-02 06:00:00Z,1,1,1,1,1,1\n");
    assert!(read_text("KO.csv", &hours).iter().all(|row| row.contains("intraday_row")));
    // An observation time is not the day of a row.
    let observed = "symbol,date,close,observed_at\nKO,2024-01-02,60,2024-01-02T21:00:00Z\n";
    assert_eq!(read_text("prices.csv", observed).len(), 1);
}
