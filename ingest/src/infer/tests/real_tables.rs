//! Tests that propose column maps for table layouts of real vendors and tools.

use super::{check, lacks, propose, refused};

#[test]
fn a_kind_and_its_columns_are_found_by_words() {
    check(
        "dividends.csv",
        b"Ex-Date,Dividend ($/sh)\n2025-04-03,0.92\n",
        &[
            "kind = \"dividend\"",
            "ex_date = \"Ex-Date\"",
            "amount = \"Dividend ($/sh)\"",
            "currency = \"USD\"",
            "# amount_basis = \"split_adjusted\"",
        ],
    );
    let paid = b"ticker,pay_date,ex_date,gross,net,type\naax,2017/06/20,2017/06/16,0.0859,0.0696,Final\n";
    check(
        "dividends.csv",
        paid,
        &[
            "ex_date = \"ex_date\"",
            "payment_date = \"pay_date\"",
            "amount = \"gross\"",
            "format = \"YYYY/MM/DD\"",
            "\"Final\" = \"regular\"",
            "# unused columns: net",
            "\"ex_date\":\"2017-06-16\"",
            "\"amount\":\"0.0859\"",
        ],
    );
    check(
        "splits.csv",
        b"effective_date,ticker,from_quantity,to_quantity\n30/5/2024,AAX,10,1\n",
        &[
            "kind = \"split\"",
            "format = \"DD/MM/YYYY\"",
            "\"from\":\"10\"",
            "\"to\":\"1\"",
            "\"ex_date\":\"2024-05-30\"",
        ],
    );
    check(
        "prices.csv",
        b"date,ticker,close_price\n2023-12-04,AAX,55.46\n",
        &["kind = \"price\"", "close = \"close_price\"", "\"close\":\"55.46\""],
    );
    check(
        "x.csv",
        b"Ex Date,Pay Date,Amount (EUR)\n2024-05-13,2024-05-15,1.5\n",
        &["currency = \"EUR\"", "ex_date = \"Ex Date\""],
    );
}

#[test]
fn a_letter_among_symbols_is_a_symbol() {
    let table = b",AAPL,MSFT,V\n2023-01-04,124.36,229.10,207.43\n";
    check(
        "price_history.csv",
        table,
        &["date = 1", "name = \"{symbol}\"", "value = \"close\"", "\"symbol\":\"V\""],
    );
    check("p.csv", b"Date,C,MSFT,LOW,AAPL\n2023-01-04,1,2,3,4\n", &["name = \"{symbol}\""]);
    let bar = propose("p.csv", b"T,O,H,L,C,V\n2023-01-04,1,2,1,1.5,100\n").unwrap();
    assert!(!bar.contains("[wide]") && bar.contains("close = \"C\""), "{bar}");
    let indicators = propose("p.csv", b"Date,CLOSE,MA\n2023-01-04,1,2\n").unwrap();
    assert!(!indicators.contains("[wide]"), "{indicators}");
    let paid = b"Date,KO,PEP\n2024-03-14,0.485,0\n2024-03-15,0,1.265\n";
    check(
        "dividends.csv",
        paid,
        &["kind = \"dividend\"", "value = \"amount\"", "skip_without = [\"amount\"]", "\"amount\":\"1.265\""],
    );
    assert!(refused("volume.csv", paid).contains("not prices"));
}

#[test]
fn amounts_of_an_account_are_no_amounts_of_a_share() {
    let list = "Date;Type;Security;Shares;Amount\n2024-03-15T00:00;Dividend;ACME Corp;100;12,50\n";
    assert!(refused("All transactions.csv", list.as_bytes()).contains("transactions of an account"));
    assert!(refused("export.csv", list.as_bytes()).contains("one share"));
    let trades = b"date,action,symbol,price\n2024-03-15,Buy,KO,60\n";
    assert!(refused("history.csv", trades).contains("transactions"));
    let per_share = b"Date,Symbol,Shares,Dividend per share\n2024-03-15,KO,100,0.485\n";
    check("d.csv", per_share, &["amount = \"Dividend per share\"", "\"amount\":\"0.485\""]);
}

