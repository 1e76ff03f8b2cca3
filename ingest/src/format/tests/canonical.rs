use event_log::record_batch::Body;
use market::event::Action;
use proptest::prelude::*;

use super::read_helper::{bodies, options, read_text, read_with, refused};
use crate::format::ReaderOptions;

#[test]
fn prices_in_any_column_order() {
    let text =
        "close,date,symbol,volume,open\n1.10,2024-03-14,brk-b,100,\n\"2\",2024-03-15, BRK.B ,N/A,1.5\n";
    assert_eq!(
        read_text("prices.csv", text),
        [
            "price BRK.B 2024-03-14 o=- h=- l=- c=1.10 v=100 raw",
            "price BRK.B 2024-03-15 o=1.50 h=- l=- c=2.00 v=- raw",
        ]
    );
}

#[test]
fn price_rows_that_cannot_be_used_are_kept_with_their_reason() {
    let text = "symbol,date,open,high,low,close,volume\n\
        A,2024-03-16,1,1,1,1,1\n\
        A,2024-03-17,1,1,1,1,1\n\
        A,2024-03-15T09:30:00,1,1,1,1,1\n\
        A,2024-02-30,1,1,1,1,1\n\
        A,2024-03-14,1,1,1,0,1\n\
        A,2024-03-14,1,1,2,1,1\n\
        A,2024-03-14,1,1,1,,1\n\
        A,2024-03-14,1,1,1,12345678901,1\n\
        ;,2024-03-14,1,1,1,1,1\n\
        A,2024-03-14,1,1,1,1\n\
        A,2024-03-14,1,1,1,1,-5\n\
        A,2024-03-14,-1,1,1,1,5\n\
        A,2024-03-14,1,1,1,NaN,5\n";
    let reasons: Vec<String> = read_text("prices.csv", text)
        .iter()
        .map(|line| {
            line.split(':').next().unwrap_or_default().split(" o=").next().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(
        reasons,
        [
            "price A 2024-03-16",
            "reject 3 future_date",
            "reject 4 intraday_row",
            "reject 5 bad_date",
            "reject 6 non_positive_close",
            "reject 7 high_below_low",
            "reject 8 missing_field",
            "reject 9 number_too_large",
            "reject 10 bad_symbol",
            "reject 11 malformed_row",
            "reject 12 negative_volume",
            "reject 13 negative_price",
            "reject 14 bad_number",
        ]
    );
}

#[test]
fn versions_and_bases_of_prices() {
    let text = "symbol,date,close,revision,action,basis,basis_as_of\n\
        A,2024-03-13,5,,,split_adjusted,2024-03-14\n\
        A,2024-03-14,6,2,put,split_adjusted,\n\
        A,2024-03-13,,1,retract,,\n";
    assert_eq!(
        read_text("prices.csv", text),
        [
            "price A 2024-03-13 o=- h=- l=- c=5 v=- split_adjusted@2024-03-14",
            "price A 2024-03-14 o=- h=- l=- c=6 v=- split_adjusted",
            "price A 2024-03-13 o=- h=- l=- c=6 v=- raw retract",
        ]
    );
}

#[test]
fn dividends_of_every_spelling() {
    let text = "symbol,ex_date,record_date,amount,currency,type,frequency,amount_basis,basis_as_of\n\
        KO,2024-03-14,0000-00-00,0.485,,,quarterly,,\n\
        VOD.L,2024-03-14,,4.5,GBp,special,2,as_declared,\n\
        NPN,2024-03-14,,250,ZAc,,,,\n\
        TEVA,2024-03-14,,100,ILA,return_of_capital,0,,\n\
        AAPL,,2024-03-14,0.000424,usd,,,split_adjusted,2024-03-15\n\
        KO,,,0.485,,,,,\n\
        KO,2024-03-14,,0,,,,,\n\
        KO,2024-03-14,,1,,bonus,,,\n\
        KO,2024-03-14,,1,,,5,,\n";
    assert_eq!(
        read_text("dividends-2024.csv", text),
        [
            "dividend KO 2024-03-14 0.485 - regular raw",
            "dividend VOD.L 2024-03-14 0.045 GBP special raw",
            "dividend NPN 2024-03-14 2.5 ZAR regular raw",
            "dividend TEVA 2024-03-14 1 ILS return_of_capital raw",
            "dividend AAPL - 0.000424 USD regular split_adjusted@2024-03-15",
            "reject 7 no_ex_date: neither an ex-date nor a record date is given",
            "reject 8 non_positive_amount: the amount is 0, but it must be positive",
            "reject 9 bad_value: type \"bonus\" must be one of: regular, special, supplemental, irregular, return_of_capital, capital_gain, capital_gain_long, capital_gain_short, stock, spin_off, liquidation, unknown",
            "reject 10 bad_value: frequency 5 must be a usual number of payments a year: 0, 1, 2, 3, 4, 6, 12, 13, 24, 26 or 52",
        ]
    );
}

#[test]
fn a_retraction_needs_only_its_key() {
    let text = r#"{"kind":"dividend","symbol":"KO","ex_date":"2024-03-14","action":"retract"}
{"kind":"dividend","id":"d1","symbol":"KO","action":"retract","revision":3}
{"kind":"price","symbol":"KO","date":"2024-03-14","action":"retract"}
{"kind":"split","symbol":"KO","ex_date":"2024-03-14","action":"retract"}
{"kind":"security","symbol":"KO","action":"retract"}
{"kind":"holding","etf_symbol":"SPY","as_of":"2024-03-14","action":"retract"}
{"kind":"session","date":"2024-03-14","action":"retract"}
"#;
    let found = read_text("feed.ndjson", text);
    assert!(!found.iter().any(|line| line.starts_with("reject")), "{found:#?}");
    assert_eq!(found.len(), 7);
}

#[test]
fn ndjson_numbers_are_exact_whether_text_or_number() {
    let text = r#"{"kind":"dividend","symbol":"KO","ex_date":"2024-03-14","amount":0.1234567891}
{"kind":"dividend","symbol":"KO","ex_date":"2024-03-15","amount":"1e-05"}
{"kind":"price","symbol":"KO","date":"2024-03-15","close":60.12,"volume":1.5e6,"open":null}
"#;
    assert_eq!(
        read_text("feed.ndjson", text),
        [
            "price KO 2024-03-15 o=- h=- l=- c=60.12 v=1500000 raw",
            "dividend KO 2024-03-14 0.1234567891 - regular raw",
            "dividend KO 2024-03-15 0.00001 - regular raw",
        ]
    );
}

#[test]
fn ndjson_lines_that_are_no_records() {
    let text = "{\"kind\":\"dividend\"\nhello\n[1]\n{\"symbol\":\"A\"}\n{\"kind\":\"reject\"}\n\
        {\"kind\":\"session\",\"date\":\"2024-03-14\",\"colour\":\"red\"}\n{\"kind\":\"session\",\"date\":[1]}\n\n\
        {\"kind\":\"session\",\"date\":\"2024-03-18\"}\n";
    let found = read_text("feed.ndjson", text);
    let reasons: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
    assert_eq!(
        reasons,
        [
            "reject 1 malformed_row",
            "reject 2 malformed_row",
            "reject 3 malformed_row",
            "reject 4 unknown_kind",
            "reject 5 unknown_kind",
            "reject 6 unknown_field",
            "reject 7 bad_value",
            "reject 9 future_date",
        ]
    );
}

#[test]
fn securities_in_both_encodings() {
    let csv = "symbol,name,type,currency,former_symbols,indexes,employees\n\
        META,\"Meta, Inc.\",stock,,FB@2012-05-18..2022-06-08;X@..2001-01-01,sp500;nasdaq100,\"70799\"\n\
        VOD.L,Vodafone,adr,GBX,,,\n";
    let found = read_text("securities.csv", csv);
    assert_eq!(
        found[0],
        r#"{"symbol":"META","name":"Meta, Inc.","type":"stock","currency":"USD","status":"active","former_symbols":[{"symbol":"FB","from":"2012-05-18","to":"2022-06-08"},{"symbol":"X","to":"2001-01-01"}],"indexes":["sp500","nasdaq100"],"employees":70799}"#
    );
    assert!(found[1].contains(r#""currency":"GBP""#) && found[1].contains(r#""quote_unit":"GBX""#));
    let json = r#"{"kind":"security","symbol":"META","name":"Meta, Inc.","type":"stock","employees":70799,"indexes":["sp500","nasdaq100"],"former_symbols":[{"symbol":"FB","from":"2012-05-18","to":"2022-06-08"},{"symbol":"X","to":"2001-01-01"}]}"#;
    assert_eq!(read_text("feed.ndjson", json), found[..1]);
}

#[test]
fn only_web_addresses_are_websites() {
    let row = |website: &str| format!("symbol,name,type,website\nA,A Inc,stock,{website}\n");
    for website in ["https://a.example/about", "HTTP://a.example", "https://[::1]"] {
        let found = read_text("securities.csv", &row(website));
        assert!(found.len() == 1 && found[0].contains(website), "{found:?}");
    }
    for website in ["javascript:alert(1)", "javascript://a.example", "a.example", "https://", "https:// a"] {
        let found = read_text("securities.csv", &row(website));
        assert!(found.iter().any(|line| line.contains("reject 2 bad_website")), "{found:?}");
        assert!(found.iter().any(|line| line.contains("A Inc") && !line.contains("website")), "{found:?}");
    }
}

#[test]
fn holdings_of_a_fund_and_date_are_one_snapshot() {
    let text = "etf_symbol,as_of,name,weight,symbol,currency,market_value\n\
        SPY,2024-03-14,Apple,6.5,AAPL,,\n\
        IVV,2024-03-14,Apple,6.4,AAPL,,\n\
        SPY,2024-03-14,Vodafone,0.1,VOD,GBX,500\n";
    let bodies = bodies("holdings.csv", text, &options()).unwrap();
    let [Body::Holdings(rows)] = bodies.as_slice() else { panic!("one body") };
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[1].record.symbol.as_str(), rows[1].record.holdings.len(), rows[1].line), ("SPY", 2, 2));
    assert_eq!(rows[1].record.holdings[1].market_value.unwrap().to_string(), "5");
}

#[test]
fn company_figures_may_be_large() {
    let text = "symbol,as_of,market_cap,eps_ttm,reported_currency\nAAPL,2024-03-14,2700000000000,6.43,USD\nB,2024-03-14,1,643,GBX\n";
    assert_eq!(
        read_text("fundamentals.csv", text),
        [
            r#"{"symbol":"AAPL","as_of":"2024-03-14","eps_ttm":"6.43","market_cap":"2700000000000","reported_currency":"USD"}"#,
            r#"{"symbol":"B","as_of":"2024-03-14","eps_ttm":"6.43","market_cap":"0.01","reported_currency":"GBP"}"#,
        ]
    );
}

#[test]
fn a_file_that_is_called_adjusted_is_not_taken_for_raw() {
    let text = "date,symbol,open,close,low,high,volume\n2014-06-06,AAPL,92.8,92.2,92,93,87620911\n";
    assert!(refused("prices-split-adjusted.csv", text).contains("no column basis"));
    assert!(refused("dividends-adj.csv", "symbol,ex_date,amount\n").contains("no column amount_basis"));
    let with_basis = "symbol,date,close,basis\nAAPL,2014-06-06,92.2,split_adjusted\n";
    assert_eq!(
        read_text("prices-adjusted.csv", with_basis),
        ["price AAPL 2014-06-06 o=- h=- l=- c=92.2 v=- split_adjusted"]
    );
}

#[test]
fn a_day_may_be_written_as_its_beginning() {
    let text = "date,symbol,close\n2016-01-05 00:00:00,WLTW,125.84\n2016-01-05 09:30:00,WLTW,125.9\n";
    let found = read_text("prices.csv", text);
    assert_eq!(found[0], "price WLTW 2016-01-05 o=- h=- l=- c=125.84 v=- raw");
    assert!(found[1].starts_with("reject 3 intraday_row"), "{found:?}");
    let paid = "symbol,ex_date,amount\nKO,2024-03-14T00:00:00Z,0.485\n";
    assert_eq!(read_text("dividends.csv", paid), ["dividend KO 2024-03-14 0.485 - regular raw"]);
}

#[test]
fn what_was_put_together_or_saved_by_a_spreadsheet_is_no_row() {
    let text = "symbol,date,close\nKO,2024-03-13,60.1\nsymbol,date,close\r\nPEP,2024-03-13,165\n,,\n , ,\n";
    let found = read_text("prices.csv", text);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn headers_that_cannot_be_read_refuse_the_file() {
    assert!(
        refused("prices.csv", "symbol,date,price\nA,2024-03-14,1\n")
            .contains("unknown columns for a price: price")
    );
    assert!(
        refused("prices.csv", "symbol,date,open\n").contains("lacks the required columns of a price: close")
    );
    assert!(refused("prices.csv", "symbol,date,close,close\n").contains("twice"));
    assert!(refused("quotes.csv", "symbol,date,close\n").contains("name it by its kind"));
    assert!(refused("quotes.csv", "symbol,date,dividend\n").contains("ingest map FILE"));
    assert!(refused("quotes.csv", "a;b;c\n").contains("its columns are: a, b, c"));
    assert!(refused("quotes.csv", "").contains("empty"));
    let lenient = ReaderOptions { ignore_unknown: true, ..options() };
    assert_eq!(read_with("prices.csv", "symbol,date,close,colour\nA,2024-03-14,1,red\n", &lenient).len(), 1);
}

#[test]
fn batches_carry_versions() {
    let text = "symbol,ex_date,amount,id,revision,observed_at,security_ref\nKO,2024-03-14,1,d1,2,2024-03-14T10:00:00Z,BBG1\n";
    let bodies = bodies("dividends.csv", text, &options()).unwrap();
    let [Body::Dividends(rows)] = bodies.as_slice() else { panic!("one body") };
    let row = &rows[0];
    assert_eq!((row.line, row.id.as_deref(), row.revision, row.action), (2, Some("d1"), 2, Action::Put));
    assert_eq!(
        (row.security_ref.as_deref(), row.observed_at.to_rfc3339().as_str()),
        (Some("BBG1"), "2024-03-14T10:00:00+00:00")
    );
}

proptest! {
    #[test]
    fn any_price_written_is_read_back(cents in 1i64..1_000_000_000, places in 0u32..=8, volume in 0i64..i64::from(u32::MAX), day in 1u32..=14) {
        let close = rust_decimal::Decimal::new(cents, places);
        let text = format!("date,symbol,close,volume\n2024-03-{day:02},a.b,{close},{volume}\n");
        let found = read_text("prices.csv", &text);
        let read: rust_decimal::Decimal = found[0].split("c=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        prop_assert_eq!(read, close);
        let tail = format!("v={volume} raw");
        prop_assert!(found[0].ends_with(&tail));
    }

    #[test]
    fn any_text_is_rows_rejects_or_a_refusal(text in "[-A-Z0-9,\\.\"\\n/ {}:]{0,120}") {
        for name in ["prices.csv", "dividends.csv", "feed.ndjson"] {
            let header = if name == "prices.csv" { "symbol,date,close\n" } else if name == "dividends.csv" { "symbol,ex_date,amount\n" } else { "" };
            let _ = bodies(name, &format!("{header}{text}"), &options());
        }
    }
}

const PRICE: [&str; 1] = ["price KO 2024-03-14 o=- h=- l=- c=59.1 v=- raw"];

#[test]
fn what_spreadsheets_and_tools_put_around_a_table_is_no_part_of_it() {
    for text in [
        "# exported by a tool, today\n# twice\nsymbol,date,close\nKO,2024-03-14,59.1\n",
        "sep=;\nsymbol;date;close\nKO;2024-03-14;59.1\n",
        "symbol,date,close,\nKO,2024-03-14,59.1,\n",
        "symbol,date,close\nKO,2024-03-14,59.1,,\n",
        "\u{feff}symbol , date,close\r\n\r\nKO, 2024-03-14 ,59.1\r\n",
    ] {
        assert_eq!(read_text("prices.csv", text), PRICE, "{text}");
    }
    let more = read_text("prices.csv", "symbol,date,close\nKO,2024-03-14,59.1,7\n# KO\n");
    assert!(more.len() == 2 && more.iter().all(|row| row.contains("malformed_row")), "{more:?}");
    assert!(refused("prices.csv", "symbol,date,close\rKO,2024-03-14,59.1\r").contains("CR"));
    assert_eq!(refused("kurse.csv", " \n"), "is empty: a header row is needed");
}

#[test]
fn records_are_of_the_file_s_kind_where_they_name_none() {
    let record = r#"{"symbol":"KO","date":"2024-03-14","close":"59.1"}"#;
    for (name, text) in [
        ("prices.ndjson", format!("{record}\n")),
        ("prices.json", format!("[{record}]")),
        ("prices-2024.json", format!("{{\"data\":[{record}]}}")),
        ("feed.json", format!("[{}]", record.replace('{', "{\"kind\":\"price\","))),
    ] {
        assert_eq!(read_text(name, &text), PRICE, "{name}: {text}");
    }
    assert!(refused("feed.json", record).contains("has no format that ingest loads"));
    let other = read_text("prices.ndjson", &format!("{record}\n{{\"kind\":\"split\"}}\n"));
    assert!(other[1].contains("reject 2"), "{other:?}");
}

#[test]
fn a_layout_that_a_shipped_map_reads_is_named() {
    let stooq =
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>\nKO.US,D,20240314,0,1,1,1,1,1\n";
    assert!(refused("ko.us.txt", stooq).contains("add --map stooq"));
    let other = "ticker,date,open,high,low,close,volume\nKO,2024-03-14,1,1,1,1,1\n";
    assert!(!refused("all.csv", other).contains("--map stooq"));
}
