use super::read_helper::{options, read_with, refused};

// Written by hand from the agency's documentation. No response was recorded.
const FACTS: &str = r#"{"cik":320193,"entityName":"Apple Inc.","facts":{
    "dei":{"EntityCommonStockSharesOutstanding":{"label":"x","units":{"shares":[
        {"end":"2023-01-20","val":15821946000,"fy":2023,"fp":"Q1","form":"10-Q","filed":"2023-02-03"}]}}},
    "us-gaap":{"EarningsPerShareDiluted":{"units":{"USD/shares":[
        {"start":"2021-09-26","end":"2021-12-25","val":2.10,"filed":"2022-01-28"},
        {"start":"2021-09-26","end":"2022-09-24","val":6.10,"filed":"2022-10-28"},
        {"start":"2021-09-26","end":"2022-09-24","val":6.11,"filed":"2023-11-03"},
        {"start":"2022-09-25","end":"2022-12-31","val":1.88,"filed":"2023-02-03"}]}}}}}"#;

#[test]
fn twelve_months_are_a_year_or_roll_with_the_quarters() {
    let mut named = options();
    named.symbol = Some("AAPL".parse().unwrap());
    let found = read_with("CIK0000320193.json", FACTS, &named);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains(r#""as_of":"2022-09-24","eps_ttm":"6.11","eps_as_of":"2022-09-24""#),
        "{found:?}"
    );
    assert!(found[1].contains(r#""as_of":"2022-12-31","eps_ttm":"5.89""#), "{found:?}");
    assert!(
        found[2].contains(
            r#""as_of":"2023-01-20","shares_outstanding":"15821946000","shares_as_of":"2023-01-20""#
        ),
        "{found:?}"
    );
}

#[test]
fn facts_name_no_symbol() {
    assert!(refused("CIK0000320193.json", FACTS).contains("--symbol"));
}