#[test]
fn the_pay_date_is_never_the_ex_date() {
    let paid = propose("dividends.csv", b"ticker,pay_date,amount\nKO,2024-04-01,0.485\n").unwrap();
    for part in ["payment_date = \"pay_date\"", "# ex_date = …", "Incomplete"] {
        assert!(paid.contains(part), "{part} in {paid}");
    }
    lacks("x.csv", b"a,b\n1,2\n", "\nkind =");
}

#[test]
fn utc_times_are_days_of_a_certain_zone_or_none() {
    let one = propose("F.csv", b"Date,Dividends\n2021-06-30 22:00:00+00:00,0.90\n").unwrap();
    assert!(one.contains("# zone = \"Europe/Berlin\"") && !one.contains("\"ex_date\""), "{one}");
    let two = b"Date,Dividends\n2021-06-30 22:00:00+00:00,0.90\n2021-12-29 23:00:00+00:00,0.95\n";
    check(
        "F.csv",
        two,
        &["\nzone = \"Europe/Berlin\"", "\"ex_date\":\"2021-07-01\"", "\"ex_date\":\"2021-12-30\""],
    );
    let new_york = b"symbol,date,close\nKO,2024-01-02T05:00:00Z,60\nKO,2023-07-03T04:00:00Z,61\n";
    check("p.csv", new_york, &["\nzone = \"America/New_York\"", "\"date\":\"2024-01-02\""]);
    let unix = b"symbol,date,close\nSAP,1625090400,1\nSAP,1640818800,2\n";
    check("p.csv", unix, &["format = \"unix\"", "\nzone = \"Europe/Berlin\"", "\"date\":\"2021-07-01\""]);
    // A time of 22:00 without an offset may be midnight in another time zone, so the day is unknown.
    lacks("F.csv", b"Date,Dividends\n2021-06-30 22:00:00,0.90\n", "\"ex_date\"");
}

#[test]
fn most_dates_decide_and_a_doubt_is_left_open() {
    let majority =
        b"Ticker,Ex Date,Dividend\nKO,14/03/2024,0.485\nPEP,07/03/2024,1.265\nX,TBA,1\nTotal,,2.75\n";
    check(
        "d.csv",
        majority,
        &[
            "format = \"DD/MM/YYYY\"",
            "absent = [\"TBA\"]",
            "skip_without = [\"ex_date\"]",
            "\"ex_date\":\"2024-03-14\"",
        ],
    );
    lacks("d.csv", majority, "would be rejected");
    let doubt = "Ticker,Ex Date,Dividend\nKO,05/03/2024,0.485\n";
    check("d.csv", doubt.as_bytes(), &["# format = \"MM/DD/YYYY\" # or DD/MM/YYYY"]);
    lacks("d.csv", doubt.as_bytes(), "\"ex_date\":");
    // With either order of day and month, both dates are Saturdays: 3 February and 2 March 2024.
    check("d.csv", b"Ticker,Ex Date,Dividend\nKO,02/03/2024,1\nKO,03/02/2024,1\n", &["Dividend"]);
    let daily = "date,close\n02/01/2024,1\n03/01/2024,1\n04/01/2024,1\n05/01/2024,1\n08/01/2024,1\n";
    check("KO.csv", daily.as_bytes(), &["\nformat = \"DD/MM/YYYY\"", "\"date\":\"2024-01-02\""]);
    let other = "Ticker,Ex Date,Pay Date,Dividend\nKO,05/03/2024,28/03/2024,0.485\n";
    check("d.csv", other.as_bytes(), &["\nformat = \"DD/MM/YYYY\"", "\"ex_date\":\"2024-03-05\""]);
}

