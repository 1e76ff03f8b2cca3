use super::read_helper::{read_text, refused};

#[test]
fn dividends_old_and_new() {
    // The old response is modelled on a recorded page; the new one is written by hand from the vendor's documentation.
    let old = r#"{"results":[{"cash_amount":0.59375,"declaration_date":"2020-09-09","dividend_type":"CD","ex_dividend_date":"2025-06-12","frequency":4,"pay_date":"2025-06-30","record_date":"2025-06-15","ticker":"CSSEN"},
        {"cash_amount":"1.5","dividend_type":"SC","ex_dividend_date":"2024-01-02","frequency":0,"pay_date":"","ticker":"BACpL"}],"status":"OK","request_id":"x","next_url":"https://x"}"#;
    assert_eq!(
        read_text("page.json", old),
        ["dividend CSSEN 2025-06-12 0.59375 - regular raw", "dividend BAC.PRL 2024-01-02 1.5 - special raw"]
    );
    let new = r#"{"status":"OK","request_id":"x","results":[{"id":"E1","ticker":"AAPL","ex_dividend_date":"2024-02-09","cash_amount":0.24,"currency":"USD","distribution_type":"recurring","frequency":4,"historical_adjustment_factor":0.99,"split_adjusted_cash_amount":0.12}]}"#;
    assert_eq!(read_text("x.json", new), ["dividend AAPL 2024-02-09 0.24 USD regular raw"]);
}

#[test]
fn aggregates_are_split_adjusted_to_the_day_of_asking_unless_they_say() {
    let page = |adjusted: &str| {
        format!(
            r#"{{"ticker":"AAPL","queryCount":2,"resultsCount":2,"adjusted":{adjusted},"results":[{{"v":642646396.0,"vw":1.469,"o":1.5032,"c":1.4604,"h":1.5064,"l":1.4489,"t":1112331600000,"n":82132}}],"status":"OK","request_id":"x"}}"#
        )
    };
    let row = "price AAPL 2005-04-01 o=1.5032 h=1.5064 l=1.4489 c=1.4604 v=642646396";
    assert_eq!(read_text("a.json", &page("true")), [format!("{row} split_adjusted@1970-01-01")]);
    assert_eq!(read_text("a.json", &page("false")), [format!("{row} raw")]);
}

#[test]
fn flat_files_are_raw_and_daily() {
    // Written by hand from the vendor's documentation.
    let header = "ticker,volume,open,close,high,low,window_start,transactions\n";
    let day = format!("{header}A,1000,10,11,12,9,1698811200000000000,5\n");
    assert_eq!(read_text("2023-11-01.csv", &day), ["price A 2023-11-01 o=10 h=12 l=9 c=11 v=1000 raw"]);
    let minute = format!("{header}A,1000,10,11,12,9,1698845400000000000,5\n");
    assert!(read_text("2023-11-01.csv", &minute)[0].contains("intraday_row"));
}

#[test]
fn tickers_are_securities() {
    let page = r#"{"results":[{"ticker":"A","name":"Agilent Technologies Inc.","market":"stocks","locale":"us","primary_exchange":"XNYS","type":"CS","active":true,"currency_name":"usd","cik":"0001090872","composite_figi":"BBG000C2V3D6"}],"status":"OK","request_id":"x"}"#;
    let found = read_text("tickers.json", page);
    assert!(found[0].contains(r#""symbol":"A","name":"Agilent Technologies Inc.","type":"stock","currency":"USD","status":"active""#), "{found:?}");
    assert!(found[0].contains(r#""exchange":"XNYS""#) && found[0].contains(r#""country":"US""#), "{found:?}");
}

#[test]
fn a_split_is_old_to_new_and_an_error_is_no_data() {
    let page = r#"{"results":[{"execution_date":"2022-07-18","split_from":1,"split_to":20,"ticker":"GOOGL"}],"status":"OK","request_id":"x"}"#;
    assert_eq!(read_text("s.json", page), ["split GOOGL 2022-07-18 1:20"]);
    let error = r#"{"status":"ERROR","request_id":"x","error":"You've exceeded the maximum requests per minute, please wait"}"#;
    assert!(refused("s.json", error).contains("requests per minute"));
}

#[test]
fn two_types_of_one_day_are_two_payments() {
    // Written by hand: both words mean a regular dividend. The amounts alone would look like a correction.
    let page = |second: &str| {
        format!(
            r#"{{"status":"OK","request_id":"x","results":[{{"id":"E1","ticker":"FUND","ex_dividend_date":"2024-02-09","cash_amount":0.27,"distribution_type":"recurring"}},
            {{"id":"E2","ticker":"FUND","ex_dividend_date":"2024-02-09","cash_amount":0.29{second}}}]}}"#
        )
    };
    let row = |text: &str| format!("dividend FUND 2024-02-09 {text}");
    let irregular = read_text("x.json", &page(r#","distribution_type":"irregular""#));
    assert_eq!(irregular[1], row("0.29 - irregular raw"));
    let check = |second: &str, expected: &str| {
        assert_eq!(read_text("x.json", &page(second))[1], row(expected), "{second}");
    };
    check(r#","dividend_type":"CD""#, "0.29 - regular raw beside 0.27");
    check(r#","distribution_type":"recurring""#, "0.29 - regular raw");
    check("", "0.29 - regular raw");
}

#[test]
fn lists_in_lists_have_an_end() {
    let row =
        r#"{"ticker":"A","ex_dividend_date":"2024-02-09","cash_amount":0.24,"currency":"USD","frequency":4}"#;
    for depth in [1, 20, 200_000] {
        let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let page = format!(r#"{{"results":[{row},{nested}],"status":"OK","request_id":"x"}}"#);
        let read = read_text("page.json", &page);
        assert_eq!(read[0], "dividend A 2024-02-09 0.24 USD regular raw");
        assert!(read.len() == 2 && read[1].starts_with("reject 2 "), "{depth}: {read:?}");
    }
}
