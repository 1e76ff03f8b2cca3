use event_log::record_batch::Body;

use super::read_helper::{bodies, options};

/// Evidence of dividends in a file (rule R40), one line per record. A dividend column is `dividend column FROM TO`. A
/// change of the ratio `adjusted close / close` is `LAST-DATE-BEFORE EX-DATE FACTOR SHARE-BASIS`.
fn evidence(name: &str, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for body in bodies(name, text, &options()).unwrap() {
        let Body::Evidence(rows) = body else { continue };
        lines.extend(rows.iter().map(|row| {
            let record = &row.record;
            match record.ex_date.zip(record.previous).zip(record.factor.zip(record.basis)) {
                Some(((ex_date, previous), (factor, basis))) => {
                    format!("{previous} {ex_date} {factor} {basis}")
                }
                None => {
                    let [from, to] = [record.dividends_from, record.dividends_to].map(Option::unwrap);
                    format!("dividend column {from} {to}")
                }
            }
        }));
    }
    lines
}

#[test]
fn adjusted_closes_of_each_vendor_are_evidence() {
    let yahoo = "Date,Open,High,Low,Close,Adj Close,Volume\n\
        2000-01-03,29.0,29.0,27.625,28.1875,14.549589,1\n2014-08-08,68.0,68.86,67.85,68.73,68.73,1\n";
    assert_eq!(evidence("PRX.csv", yahoo), ["2000-01-03 2014-08-08 0.516172 split_adjusted"]);
    let older = "Date,Open,High,Low,Close,Volume,Adj Close\n\
        2014-08-08,50,50,50,50.00,1,50.00\n2014-08-07,100,100,100,100.00,1,50.00\n";
    assert_eq!(evidence("OLD.csv", older), ["2014-08-07 2014-08-08 0.500000 raw"]);
    let wiki = "ticker,date,open,high,low,close,volume,ex-dividend,split_ratio,adj_close\n\
        KO,2014-03-12,38,38,38,38.00,1,0.0,1.0,37.00\nKO,2014-03-13,38,38,38,38.00,1,1.0,1.0,38.00\n";
    let expected = ["dividend column 2014-01-01 2014-12-31", "2014-03-12 2014-03-13 0.973684 raw"];
    assert_eq!(evidence("wiki.csv", wiki), expected);
    let eodhd = "Date,Open,High,Low,Close,Adjusted_close,Volume\n\
        2014-08-07,10,10,10,10.00,9.50,1\n2014-08-08,10,10,10,10.00,10.00,1\n";
    assert_eq!(evidence("KO.csv", eodhd), ["2014-08-07 2014-08-08 0.950000 raw"]);
}

#[test]
fn an_empty_dividend_column_is_evidence() {
    let text = "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits\n\
        2013-12-27,3,3,3,3.0,3.0,100,0.0,0.0\n2014-01-02,3,3,3,3.0,3.0,100,0.0,0.0\n";
    assert_eq!(evidence("FRX.csv", text), ["dividend column 2013-01-01 2014-12-31"]);
}