#[test]
fn units_directions_and_dates_across_are_seen() {
    let units = "ticker,ex_date,amount\nVOD.L,2024-06-06,2.3p\nKO,2024-06-14,$0.485\n";
    check(
        "dividends.csv",
        units.as_bytes(),
        &["[units]", "\"p\" = \"GBX\"", "\"$\" = \"USD\"", "\"amount\":\"0.023\"", "\"currency\":\"GBP\""],
    );
    let euros = "ticker,ex_date,amount\nSAP,2024-05-16,€2.20\n";
    check("dividends.csv", euros.as_bytes(), &["strip = \"€\"", "currency = \"EUR\"", "\"amount\":\"2.2\""]);
    let directed = "ticker,date,factor,type\nA,2024-06-06,4,Forward Split\nB,2024-06-06,10,Reverse Split\n";
    check(
        "splits.csv",
        directed.as_bytes(),
        &["direction = \"type\"", "\"Reverse Split\" = \"reverse\"", "\"from\":\"10\"", "\"to\":\"4\""],
    );
    let bare = propose("splits.csv", b"ticker,date,factor\nA,2024-06-06,4\n").unwrap();
    assert!(bare.contains("# ratio = …"), "{bare}");
    check(
        "prices.csv",
        b"Ticker,Name,2024-01-02,2024-01-03\nKO,Coca-Cola,60,61\n",
        &[
            "symbol = 1",
            "name = \"{date}\"",
            "skip = [\"Name\"]",
            "\"date\":\"2024-01-03\"",
            "\"close\":\"61\"",
        ],
    );
}

#[test]
fn rows_of_several_tickers_are_not_of_the_file_s_name() {
    let table = b"Company,Code,Ex-Div Date,Dividend\nVodafone,VOD,2023-11-23,3.85p\nBP,BP,2023-11-09,5.94p\n";
    check("LSE.csv", table, &["symbol = \"Code\"", "check: is it the symbol?", "\"symbol\":\"VOD\""]);
    let splits = b"Ticker,Date,Factor,Action\nA,2024-01-02,4,Forward\nB,2024-01-03,3 for 2,Reverse\n";
    lacks("s.csv", splits, "would be rejected");
    check(
        "g.csv",
        b"Date;Kurs\n02.01.2024;1.234,50\n15.01.2024;1.235,50\n",
        &["close = \"Kurs\"", "decimal = \",\""],
    );
}

#[test]
fn json_and_old_encodings_are_proposed_too() {
    let list = br#"[{"ticker":"KO","exDate":"2024-03-14","payDate":"2024-04-01","amount":0.485}]"#;
    check("d.json", list, &["kind = \"dividend\"", "ex_date = \"exDate\"", "\"ex_date\":\"2024-03-14\""]);
    let nested = br#"{"symbol":"KO","quote":{"days":[{"date":"2024-03-14","price":{"open":59,"high":61,"low":58,"close":60.1}}]}}"#;
    check("KO.json", nested, &["records = \"quote.days\"", "close = \"price.close\"", "\"close\":\"60.1\""]);
    let page = br#"{"symbol":"KO","historical":[{"date":"2024-03-14","dividend":0.485,"paymentDate":"2024-04-01"}]}"#;
    check("x.json", page, &["records = \"historical\"", "symbol = \"symbol\"", "\"amount\":\"0.485\""]);
    check(
        "p.ndjson",
        b"{\"s\":\"KO\",\"ticker\":\"KO\",\"date\":\"2024-03-14\",\"close\":60}\n",
        &["\"close\":\"60\""],
    );
    assert!(refused("x.json", br#"{"2024-03-14":{"close":60}}"#).contains("list of records"));
    let german = "Kurse;;;;\nDatum;Er\u{f6}ffnung;Hoch;Tief;Schluss\n15.01.2024;1,5;1,6;1,4;1,485\n";
    let bytes: Vec<u8> = german.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let found = propose("SAP.csv", &bytes).unwrap();
    assert!(found.contains("1.485") && !found.contains('\u{fffd}'), "{found}");
}
