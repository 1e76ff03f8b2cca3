use super::read_helper::read_text;

#[test]
fn a_row_is_a_price_and_what_happened_that_day() {
    let text = "ticker,date,open,high,low,close,volume,ex-dividend,split_ratio,adj_close\n\
        AAPL,2014-06-06,649.9,651.26,644.47,645.57,12497800.0,0.0,1.0,90\n\
        AAPL,2014-06-09,92.7,93.88,91.75,93.7,75415000.0,0.0,7.0,91\n\
        AAPL,2014-08-07,0.0,,0,94.48,46711000.0,0.47,1.0,92\n\
        BRK_B,2014-08-07,1,1,1,x,1,0,1,1\n";
    assert_eq!(
        read_text("WIKI_PRICES.csv", text),
        [
            "price AAPL 2014-06-06 o=649.90 h=651.26 l=644.47 c=645.57 v=12497800 raw",
            "price AAPL 2014-06-09 o=92.70 h=93.88 l=91.75 c=93.70 v=75415000 raw",
            "price AAPL 2014-08-07 o=- h=- l=- c=94.48 v=46711000 raw",
            "dividend AAPL 2014-08-07 0.47 - regular raw",
            "split AAPL 2014-06-09 1:7",
            "reject 5 bad_number: close \"x\" is not a decimal number",
        ],
    );
}

#[test]
fn the_symbol_may_come_from_the_file() {
    let text = "Date,Open,High,Low,Close,Volume,Ex-Dividend,Split Ratio,Adj. Open\n2012-01-03,1,2,1,2,10.0,0.0,0.1,5\n";
    assert_eq!(
        read_text("WIKI-yhoo-2012-quandl.csv", text),
        ["price YHOO 2012-01-03 o=1 h=2 l=1 c=2 v=10 raw", "split YHOO 2012-01-03 10:1"],
    );
}
