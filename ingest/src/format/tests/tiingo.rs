use super::read_helper::{read_text, refused};

const CSV: &str = "date,close,high,low,open,volume,adjClose,adjHigh,adjLow,adjOpen,adjVolume,divCash,splitFactor\n\
    2014-06-09,93.7,93.88,91.75,92.7,75415000,1,1,1,1,1,0.0,7.0\n\
    2014-08-07,94.48,95,93,94,46711000,1,1,1,1,1,0.47,1.0\n";

#[test]
fn csv_and_json_say_the_same() {
    let json = r#"[{"date":"2014-06-09T00:00:00.000Z","close":93.7,"high":93.88,"low":91.75,"open":92.7,"volume":75415000,"adjClose":1,"adjOpen":1,"divCash":0.0,"splitFactor":7.0},
        {"date":"2014-08-07T00:00:00+00:00","close":94.48,"high":95,"low":93,"open":94,"volume":46711000,"adjClose":1,"adjOpen":1,"divCash":0.47,"splitFactor":1.0}]"#;
    let rows = [
        "price AAPL 2014-06-09 o=92.70 h=93.88 l=91.75 c=93.70 v=75415000 raw",
        "price AAPL 2014-08-07 o=94.00 h=95.00 l=93.00 c=94.48 v=46711000 raw",
        "dividend AAPL 2014-08-07 0.47 - regular raw",
        "split AAPL 2014-06-09 1:7",
    ];
    assert_eq!(read_text("AAPL.csv", CSV), rows);
    assert_eq!(read_text("AAPL.json", json), rows);
}

#[test]
fn corporate_actions_are_read_and_cancellations_retract() {
    // Written by hand from the vendor's documentation. No response was recorded.
    let dividends = r#"[{"permaTicker":"US000000000038","ticker":"aapl","exDate":"2023-08-25T00:00:00.000Z","paymentDate":"2023-09-07T00:00:00.000Z","recordDate":null,"declarationDate":"2023-07-27T00:00:00.000Z","distribution":0.24,"distributionFreqency":"q"},
        {"permaTicker":"US000000000038","ticker":"aapl","exDate":"2023-11-10T00:00:00.000Z","distribution":0.24,"distributionFreqency":"c"}]"#;
    assert_eq!(
        read_text("d.json", dividends),
        [
            "dividend AAPL 2023-08-25 0.24 - regular raw",
            "dividend AAPL 2023-11-10 0.24 - regular raw retract"
        ]
    );
    let splits = r#"[{"permaTicker":"x","ticker":"NVDA","exDate":"2024-06-10","splitFrom":1.0,"splitTo":10.0,"splitFactor":10.0,"splitStatus":"a"}]"#;
    assert_eq!(read_text("s.json", splits), ["split NVDA 2024-06-10 1:10"]);
}

#[test]
fn an_error_is_no_data_and_a_name_is_no_guess() {
    assert!(refused("AAPL.json", r#"{"detail":"Not found."}"#).contains("Not found."));
    assert!(refused("my_prices.csv", CSV).contains("--symbol"));
}
