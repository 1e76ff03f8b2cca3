use super::read_helper::{read_text, refused};

const CSV: &str = "open,high,low,close,volume,adj_high,adj_low,adj_close,adj_open,adj_volume,split_factor,dividend,symbol,exchange,date\n\
    10,11,9,10.5,1000,11,9,10.5,10,1000,1.0,0.0,AAX,XNAS,2023-11-21T00:00:00+0000\n\
    100,110,90,105,1000,110,90,105,100,1000,4.0,0.83,BBX,XNAS,2023-11-21T00:00:00+0000\n";

#[test]
fn tables_of_many_symbols_are_read_by_their_symbol_column() {
    let json = r#"{"pagination":{"limit":100,"offset":0,"count":2,"total":2},"data":[
        {"open":10,"high":11,"low":9,"close":10.5,"volume":1000,"adj_close":10.5,"adj_open":10,"split_factor":1.0,"dividend":0.0,"symbol":"AAX","exchange":"XNAS","date":"2023-11-21T00:00:00+0000"},
        {"open":100,"high":110,"low":90,"close":105,"volume":1000,"adj_close":105,"adj_open":100,"split_factor":4.0,"dividend":0.83,"symbol":"BBX","exchange":"XNAS","date":"2023-11-21T00:00:00+0000"}]}"#;
    let rows = [
        "price AAX 2023-11-21 o=10.0 h=11.0 l=9.0 c=10.5 v=1000 raw",
        "price BBX 2023-11-21 o=100 h=110 l=90 c=105 v=1000 raw",
        "dividend BBX 2023-11-21 0.83 - regular raw",
        "split BBX 2023-11-21 1:4",
    ];
    assert_eq!(read_text("ms.csv", CSV), rows);
    assert_eq!(read_text("ms.json", json), rows);
}

#[test]
fn a_page_without_data_and_an_hour_are_refused() {
    let error = r#"{"error":{"code":"invalid_access_key","message":"You have not supplied a valid API Access Key."}}"#;
    assert!(refused("ms.json", error).contains("valid API Access Key"));
    let hourly = CSV.replace("00:00:00", "15:00:00");
    assert!(refused("ms.csv", &hourly).contains("has UTC times instead of dates"));
}
