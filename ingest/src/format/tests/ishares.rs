use super::read_helper::{read_text, refused};

const FILE: &str = "\u{feff}iShares Core S&P 500 ETF\nFund Holdings as of,\"Dec 06, 2024\"\nInception Date,\"May 15, 2000\"\nShares Outstanding,\"957,950,000.00\"\n \n\
    Ticker,Name,Sector,Asset Class,Market Value,Weight (%),Notional Value,Quantity,Price,Location,Exchange,Currency\n\
    \"AAPL\",\"APPLE INC\",\"Information Technology\",\"Equity\",\"41,700,670,815.44\",\"7.15\",\"1\",\"171,720,766.00\",\"242.84\",\"United States\",\"NASDAQ\",\"USD\"\n\
    \"BRKB\",\"BERKSHIRE HATHAWAY INC\",\"Financials\",\"Equity\",\"1.00\",\"1.6\",\"1\",\"2.00\",\"1\",\"United States\",\"New York Stock Exchange Inc.\",\"USD\"\n\
    \"USD\",\"USD CASH\",\"Cash and/or Derivatives\",\"Cash\",\"-5.00\",\"-0.01\",\"1\",\"-5.00\",\"1\",\"United States\",\"-\",\"USD\"\n \n\
    \"The content, as it is, has commas, quotes\nand lines\"\nAll rights, reserved, by, all\n";

#[test]
fn the_table_between_preamble_and_disclaimer_is_read() {
    let found = read_text("IVV.csv", FILE);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains(r#""symbol":"IVV","name":"iShares Core S&P 500 ETF","type":"etf""#),
        "{found:?}"
    );
    assert!(
        found[1].contains(r#""as_of":"2024-12-06""#) && found[1].contains(r#""inception_date":"2000-05-15""#)
    );
    for part in [
        r#""name":"APPLE INC","weight":"7.15","symbol":"AAPL""#,
        r#""market_value":"41700670815.44""#,
        r#""symbol":"BRK.B""#,
        r#""country":"US""#,
        r#""name":"USD CASH","weight":"-0.01","asset_type":"Cash""#,
    ] {
        assert!(found[2].contains(part), "{part} in {}", found[2]);
    }
}

#[test]
fn the_fund_is_not_guessed_from_a_part_of_the_name() {
    let reason = refused("IVV_holdings.csv", FILE);
    assert!(reason.contains("--symbol IVV") && reason.contains("{symbol}_holdings.csv"), "{reason}");
}
