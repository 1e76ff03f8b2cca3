use super::read_helper::{read_text, refused};

#[test]
fn the_adjusted_close_of_others_is_not_eodhd_s() {
    let text =
        "Date,Low,Open,Volume,High,Close,Adjusted Close\n1980-12-12,0.128,0.128,469033600,0.129,0.128,0.1\n";
    assert!(refused("AAPL.csv", text).contains("two closes"));
}

#[test]
fn prices_are_raw_in_csv_and_json() {
    let csv = "Date,Open,High,Low,Close,Adjusted_close,Volume\n2017-01-05,119.34,120.2,119.1,119.7,103.6748,4261100\n";
    let json = r#"[{"date":"2017-01-05","open":119.34,"high":120.2,"low":119.1,"close":119.7,"adjusted_close":103.6748,"volume":4261100}]"#;
    let row = ["price MCD 2017-01-05 o=119.34 h=120.20 l=119.10 c=119.70 v=4261100 raw"];
    assert_eq!(read_text("MCD.US.csv", csv), row);
    assert_eq!(read_text("MCD.json", json), row);
}

#[test]
fn dividends_are_as_declared_where_that_is_said() {
    let json = r#"[{"date":"2014-05-08","declarationDate":"2014-04-23","recordDate":"0000-00-00","paymentDate":"2014-05-15","period":"Quarterly","value":0.1175,"unadjustedValue":3.29,"currency":"USD"},
        {"date":"2014-08-07","value":"0.1175","unadjustedValue":null,"currency":"USD"}]"#;
    assert_eq!(
        read_text("AAPL.json", json),
        [
            "dividend AAPL 2014-05-08 3.29 USD regular raw",
            "dividend AAPL 2014-08-07 0.1175 USD regular split_adjusted@1970-01-01"
        ]
    );
}

#[test]
fn splits_and_bulk_tables() {
    assert_eq!(
        read_text("AAPL.json", r#"[{"date":"2014-06-09","split":"7.000000/1.000000"}]"#),
        ["split AAPL 2014-06-09 1:7"]
    );
    let bulk = "Code,Ex,Date,Open,High,Low,Close,Adjusted_close,Volume\nA,US,2024-01-02,1,2,1,2,2,100\nVOD,LSE,2024-01-02,1,2,1,2,2,100\n";
    assert_eq!(
        read_text("bulk.csv", bulk),
        [
            "price A 2024-01-02 o=1 h=2 l=1 c=2 v=100 raw",
            "price VOD.LSE 2024-01-02 o=1 h=2 l=1 c=2 v=100 raw"
        ]
    );
    let json = r#"[{"code":"A","exchange_short_name":"US","date":"2024-01-02","open":1,"high":2,"low":1,"close":2,"adjusted_close":2,"volume":100}]"#;
    assert_eq!(read_text("bulk.json", json), ["price A 2024-01-02 o=1 h=2 l=1 c=2 v=100 raw"]);
}

#[test]
fn fundamentals_have_percent_in_points() {
    let json = r#"{"General":{"Code":"AAPL","Type":"Common Stock","Name":"Apple Inc","Exchange":"NASDAQ","CurrencyCode":"USD","CountryISO":"US","Sector":"Technology","UpdatedAt":"2024-03-01","IsDelisted":false},
        "Highlights":{"MarketCapitalization":2700000000000,"ProfitMargin":0.2631,"PEGRatio":0,"DilutedEpsTTM":6.43},"SharesStats":{"SharesOutstanding":15441900000}}"#;
    let found = read_text("AAPL.US.json", json);
    assert!(found[0].contains(r#""sector":"Information Technology""#), "{found:?}");
    assert!(found[1].contains(r#""net_margin":"26.31""#) && !found[1].contains("peg_ratio"), "{found:?}");
}

#[test]
fn a_vendors_message_is_no_data() {
    assert!(
        refused("AAPL.json", r#"{"error":"Forbidden. Please contact support@eodhistoricaldata.com"}"#)
            .contains("Forbidden")
    );
}

#[test]
fn two_periods_of_one_day_are_two_payments() {
    // Written by hand: the second period is not a frequency.
    let json = |period: &str| {
        format!(
            r#"[{{"date":"2004-12-27","period":"Quarterly","value":0.27,"unadjustedValue":0.27,"currency":"USD"}},
            {{"date":"2004-12-27"{period},"value":0.29,"unadjustedValue":0.29,"currency":"USD"}}]"#
        )
    };
    let check = |period: &str, beside: &str| {
        let row = format!("dividend FUND 2004-12-27 0.29 USD regular raw{beside}");
        assert_eq!(read_text("FUND.json", &json(period))[1], row, "{period}");
    };
    check(r#","period":"Final""#, " beside 0.27");
    check(r#","period":"Quarterly""#, "");
    check(r#","period":null"#, "");
}
