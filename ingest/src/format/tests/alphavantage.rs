use super::read_helper::{read_text, refused};

#[test]
fn a_daily_series_is_raw_with_its_dividends() {
    let json = r#"{"Meta Data":{"1. Information":"Daily Time Series","2. Symbol":"IBM"},"Time Series (Daily)":{
        "2020-05-07":{"1. open":"122.9800","2. high":"123.2600","3. low":"120.8500","4. close":"121.2300","5. adjusted close":"100","6. volume":"4412047","7. dividend amount":"1.6300","8. split coefficient":"1.0000"}}}"#;
    let csv = "timestamp,open,high,low,close,adjusted_close,volume,dividend_amount,split_coefficient\n2020-05-07,122.98,123.26,120.85,121.23,100,4412047,1.6300,1.0\n";
    let rows = [
        "price IBM 2020-05-07 o=122.98 h=123.26 l=120.85 c=121.23 v=4412047 raw",
        "dividend IBM 2020-05-07 1.63 - regular raw",
    ];
    assert_eq!(read_text("x.json", json), rows);
    assert_eq!(read_text("IBM.csv", csv), rows);
}

#[test]
fn dividends_and_splits_may_lack_dates() {
    // Written by hand from the vendor's documentation. No response was recorded.
    let dividends = r#"{"symbol":"IBM","data":[{"ex_dividend_date":"2024-08-09","declaration_date":"2024-07-29","record_date":"2024-08-09","payment_date":"2024-09-10","amount":"1.67"},
        {"ex_dividend_date":"1999-02-08","declaration_date":"None","record_date":"None","payment_date":"None","amount":"0.22"}]}"#;
    assert_eq!(
        read_text("x.json", dividends),
        ["dividend IBM 2024-08-09 1.67 - regular raw", "dividend IBM 1999-02-08 0.22 - regular raw"]
    );
    let splits = r#"{"symbol":"IBM","data":[{"effective_date":"1999-05-27","split_factor":"2.0000"}]}"#;
    assert_eq!(read_text("x.json", splits), ["split IBM 1999-05-27 1:2"]);
    let csv =
        "ex_dividend_date,declaration_date,record_date,payment_date,amount\n2024-08-09,None,None,None,1.67\n";
    assert_eq!(read_text("IBM.csv", csv), ["dividend IBM 2024-08-09 1.67 - regular raw"]);
}

#[test]
fn an_overview_is_a_security_and_its_figures() {
    let json = r#"{"Symbol":"IBM","AssetType":"Common Stock","Name":"International Business Machines","CIK":"51143","Exchange":"NYSE","Currency":"USD","Country":"USA","Sector":"TECHNOLOGY","LatestQuarter":"2021-09-30","MarketCapitalization":"106626228000","ProfitMargin":"0.064","PEGRatio":"None","DilutedEPSTTM":"5.28","SharesOutstanding":"896320000"}"#;
    let found = read_text("x.json", json);
    for part in [r#""exchange":"XNYS""#, r#""sector":"Information Technology""#, r#""country":"US""#] {
        assert!(found[0].contains(part), "{part} in {found:?}");
    }
    assert!(
        found[1].contains(r#""net_margin":"6.4""#) && found[1].contains(r#""eps_ttm":"5.28""#),
        "{found:?}"
    );
}

#[test]
fn what_is_not_daily_and_notices_are_refused() {
    let weekly = r#"{"Meta Data":{"2. Symbol":"IBM"},"Weekly Time Series":{}}"#;
    assert!(refused("x.json", weekly).contains("only daily"));
    let note = r#"{"Note":"Thank you for using Alpha Vantage! Our standard API call frequency is 5 calls per minute."}"#;
    assert!(refused("x.json", note).contains("throttle notice"));
    for (text, part) in [
        ("Exceeded the daily hits limit", "throttle notice, not data: \"Exceeded the daily hits limit\""),
        ("Too Many Requests\r\n", "ask again later"),
        ("Forbidden. Please contact support.", "a service's message"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:ee\nsize 61887\n", "git lfs pull"),
    ] {
        assert!(refused("KO.csv", text).contains(part), "{text}");
        assert!(refused("KO.json", text).contains(part), "{text}");
    }
    assert!(refused("x.json", r#"{"Error Message":"Invalid API call."}"#).contains("Invalid API call"));
}
