use std::sync::Arc;

use super::super::{ColumnMap, MapFile, ReaderOptions, SHIPPED};
use super::read_helper::{bodies, options, read_with};

fn under(map: &str) -> ReaderOptions {
    ReaderOptions { map: Some(Arc::new(ColumnMap::parse(map).unwrap())), ..options() }
}

fn shipped(name: &str) -> ReaderOptions {
    ReaderOptions { map: Some(MapFile::open(name).unwrap().map), ..options() }
}

fn wrong(map: &str, parts: &[&str]) {
    let message = ColumnMap::parse(map).unwrap_err().to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn json_says_where_its_records_are() {
    let map = "kind = \"dividend\"\n[file]\nrecords = \"data.rows\"\n[columns]\nsymbol = \"ticker\"\nex_date = \"date\"\namount = \"dividend\"\n";
    let read = |text: &str| {
        let options = ReaderOptions { map: Some(Arc::new(ColumnMap::parse(map).unwrap())), ..options() };
        bodies("d.json", text, &options).map(|_| read_with("d.json", text, &options))
    };
    let row = r#"{"date":"2020-8-7","dividend":0.82,"label":"August 07, 20"}"#;
    let expected = Ok(vec!["dividend AAPL 2020-08-07 0.82 - regular raw".to_owned()]);
    assert_eq!(read(&format!(r#"{{"data":{{"ticker":"AAPL","rows":[{row}]}}}}"#)), expected);
    assert_eq!(read(&format!(r#"{{"data":[{{"ticker":"AAPL","rows":[{row}]}}]}}"#)), expected);
    assert!(read(r#"{"data":{"other":[]}}"#).unwrap_err().contains("file.records"));
    let nested = format!("{{\"data\":{{\"rows\":{}{row}{}}}}}", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(read(&nested).unwrap(), ["reject 1 malformed_row: is not a JSON object"]);
    let without = r#"{"data":{"rows":[{"day":"2020-08-07"},{}]}}"#;
    let missing = |row| format!("reject {row} missing_field: symbol is required and empty: fill it in");
    assert_eq!(read(without).unwrap(), [missing(1), missing(2)], "no record is passed over in silence");
    let table = ReaderOptions { map: Some(Arc::new(ColumnMap::parse(map).unwrap())), ..options() };
    assert!(bodies("d.csv", "ticker,date,dividend\n", &table).unwrap_err().contains("is a table"));
}

#[test]
fn every_shipped_map_is_good() {
    for (name, text) in SHIPPED {
        assert!(ColumnMap::parse(text).is_ok(), "{name}: {:?}", ColumnMap::parse(text));
    }
}

#[test]
fn a_headerless_file_in_ten_thousandths_is_read() {
    assert_eq!(
        read_with(
            "aapl.zip/aapl.csv",
            "20140102 00:00,5553700,5571400,5520500,5530801,58791957\n",
            &shipped("lean")
        ),
        ["price AAPL 2014-01-02 o=555.3700 h=557.1400 l=552.0500 c=553.0801 v=58791957 raw"]
    );
}

#[test]
fn a_german_table_is_read() {
    let text = "Datum;Eröffnung;Hoch;Tief;Schluss;Volumen\n02.01.2024;1.139,50;1.140,00;1.130,25;1.132,4;12.345;\n03.01.2024;1.5;;;1,5;-\n";
    let options = ReaderOptions {
        map: Some(Arc::new(ColumnMap::parse(&SHIPPED[0].1.replace("windows-1252", "utf-8")).unwrap())),
        ..options()
    };
    let found = read_with("SAP.csv", text, &options);
    assert_eq!(found[0], "price SAP 2024-01-02 o=1139.50 h=1140.00 l=1130.25 c=1132.40 v=12345 raw");
    assert!(found[1].starts_with("reject 3 bad_number: open \"1.5\" does not group"), "{found:?}");
}

#[test]
fn exports_with_signs_and_units_are_read() {
    let nasdaq = "Date,Close/Last,Volume,Open,High,Low\n01/02/2024,\"$1,185.64\",\"82,488,670\",$1187.15,$1188.44,$1183.885\n";
    let options = ReaderOptions { symbol: market::symbol::Symbol::parse("AAPL").ok(), ..shipped("nasdaq") };
    assert_eq!(
        read_with("HistoricalData_1700000000000.csv", nasdaq, &options),
        ["price AAPL 2024-01-02 o=1187.150 h=1188.440 l=1183.885 c=1185.640 v=82488670 split_adjusted"]
    );
    let investing = "\u{feff}\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"\n\"01/02/2024\",\"185.64\",\"187.15\",\"188.44\",\"183.89\",\"82.49M\",\"-3.58%\"\n\"Jan 03, 2024\",\"184.25\",\"\",\"\",\"\",\"-\",\"0%\"\n";
    let options = ReaderOptions { symbol: options.symbol, ..shipped("investing") };
    assert_eq!(
        read_with("Apple Stock Price History.csv", investing, &options),
        [
            "price AAPL 2024-01-02 o=187.15 h=188.44 l=183.89 c=185.64 v=82490000 split_adjusted",
            "price AAPL 2024-01-03 o=- h=- l=- c=184.25 v=- split_adjusted",
        ]
    );
}

#[test]
fn a_wide_table_has_a_row_for_each_symbol() {
    let text = "Price,Close,Close,Adj Close,Open,Open\nTicker,AAPL,BRK-B,AAPL,AAPL,BRK-B\nDate,,,,,\n2024-01-02,185.64,362.5,184,187.15,\n2024-01-03,,365,,,\n";
    let map = SHIPPED.iter().find(|(name, _)| *name == "yfinance-wide").unwrap().1;
    let map = map.replace("high = \"High\"\nlow = \"Low\"\n", "").replace("volume = \"Volume\"\n", "");
    assert_eq!(
        read_with("x.csv", text, &under(&map)),
        [
            "price AAPL 2024-01-02 o=187.15 h=- l=- c=185.64 v=- split_adjusted",
            "price BRK.B 2024-01-02 o=- h=- l=- c=362.5 v=- split_adjusted",
            "price BRK.B 2024-01-03 o=- h=- l=- c=365.0 v=- split_adjusted",
        ]
    );
}

#[test]
fn wide_tables_invent_no_symbol() {
    let map =
        "kind = \"price\"\n[columns]\ndate = \"Date\"\n[wide]\nname = \"{symbol}\"\nvalue = \"close\"\n";
    let text = "Date,AAPL,Average\n2024-01-02,1,2\n";
    let refusal = bodies("x.csv", text, &under(map)).unwrap_err();
    assert!(refusal.contains("\"Average\"") && refusal.contains("wide.skip"), "{refusal}");
    let skipping = format!("{map}skip = [\"Average\"]\n");
    assert_eq!(
        read_with("x.csv", text, &under(&skipping)),
        ["price AAPL 2024-01-02 o=- h=- l=- c=1 v=- raw"]
    );
    let renaming = format!("{map}[aliases.symbol]\nAverage = \"SPY\"\n");
    assert_eq!(read_with("x.csv", text, &under(&renaming)).len(), 2);
}

#[test]
fn columns_of_dates_are_rows_too() {
    let map = "kind = \"price\"\n[columns]\nsymbol = \"Ticker\"\n[dates]\nformat = \"DD/MM/YY\"\n[wide]\nname = \"{date}\"\nvalue = \"close\"\n";
    assert_eq!(
        read_with("x.csv", "Ticker,02/01/24,03/01/24\nKO,60,61\n", &under(map)),
        ["price KO 2024-01-02 o=- h=- l=- c=60 v=- raw", "price KO 2024-01-03 o=- h=- l=- c=61 v=- raw"]
    );
}

#[test]
fn aliases_constants_and_passed_over_rows_shape_dividends() {
    let map = "kind = \"dividend\"\n[columns]\nsymbol = \"Stock\"\nex_date = \"Ex\"\namount = \"Cash\"\ntype = \"What\"\n\
        [constants]\ncurrency = \"GBX\"\n[symbols]\nsuffix = \".L\"\n[aliases.type]\nOther = \"irregular\"\n[aliases.symbol]\nVodafone = \"VOD.L\"\n\
        [rows]\nskip_without = [\"amount\"]\nabsent = [\"?\"]\n";
    let text = "Stock,Ex,Cash,What\nVodafone,2024-01-02,4.5,Other\nBP,2024-01-02,5,?\nBP,2024-01-03,0.00,\n";
    assert_eq!(
        read_with("x.csv", text, &under(map)),
        [
            "dividend VOD.L 2024-01-02 0.045 GBP irregular raw",
            "dividend BP.L 2024-01-02 0.05 GBP regular raw"
        ]
    );
}

#[test]
fn a_vendors_word_for_the_type_tells_payments_of_a_day_apart() {
    let map = "kind = \"dividend\"\n[columns]\nsymbol = \"Stock\"\nex_date = \"Ex\"\namount = \"Cash\"\ntype_text = \"What\"\n\
        [constants]\ncurrency = \"USD\"\n";
    let text = "Stock,Ex,Cash,What\nKO,2024-01-02,0.10,Income\nKO,2024-01-02,0.12,Capital gain\n";
    assert_eq!(
        read_with("x.csv", text, &under(map)),
        [
            "dividend KO 2024-01-02 0.1 USD regular raw",
            "dividend KO 2024-01-02 0.12 USD regular raw beside 0.1"
        ]
    );
}

#[test]
fn json_is_read_by_names_and_paths() {
    let map = "kind = \"price\"\n[columns]\nsymbol = \"sym\"\ndate = \"t\"\nclose = \"quote.c\"\n[dates]\nformat = \"unix\"\n";
    let expected = ["price KO 2024-01-02 o=- h=- l=- c=60.10 v=- raw"];
    assert_eq!(
        read_with("x.ndjson", "{\"sym\":\"KO\",\"t\":1704153600,\"quote\":{\"c\":60.10}}\n", &under(map)),
        expected
    );
    assert_eq!(
        read_with(
            "x.json",
            "{\"sym\":\"KO\",\"data\":[{\"t\":1704153600,\"quote\":{\"c\":60.10}}]}",
            &under(map)
        ),
        expected
    );
}

#[test]
fn splits_may_have_one_ratio() {
    let map = "kind = \"split\"\n[columns]\nex_date = 1\nratio = 2\n[file]\nheader = 0\n";
    assert_eq!(
        read_with("AAPL.csv", "2020-08-31,4:1\n2014-06-09,7.0\n", &under(map)),
        ["split AAPL 2020-08-31 1:4", "split AAPL 2014-06-09 1:7"]
    );
}

#[test]
fn a_file_that_does_not_fit_says_which_key() {
    let map = "kind = \"price\"\n[columns]\ndate = \"Date\"\nclose = \"Last\"\n";
    let refusal = bodies("KO.csv", "Date,Close\n", &under(map)).unwrap_err();
    assert!(refusal.contains("columns.close") && refusal.contains("Date, Close"), "{refusal}");
    let doubtful = bodies("div_KO.csv", "Date,Last\n", &under(map)).unwrap_err();
    assert!(doubtful.contains("--symbol"), "{doubtful}");
}

#[test]
fn mistakes_are_told_with_their_line_and_what_is_allowed() {
    wrong("kind = \"prise\"\n", &["line 1", "price", "dividend"]);
    wrong("kind = \"price\"\n[columns]\ndate = 1\ncolse = 2\n", &["line 4", "columns.colse", "close"]);
    wrong("kind = \"price\"\ncolums = 1\n", &["line 2", "colums", "columns"]);
    wrong("kind = \"price\"\n[columns]\ndate = 0\n", &["line 3", "number from 1"]);
    wrong(
        "kind = \"price\"\n[columns]\ndate = 1\nclose = 2\n[scale]\nclose = 0.01\n",
        &["line 6", "in quotes"],
    );
    wrong(
        "kind = \"price\"\n[columns]\ndate = 1\nclose = 2\n[dates]\nformat = \"DD.MM\"\n",
        &["line 6", "YYYY"],
    );
    wrong(
        "kind = \"price\"\n[file]\nheader = 0\n[columns]\ndate = \"D\"\nclose = 2\n",
        &["line 5", "number"],
    );
    wrong("kind = \"price\"\n[file]\ndelimiter = \"semicolon\"\n", &["line 3", "\";\""]);
    wrong("kind = \"price\"\n[columns]\ndate = 1\n", &["close", "[columns]"]);
    wrong("kind = \"dividend\"\n[columns]\namount = 1\n", &["ex_date"]);
    wrong("kind = \"price\"\n[wide]\nname = \"{symbol}\"\n", &["line 3", "wide.value"]);
    wrong(
        "kind = \"price\"\n[numbers]\ndecimal = \",\"\nthousands = \",\"\n",
        &["line 4", "numbers.thousands"],
    );
    wrong("kind = \n", &["line 1"]);
}

#[test]
fn a_map_is_part_of_an_inputs_identity_and_its_comments_are_not() {
    let map = "kind = \"split\"\n[columns]\nex_date = 1\nratio = 2\n";
    let other = map.replace("ratio = 2", "ratio = 3");
    let commented = format!("# of a friend\n{map}");
    let digest = |text: &str| ColumnMap::parse(text).unwrap().digest.to_owned();
    assert_eq!(digest(map), digest(&commented));
    assert_ne!(digest(map), digest(&other));
}

#[test]
fn a_unit_in_each_cell_is_its_currency() {
    let map = "kind = \"dividend\"\n[columns]\nsymbol = \"s\"\nex_date = \"d\"\namount = \"a\"\n[units]\np = \"GBX\"\n\"$\" = \"USD\"\n\"€\" = \"EUR\"\n";
    let text =
        "s,d,a\nVOD.L,2024-01-02,2.3p\nKO,2024-01-03,$0.75\nSAP.DE,2024-01-04,1.10 €\nX,2024-01-05,5\n";
    assert_eq!(
        read_with("x.csv", text, &under(map)),
        [
            "dividend VOD.L 2024-01-02 0.023 GBP regular raw",
            "dividend KO 2024-01-03 0.75 USD regular raw",
            "dividend SAP.DE 2024-01-04 1.1 EUR regular raw",
            "reject 5 bad_value: the number has no unit of the map's [units]: add the unit there, or set constants.currency",
        ]
    );
    let fallback = format!("{map}[constants]\ncurrency = \"CHF\"\n");
    let found = read_with("x.csv", text, &under(&fallback));
    assert!(found[0].contains("0.023 GBP") && found[3].contains("X 2024-01-05 5 CHF"), "{found:?}");
    let column = map.replace("amount = \"a\"\n", "amount = \"a\"\ncurrency = \"c\"\n");
    let found = read_with("x.csv", "s,d,a,c\nKO,2024-01-02,$1,EUR\nKO,2024-01-03,$1,USD\n", &under(&column));
    assert!(found.iter().any(|row| row.contains("bad_value")) && found.len() == 2, "{found:?}");
    wrong(
        "kind = \"split\"\n[columns]\nex_date = 1\nratio = 2\n[units]\np = \"GBX\"\n",
        &["line 6", "[units]"],
    );
    wrong(&map.replace("GBX", "pence"), &["[units]", "GBX"]);
}

#[test]
fn prices_have_a_currency_or_a_unit() {
    let map = "kind = \"price\"\n[columns]\ndate = \"d\"\nclose = \"c\"\nopen = \"o\"\n[constants]\ncurrency = \"GBX\"\n";
    let pence = ["price VOD.L 2024-01-02 o=0.7000 h=- l=- c=0.7235 v=- raw"];
    assert_eq!(read_with("VOD.L.csv", "d,o,c\n2024-01-02,70,72.35\n", &under(map)), pence);
    let dollars = map.replace("GBX", "USD");
    let found = read_with("KO.csv", "d,o,c\n2024-01-02,70,72.35\n", &under(&dollars));
    assert!(found[0].contains("c=72.35"), "{found:?}");
    let units = map.replace("[constants]\ncurrency = \"GBX\"", "[units]\np = \"GBX\"");
    assert_eq!(read_with("VOD.L.csv", "d,o,c\n2024-01-02,70p,72.35p\n", &under(&units)), pence);
}

#[test]
fn another_column_gives_the_direction_of_a_ratio() {
    let map = "kind = \"split\"\n[columns]\nsymbol = 1\nex_date = 2\nratio = 3\ndirection = 4\n\
        [aliases.direction]\nSplit = \"forward\"\n\"Reverse Split\" = \"reverse\"\n";
    let text = "s,d,f,t\nA,2024-01-02,4,Split\nB,2024-01-02,10,Reverse Split\nC,2024-01-02,0.1,Reverse Split\nD,2024-01-02,2,Bonus\n";
    let found = read_with("x.csv", text, &under(map));
    assert_eq!(found[..3], ["split A 2024-01-02 1:4", "split B 2024-01-02 10:1", "split C 2024-01-02 10:1"]);
    assert!(found[3].contains("bad_value") && found[3].contains("aliases.direction"), "{found:?}");
    wrong(
        "kind = \"split\"\n[columns]\nex_date = 1\nfrom = 2\nto = 3\ndirection = 4\n",
        &["direction", "ratio"],
    );
}

#[test]
fn dates_across_are_ex_dates_of_dividends() {
    let map = "kind = \"dividend\"\n[columns]\nsymbol = \"Ticker\"\n[constants]\ncurrency = \"USD\"\n[wide]\nname = \"{date}\"\nvalue = \"amount\"\n[rows]\nskip_without = [\"amount\"]\n";
    assert_eq!(
        read_with("x.csv", "Ticker,2024-01-02,2024-03-03\nKO,0.46,0\n", &under(map)),
        ["dividend KO 2024-01-02 0.46 USD regular raw"]
    );
}

#[test]
fn a_zone_gives_the_local_day_of_a_utc_time() {
    let map =
        "kind = \"price\"\n[columns]\nsymbol = 1\ndate = 2\nclose = 3\n[dates]\nzone = \"Europe/Berlin\"\n";
    let found = read_with("x.csv", "s,d,c\nSAP,2021-06-30 22:00:00+00:00,1\nSAP,2021-07-05,2\n", &under(map));
    assert!(found[0].starts_with("price SAP 2021-07-01 ") && found[1].starts_with("price SAP 2021-07-05 "));
    let unix = map.replace("zone", "format = \"unix\"\nzone");
    assert!(
        read_with("x.csv", "s,d,c\nSAP,1625090400,1\n", &under(&unix))[0]
            .starts_with("price SAP 2021-07-01 ")
    );
    let without = unix.replace("zone = \"Europe/Berlin\"\n", "");
    let found = read_with("x.csv", "s,d,c\nSAP,1625090400,1\n", &under(&without));
    assert!(found[0].contains("intraday_row") && found[0].contains("dates.zone"), "{found:?}");
    wrong(&map.replace("Europe/Berlin", "Berlin"), &["line 7", "America/New_York"]);
}

#[test]
fn a_line_of_totals_is_skipped() {
    let map = "kind = \"dividend\"\n[columns]\nsymbol = \"s\"\nex_date = \"d\"\namount = \"a\"\n[constants]\ncurrency = \"USD\"\n\
        [rows]\nabsent = [\"Total\"]\nskip_without = [\"ex_date\"]\n";
    for total in ["Total,,0.46", ",Total,0.46", ",Total"] {
        let text = format!("s,d,a\nKO,2024-01-02,0.46\n{total}\n");
        assert_eq!(read_with("x.csv", &text, &under(map)), ["dividend KO 2024-01-02 0.46 USD regular raw"]);
    }
}

#[test]
fn a_map_for_one_symbol_does_not_read_a_column_of_symbols() {
    let map = "kind = \"price\"\n[columns]\ndate = \"Date\"\nclose = \"Close\"\n";
    let text = "Date,Ticker,Close\n2024-01-02,KO,60\n2024-01-02,PEP,170\n";
    assert!(bodies("KO.csv", text, &under(map)).unwrap_err().contains("columns.symbol = \"Ticker\""));
    let json = r#"[{"Date":"2024-01-02","ticker":"KO","Close":60}]"#;
    assert!(bodies("KO.json", json, &under(map)).unwrap_err().contains("columns.symbol"));
}

#[test]
fn a_map_selects_rows_by_the_words_of_a_column() {
    let map = |only: &str| {
        format!(
            "kind = \"price\"\n[columns]\nsymbol = \"SYMBOL\"\ndate = \"DATE\"\nclose = \"CLOSE\"\n[rows]\nonly = {only}\n"
        )
    };
    let text = "SYMBOL,SERIES,BOARD,CLOSE,DATE\nABX,EQ,A,10.6,2019-01-01\nBBX,BE,A,10.2,2019-01-01\nCBX,GB,B,99,2019-01-01\n";
    let read = |only: &str| read_with("x.csv", text, &under(&map(only))).len();
    assert_eq!(read("{ SERIES = \"EQ\" }"), 1);
    assert_eq!(read("{ series = [\"EQ\", \"BE\"] }"), 2);
    assert_eq!(read("{ SERIES = [\"EQ\", \"GB\"], BOARD = \"B\" }"), 1);
    let missing = bodies("x.csv", text, &under(&map("{ KIND = \"EQ\" }"))).unwrap_err();
    assert!(missing.contains("no column \"KIND\" (rows.only"), "{missing}");
    let list = r#"[{"SYMBOL":"ABX","SERIES":"EQ","DATE":"2019-01-01","CLOSE":1},{"SYMBOL":"ABX","DATE":"2019-01-02","CLOSE":1}]"#;
    assert_eq!(read_with("x.json", list, &under(&map("{ SERIES = \"EQ\" }"))).len(), 1);
    let headerless = "kind = \"price\"\nfile = { header = 0 }\ncolumns = { symbol = 1, close = 3, date = 4 }\nrows = { only = { 2 = \"EQ\" } }\n";
    let rows = read_with("x.csv", "ABX,EQ,10.6,2019-01-01\nABX,BE,10.2,2019-01-01\n", &under(headerless));
    assert_eq!(rows.len(), 1, "{rows:?}");
    wrong(&headerless.replace("2 =", "SERIES ="), &["rows.only.SERIES is a name, but file.header = 0"]);
}

#[test]
fn a_header_states_the_scale_of_its_numbers() {
    let map = "kind = \"price\"\n[columns]\nsymbol = \"s\"\ndate = \"d\"\nclose = \"c\"\nvolume = \"V\"\n";
    let volume = |header: &str, cell: &str, more: &str| {
        let map = map.replace("\"V\"", &format!("\"{header}\"")) + more;
        let rows = read_with("x.csv", &format!("s,d,c,{header}\nKO,2024-01-02,60,{cell}\n"), &under(&map));
        rows[0].split(" v=").nth(1).unwrap_or(&rows[0]).to_owned()
    };
    assert_eq!(volume("Vol (k)", "12.345", ""), "12345 raw");
    assert_eq!(volume("Volume (m)", "1.234567", ""), "1234567 raw");
    assert_eq!(volume("Volume ('000)", "12", ""), "12000 raw");
    assert_eq!(volume("Volume (shares)", "12", ""), "12 raw");
    assert_eq!(volume("Vol (k)", "12", "[scale]\nvolume = \"1\"\n"), "12 raw", "the map decides");
}

#[test]
fn an_unknown_amount_is_no_row_to_skip() {
    let map = "kind = \"dividend\"\n[columns]\nsymbol = \"s\"\nex_date = \"d\"\namount = \"a\"\n[constants]\ncurrency = \"USD\"\n\
        [rows]\nskip_without = [\"amount\"]\n";
    let read =
        |cell: &str, map: &str| read_with("x.csv", &format!("s,d,a\nKO,2024-01-02,{cell}\n"), &under(map));
    for word in ["n/a", "N/A", "null"] {
        let rows = read(word, map);
        assert!(rows.len() == 1 && rows[0].contains("missing_field"), "{word}: {rows:?}");
        assert!(rows[0].contains(&format!("amount {word:?} is no value")), "{rows:?}");
        let listed = map.replace("[rows]\n", &format!("[rows]\nabsent = [{word:?}]\n"));
        assert_eq!(read(word, &listed), [""; 0]);
    }
    assert_eq!(read("", map), [""; 0]);
    assert_eq!(read("0.00", map), [""; 0]);
}
