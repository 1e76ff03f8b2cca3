use super::read_helper::read_text;

#[test]
fn listings_are_securities() {
    let text = "ACT Symbol,Company Name,Security Name,Exchange,CQS Symbol,ETF,Round Lot Size,Test Issue,NASDAQ Symbol\n\
        ABR$D,Arbor,\"Arbor Realty Trust 6.375% Series D Cumulative Redeemable Preferred Stock\",N,ABRpD,N,100.0,N,ABR-D\n\
        AAA,CLO ETF,Alternative Access First Priority CLO Bond ETF,P,AAA,Y,100.0,N,AAA\n\
        ZTEST,Test,Tick Pilot Test,Z,ZTEST,N,100.0,Y,ZTEST\n";
    let found = read_text("other-listed.csv", text);
    assert!(
        found[0].contains(r#""symbol":"ABR.PRD""#) && found[0].contains(r#""type":"preferred""#),
        "{found:?}"
    );
    assert!(found[1].contains(r#""type":"etf""#) && found[1].contains(r#""exchange":"ARCX""#), "{found:?}");
    assert!(found[2].starts_with("reject 4 test_issue"), "{found:?}");
}

#[test]
fn the_directory_itself_is_read() {
    let text = "Symbol|Security Name|Market Category|Test Issue|Financial Status|Round Lot Size|ETF|NextShares\n\
        AACG|ATA Creativity Global - American Depositary Shares, each representing two common shares|S|N|N|100|N|N\n\
        NA|Nano Labs Ltd - Class A Ordinary Shares|S|N|N|100|N|N\n\
        File Creation Time: 0309202412:00|||||||\n";
    let found = read_text("nasdaqlisted.txt", text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].contains(r#""symbol":"NA""#), "{found:?}");
    assert!(found[0].contains(r#""type":"adr""#) && found[0].contains(r#""exchange":"XNAS""#), "{found:?}");
}
