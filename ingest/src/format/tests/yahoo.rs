use event_log::record_batch::Body;

use super::read_helper::{bodies, options, read_text, refused};

#[test]
fn the_newer_layout_is_split_adjusted_to_its_newest_date() {
    let text = "Datetime,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits,Repaired?\n\
        2022-01-03 00:00:00+08:00,4.45,4.45,4.4,4.42,3.5,42688622.0,0.0,0.0,True\n\
        2022-01-04 00:00:00+08:00,4.43,4.45,4.39,4.44,3.5,1.0,0.25,2.0,True\n";
    assert_eq!(
        read_text("1398-HK-1d-x.csv", text),
        [
            "price 1398.HK 2022-01-03 o=4.45 h=4.45 l=4.40 c=4.42 v=42688622 split_adjusted@2022-01-04",
            "price 1398.HK 2022-01-04 o=4.43 h=4.45 l=4.39 c=4.44 v=1 split_adjusted@2022-01-04",
            "dividend 1398.HK 2022-01-04 0.25 - regular split_adjusted@2022-01-04",
            "split 1398.HK 2022-01-04 1:2",
        ]
    );
}

#[test]
fn capital_gains_are_a_part_of_dividends_unless_they_are_more() {
    let row = |dividends: &str, gains: &str| {
        let text = format!(
            "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits,Capital Gains\n\
            2023-12-18,16,16,16,16,16,0,{dividends},0,{gains}\n"
        );
        read_text("FUND.csv", &text).split_off(1)
    };
    let paid = |amount: &str, kind: &str| {
        format!("dividend FUND 2023-12-18 {amount} - {kind} split_adjusted@2023-12-18")
    };
    assert_eq!(row("0.837", "0.417"), [paid("0.42", "regular"), paid("0.417", "capital_gain")]);
    assert_eq!(row("0.417", "0.417"), [paid("0.417", "capital_gain")]);
    assert_eq!(row("1.437", "6.42"), [paid("1.437", "regular"), paid("6.42", "capital_gain")]);
}

#[test]
fn a_table_names_whose_its_rows_are() {
    let text = "Date,Symbol,Adj Close,Close,High,Low,Open,Volume\n\
        2024-03-13,KO,58,60.1,60.5,59.9,60,1000\n2024-03-13,brk-b,400,400,401,399,400,5\n2024-03-14,,1,1,1,1,1,1\n";
    assert_eq!(
        read_text("sp500_stocks.csv", text),
        [
            "price BRK.B 2024-03-13 o=400 h=401 l=399 c=400 v=5 split_adjusted",
            "price KO 2024-03-13 o=60.0 h=60.5 l=59.9 c=60.1 v=1000 split_adjusted",
            "reject 4 missing_field: Ticker is required and empty: fill it in",
        ]
    );
    let adjusted = "Date,Open,High,Low,Close,Volume,Ticker,Dividends,Stock Splits\n";
    assert!(refused("World.csv", adjusted).contains("auto_adjust"));
    let wide = "Price,Adj Close,Close\nTicker,TSLA,TSLA\nDate,,\n2024-01-02,248.4,248.4\n";
    assert!(refused("TSLA.csv", wide).contains("add --map yfinance-wide"));
    assert!(refused("TSLA.csv", &wide.replace("Adj Close", "Open")).contains("download it again unadjusted"));
    assert!(refused("w.csv", ",Adj Close,Close\n,TSLA,TSLA\nDate,,\n").contains("--map yfinance-wide"));
    // Other vendors' columns of this name may be raw.
    let others = "ticker,date,open,high,low,close,volume,closeadj,closeunadj\n";
    assert!(refused("SEP.csv", others).contains("two closes"));
}

#[test]
fn events_alone_are_read_too() {
    let actions = "Date,Dividends,Stock Splits\n2012-08-13 00:00:00-04:00,0.0,2.0\n2012-09-12 00:00:00-04:00,0.255,0.0\n";
    let own = ["dividend KO 2012-09-12 0.255 - regular split_adjusted", "split KO 2012-08-13 1:2"]
        .map(str::to_owned);
    assert_eq!(read_text("KO.csv", actions), own);
    let dividends = "Date,Dividends,Symbol\n2014-08-07,0.117500,AAPL\n2014-04-02,0.000000,ABCB\n";
    assert_eq!(
        read_text("dividends.csv", dividends),
        ["dividend AAPL 2014-08-07 0.1175 - regular split_adjusted"]
    );
    let splits = "Date,Stock Splits,Symbol\n2016-11-01,1000:801,AA\n2020-08-31,4:1,AAPL\n";
    assert_eq!(
        read_text("splits.csv", splits),
        ["split AA 2016-11-01 801:1000", "split AAPL 2020-08-31 1:4"]
    );
}

