use super::propose_map;
use crate::source::feed_files::FeedFile;

mod layouts;
mod real_tables;
mod samples;

fn propose(name: &str, bytes: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let file = FeedFile { location: path.into(), ..FeedFile::from_name(name) };
    propose_map(&file)
}

fn check(name: &str, bytes: &[u8], parts: &[&str]) {
    let text = propose(name, bytes).unwrap();
    for part in parts {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
}

fn lacks(name: &str, bytes: &[u8], part: &str) {
    let text = propose(name, bytes).unwrap();
    assert!(!text.contains(part), "{part} in:\n{text}");
}

fn refused(name: &str, bytes: &[u8]) -> String {
    propose(name, bytes).unwrap_err()
}

#[test]
fn a_german_table_is_understood() {
    let text = "Kurse;;;;;\nDatum;Er\u{f6}ffnung;Hoch;Tief;Schluss;Volumen\n15.01.2024;1.139,50;1.140,00;1.130,25;1.132,4;12.345\n";
    let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let text = [
        "delimiter = \";\"",
        "encoding = \"windows-1252\"",
        "close = \"Schluss\"",
        "format = \"DD.MM.YYYY\"",
        "decimal = \",\"",
        "thousands = \".\"",
    ];
    check("SAP.csv", &bytes, &text);
}

#[test]
fn a_headerless_file_is_understood_by_its_cells() {
    let text = "20140102,5553700,5571400,5520500,5530800,58791957\n20140103,5553700,5571400,5520500,5530800,58791957\n";
    check(
        "AAPL.csv",
        text.as_bytes(),
        &["header = 0", "date = 1", "close = 5", "volume = 6", "YYYYMMDD", "\"close\":\"5530800\""],
    );
}

#[test]
fn wide_tables_are_understood() {
    check(
        "w.csv",
        b"Date,AAPL,BRK-B\n2024-01-02,1.5,2\n",
        &["name = \"{symbol}\"", "value = \"close\"", "BRK.B"],
    );
    check(
        "w.csv",
        b"Date,AAPL.Open,AAPL.Close\n2024-01-02,1.5,2\n",
        &["name = \"{symbol}.{field}\"", "open = \"Open\""],
    );
    let yfinance =
        b"Price,Close,Close,Volume,Volume\nTicker,AAPL,MSFT,AAPL,MSFT\nDate,,,,\n2024-01-02,1.5,2,3,4\n";
    check("w.csv", yfinance, &["header = 3", "name = \"{field}|{symbol}\"", "\"symbol\":\"MSFT\""]);
}

#[test]
fn what_is_adjusted_is_proposed_so() {
    let adjusted = ["\n[constants]\nbasis = \"split_adjusted\""];
    check("A.csv", b"Date,Close,Adj Close,Volume\n13/01/2024,1,1,1\n", &adjusted);
    check("A.csv", b"ticker,date,close,volume,closeadj\nA,2024-01-13,1,1,1\n", &adjusted);
    check("prices-split-adjusted.csv", b"date,symbol,close\n1/13/2010,AAL,4.7\n", &adjusted);
    let raw = ["# [constants]\n# basis = \"split_adjusted\""];
    check("A.csv", b"Date,Close,Volume,Adj Close\n13/01/2024,1,1,1\n", &raw);
    let multiplied = b"Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n2024-01-12,1,1,1,1,1,0,0\n";
    check("A.csv", multiplied, &["# Without a map, the file cannot be read: it has no Adj Close"]);
}

#[test]
fn events_are_told_by_many_words() {
    let split = "symbol,newshares,oldshares,date,\nINFY,2,1,2014-12-02,\n";
    check("s.csv", split.as_bytes(), &["kind = \"split\"", "\"from\":\"1\"", "\"to\":\"2\""]);
    check("s.csv", b"date,split_factor,symbol\n1992-06-15,1.5,MSFT\n", &["\"from\":\"2\"", "\"to\":\"3\""]);
    let paid = b"Symbol,Ex-Div Date,Record Date,Amount\nSPY,2021-12-17,2021-12-20,1.6364\n";
    check("d.csv", paid, &["ex_date = \"Ex-Div Date\"", "\"ex_date\":\"2021-12-17\""]);
    let none = b"Date,Price,Vol.\n\"Jan 05, 2020\",74.36,146.32M\n\"Jan 03, 2020\",74.36,-\n";
    check("A.csv", none, &["absent = [\"-\"]", "\"volume\":146320000"]);
}

#[test]
fn doubts_are_said() {
    let text = "date,open,high,low,close,volume,Name\n02/01/2013,15,15,14,14,8407500,AAL\n";
    check("all.csv", text.as_bytes(), &["or DD/MM/YYYY", "# symbol = \"Name\"", "# unused columns: Name"]);
    let amounts = "Ticker,Ex Date,Dividend\nKO,2024-03-14,0.485\n";
    check(
        "d.csv",
        amounts.as_bytes(),
        &[
            "kind = \"dividend\"",
            "ex_date = \"Ex Date\"",
            "# currency = \"EUR\" # the file names no currency",
            "\"amount\":\"0.485\"",
        ],
    );
}

#[test]
fn titles_times_and_shipped_layouts_are_seen() {
    let text = "Report;Fondskurse;;\n\nDatum;ISIN;Kurs;Schluss\n15.01.2024;DE1;a;241,50\nSumme;;;\n";
    check("fund prices.csv", text.as_bytes(), &["first_line = 3", "DD.MM.YYYY", "With --symbol SYMBOL"]);
    let sheet = "Date,Close\n1/2/2014 16:00:00,554.48\n1/13/2014 16:00:00,550\n";
    check("GOOG.csv", sheet.as_bytes(), &["MM/DD/YYYY 16:00:00", "\"date\":\"2014-01-02\""]);
    let stooq = "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>\nAAPL.US,D,20240102,000000,187,188,183,185,1\n";
    check("aapl.us.txt", stooq.as_bytes(), &["--map stooq", "cell = \"{symbol}.US\""]);
    let ticks = "symbol,date,close\nKO,1710288000000,59.1\n";
    check("p.csv", ticks.as_bytes(), &["format = \"unix_ms\"", "\"date\":\"2024-03-13\""]);
    check("c.csv", b",aapl,brk-b\n2024-01-02,185.6,362\n", &["date = 1", "name = \"{symbol}\""]);
    let chart = b"Date,AAPL.Close,AAPL.Adjusted,dn\n2024-01-02,185.6,181,1\n";
    check("c.csv", chart, &["name = \"{symbol}.{field}\"", "\"symbol\":\"AAPL\""]);
}
