use super::read_helper::read_text;

#[test]
fn constituents_are_securities_of_the_index() {
    let text = "Symbol,Security,GICS Sector,GICS Sub-Industry,Headquarters Location,Date added,CIK,Founded\n\
        ACN,Accenture,Information Technology,IT Consulting & Other Services,\"Dublin, Ireland\",2011-07-06,1467373,1989\n\
        AMT,American Tower,Real Estate,Telecom Tower REITs,\"Boston, Massachusetts\",2007-11-19,1053507,1995\n";
    let found = read_text("constituents.csv", text);
    assert!(
        found[0].contains(r#""indexes":["sp500"]"#) && found[0].contains(r#""country":"IE""#),
        "{found:?}"
    );
    assert!(found[1].contains(r#""type":"reit""#) && !found[1].contains("country"), "{found:?}");
}

#[test]
fn financials_are_of_the_date_in_the_name_and_in_whole_dollars() {
    let text = "Symbol,Name,Sector,Price,Dividend Yield,Price/Earnings,Earnings/Share,Book Value,Market Cap,Price/Sales\n\
        MMM,3M Co.,Industrials,137.31,1.84,21.23,6.508,26.432,92.447,3.03\n\
        AOS,A.O. Smith Corp,Industrials,60.24,1.1,27.76,1.7,,10783419933,3.6\n";
    let found = read_text("constituents-financials_2014-01-19.csv", text);
    assert!(found[0].contains(r#""symbol":"MMM","as_of":"2014-01-19","eps_ttm":"6.508""#), "{found:?}");
    assert!(found[0].contains(r#""market_cap":"92447000000""#), "{found:?}");
    assert!(found[1].contains(r#""market_cap":"10783419933""#), "{found:?}");
}