#[test]
fn the_older_layout_is_raw() {
    let text =
        "Date,Open,High,Low,Close,Volume,Adj Close\n2000-03-01,118.56,132.06,118.5,130.31,38478000,31.68\n";
    assert_eq!(
        read_text("AAPL.csv", text),
        ["price AAPL 2000-03-01 o=118.56 h=132.06 l=118.50 c=130.31 v=38478000 raw"]
    );
}

#[test]
fn intraday_rows_are_rejected() {
    let text =
        "Datetime,Open,High,Low,Close,Adj Close,Volume\n2024-10-21 10:00:00+01:00,69,72,67,72,72,3061\n";
    let found = read_text("ASAI.csv", text);
    assert!(found[0].starts_with("reject 2 intraday_row"), "{found:?}");
}

#[test]
fn weekly_and_nameless_files_are_refused() {
    let header = "Date,Open,High,Low,Close,Adj Close,Volume\n";
    let weeks: String = (1..=4).map(|week| format!("2024-01-{:02},1,1,1,1,1,1\n", week * 7)).collect();
    let weekly = format!("{header}{weeks}2024-02-04,1,1,1,1,1,1\n");
    assert!(refused("AAPL.csv", &weekly).contains("weekly"));
    assert!(refused("table.csv", header).contains("--symbol"));
    assert!(
        refused("prices.csv", "symbol,date,open,high,low,close,adj_close,volume\n")
            .contains("unknown columns for a price: adj_close")
    );
    assert!(refused("A-1wk.csv", header).contains("daily"));
    assert!(
        refused("A.csv", "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n").contains("auto_adjust")
    );
}

const CHART: &str = r#"{"chart":{"result":[{"meta":{"currency":"USD","symbol":"KO","dataGranularity":"1d",
    "exchangeTimezoneName":"America/New_York"},"timestamp":[1710336600,1710423000],
    "events":{"dividends":{"1710423000":{"amount":0.485,"date":1710423000}},
        "splits":{"1":{"date":1710336600,"numerator":2,"denominator":1,"splitRatio":"2:1"}}},
    "indicators":{"quote":[{"open":[59.9,60.1],"high":[60.2,60.4],"low":[59.5,59.8],"close":[60.0,null],
        "volume":[1000,null]}],"adjclose":[{"adjclose":[59.5,60.3]}]}}],"error":null}}"#;

#[test]
fn a_chart_answer_is_read_by_the_exchange_s_days() {
    let whole = CHART.replace("null]}],", "7]}],").replace("60.0,null", "60.0,60.3");
    assert_eq!(
        read_text("chart.json", &whole),
        [
            "price KO 2024-03-13 o=59.9 h=60.2 l=59.5 c=60.0 v=1000 split_adjusted@2024-03-14",
            "price KO 2024-03-14 o=60.1 h=60.4 l=59.8 c=60.3 v=7 split_adjusted@2024-03-14",
            "dividend KO 2024-03-14 0.485 USD regular split_adjusted@2024-03-14",
            "split KO 2024-03-13 1:2",
        ]
    );
    let rejected = read_text("chart.json", CHART);
    assert!(rejected.iter().any(|row| row.starts_with("reject 2 missing_field")), "{rejected:?}");
    // If a price is rejected, the other rows of its day are kept.
    let moved = CHART.replace("{\"date\":1710336600,", "{\"date\":1710423000,");
    let found = read_text("chart.json", &moved);
    for row in [
        "price KO 2024-03-13 o=59.9 h=60.2 l=59.5 c=60.0 v=1000 split_adjusted@2024-03-14",
        "dividend KO 2024-03-14 0.485 USD regular split_adjusted@2024-03-14",
        "split KO 2024-03-14 1:2",
    ] {
        assert!(found.iter().any(|line| line == row), "{row}: {found:?}");
    }
    let rows = bodies("chart.json", &moved, &options()).unwrap();
    let refused_row = rows.iter().find_map(|body| match body {
        Body::Rejects(rows) => Some(rows[0].row.as_str()),
        _ => None,
    });
    let mended = r#""date":"2024-03-14","basis":"split_adjusted","basis_as_of":"2024-03-14","open":"60.1""#;
    assert!(refused_row.is_some_and(|row| row.contains(mended)), "{refused_row:?}");
    assert!(refused("chart.json", &CHART.replace("\"1d\"", "\"1wk\"")).contains("has 1wk rows"));
    assert!(
        refused("chart.json", &CHART.replace("[1710336600,", "[")).contains("1 day and 2 values of open")
    );
    let error = r#"{"chart":{"result":null,"error":{"code":"Not Found","description":"No data found"}}}"#;
    assert!(refused("chart.json", error).contains("No data found"));
}
