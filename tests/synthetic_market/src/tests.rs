//! Tests that write a synthetic market to files and check the rows of these files.

mod currencies;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use market::symbol::Symbol;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("generate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
        entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Rows = Vec<BTreeMap<String, String>>;

fn rows(files: &BTreeMap<String, Vec<u8>>, kind: &str) -> Rows {
    let mut rows = Rows::new();
    for (_, bytes) in files.iter().filter(|(name, _)| name.starts_with(kind)) {
        let text = std::str::from_utf8(bytes).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let header = lines.next().unwrap();
        for cells in lines {
            assert_eq!(cells.len(), header.len(), "{kind}: {cells:?}");
            rows.push(header.iter().cloned().zip(cells).collect());
        }
    }
    rows
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

const UNTIL: &str = "2025-11-20";

fn write(folder: &Folder, symbols: u64, years: u32, seed: u64, threads: usize) -> RowCounts {
    let market = SyntheticMarket::new(symbols, years, seed, date(UNTIL)).unwrap();
    market_writer::write_market(&market, &folder.0, threads, &ProgressBar::hidden()).unwrap()
}

fn market(name: &str, symbols: u64, years: u32) -> BTreeMap<String, Vec<u8>> {
    let folder = Folder::new(name);
    write(&folder, symbols, years, 1, 2);
    folder.bytes()
}

fn words(rows: &Rows, column: &str) -> BTreeSet<String> {
    rows.iter().map(|row| row[column].clone()).collect()
}

fn check_words(rows: &Rows, column: &str, expected: &[&str]) {
    let found = words(rows, column);
    for word in expected {
        assert!(found.contains(*word), "no {column} is {word:?}: {found:?}");
    }
}

#[test]
fn the_same_arguments_give_the_same_bytes_on_any_number_of_threads() {
    let (one, three, other) = (Folder::new("one"), Folder::new("three"), Folder::new("other"));
    let counts = write(&one, 70, 2, 5, 1);
    write(&three, 70, 2, 5, 3);
    write(&other, 70, 2, 6, 1);
    assert!(one.bytes() == three.bytes());
    assert!(one.bytes() != other.bytes());
    assert_eq!(counts.bytes, one.bytes().values().map(|bytes| bytes.len() as u64).sum::<u64>());
    assert_eq!(counts.files, one.bytes().len() as u64);
}

#[test]
fn sixty_securities_show_every_kind() {
    let files = market("kinds", 60, 12);
    let securities = rows(&files, "securities");
    let types = ["stock", "etf", "adr", "reit", "mlp", "preferred", "closed_end_fund", "trust"];
    check_words(&securities, "type", &types);
    check_words(&securities, "exchange", &["XNYS", "XNAS", "ARCX", "XASE"]);
    check_words(&securities, "status", &["active", "delisted"]);
    check_words(&securities, "indexes", &["", "sp500"]);
    check_words(&securities, "sector", &naming::SECTORS.map(|(sector, _)| sector));
    assert!(words(&securities, "country").len() >= 3);
    assert!(securities.iter().all(|row| row["name"].starts_with("Synthetic ")));
    assert!(securities.iter().any(|row| !row["dividend_suspended_on"].is_empty()));
    assert!(
        securities.iter().any(|row| row["streak_seed_years"].parse::<i32>().is_ok_and(|years| years >= 40))
    );
    let suffixes: BTreeSet<&str> =
        securities.iter().filter_map(|row| Some(row["symbol"].split_once('.')?.1)).collect();
    assert_eq!(suffixes, BTreeSet::from(["A", "B", "PRA", "L", "DE", "SW"]));
}

#[test]
fn familiar_tickers_change_names_and_no_figure() {
    let (plain, familiar) = (Folder::new("plain"), Folder::new("familiar"));
    let market = || SyntheticMarket::new(60, 3, 7, date(UNTIL)).unwrap();
    market_writer::write_market(&market(), &plain.0, 2, &ProgressBar::hidden()).unwrap();
    let known = SyntheticMarket { familiar_tickers: true, ..market() };
    market_writer::write_market(&known, &familiar.0, 2, &ProgressBar::hidden()).unwrap();
    let (plain, familiar) = (plain.bytes(), familiar.bytes());

    let securities = rows(&familiar, "securities");
    let symbols = words(&securities, "symbol");
    let expected = ["SPY", "KO", "PEP", "JNJ", "MSFT", "AAPL", "O", "SCHD", "JPM", "JPM.PRA", "BF.A", "BF.B"];
    assert!(expected.iter().all(|symbol| symbols.contains(*symbol)), "{symbols:?}");
    assert_eq!(symbols.len(), 60, "no ticker is given twice");
    assert!(securities.iter().all(|row| row["name"].starts_with("Synthetic ")));
    let coca_cola = securities.iter().find(|row| row["symbol"] == "KO").unwrap();
    assert_eq!(
        (coca_cola["sector"].as_str(), coca_cola["industry"].as_str()),
        ("Consumer Staples", "Beverages")
    );
    for (kind, figure) in [("prices", "close"), ("dividends", "amount"), ("splits", "to")] {
        let figures =
            |files| -> Vec<String> { rows(files, kind).iter().map(|row| row[figure].clone()).collect() };
        assert_eq!(figures(&plain), figures(&familiar), "{kind}");
    }
}

#[test]
fn sixty_securities_show_every_distribution() {
    let files = market("distributions", 60, 12);
    let dividends = rows(&files, "dividends");
    let types = [
        "regular",
        "irregular",
        "special",
        "supplemental",
        "return_of_capital",
        "capital_gain_long",
        "capital_gain_short",
        "stock",
        "spin_off",
        "liquidation",
    ];
    check_words(&dividends, "type", &types);
    let frequencies = ["weekly", "monthly", "quarterly", "semi_annual", "annual", "irregular", ""];
    check_words(&dividends, "frequency", &frequencies);
    check_words(&dividends, "currency", &["USD", "EUR", "GBX"]);
    let declared = dividends.iter().filter(|row| date(&row["ex_date"]) > date(UNTIL));
    assert!(declared.clone().count() > 0);
    assert!(declared.clone().all(|row| date(&row["declaration_date"]) <= date(UNTIL)));

    let splits = rows(&files, "splits");
    let ratios: BTreeSet<(&str, &str)> =
        splits.iter().map(|row| (row["from"].as_str(), row["to"].as_str())).collect();
    assert_eq!(ratios, BTreeSet::from([("1", "2"), ("2", "3"), ("1", "4"), ("1", "7"), ("10", "1")]));
    let days: BTreeSet<_> = dividends.iter().map(|row| (&row["symbol"], &row["ex_date"])).collect();
    assert!(
        splits.iter().any(|row| days.contains(&(&row["symbol"], &row["ex_date"]))),
        "no split on an ex-date"
    );
}

#[test]
fn figures_make_an_aristocrat_a_loss_and_a_property_trust() {
    let files = market("figures", 60, 12);
    let figures = rows(&files, "fundamentals");
    let members: BTreeSet<String> = rows(&files, "securities")
        .into_iter()
        .filter(|row| row["indexes"] == "sp500")
        .map(|row| row["symbol"].clone())
        .collect();
    let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f64>().unwrap_or(0.0);
    let large = |row: &&BTreeMap<String, String>| {
        number(row, "float_market_cap") >= 3e9 && number(row, "avg_daily_value") >= 5e6
    };
    assert_eq!(
        figures.iter().filter(|row| members.contains(&row["symbol"])).filter(large).count(),
        members.len()
    );
    assert!(figures.iter().any(|row| number(row, "eps_ttm") < 0.0));
    assert!(figures.iter().any(|row| number(row, "ffo_per_share_ttm") > number(row, "eps_ttm") * 2.0));
}

#[test]
fn bars_are_consistent_ascending_and_on_sessions() {
    let files = market("bars", 60, 3);
    let mut last: BTreeMap<String, NaiveDate> = BTreeMap::new();
    let cents = |text: &str| text.replace('.', "").parse::<u64>().unwrap();
    for row in rows(&files, "prices") {
        let [open, high, low, close] = ["open", "high", "low", "close"].map(|column| cents(&row[column]));
        assert!(0 < low && low <= open.min(close) && open.max(close) <= high, "{row:?}");
        assert!(row["volume"].parse::<u64>().unwrap() > 0);
        let day = date(&row["date"]);
        assert!(market::metrics::calendar::is_session(day) && day <= date(UNTIL), "{day}");
        let before = last.insert(row["symbol"].clone(), day);
        assert!(before.is_none_or(|before| before < day), "{row:?}");
    }
    assert_eq!(last["SPY"], date(UNTIL));
    assert!(last.values().any(|day| *day < date("2025-06-01")), "nothing was delisted");
}

#[test]
fn ex_dates_are_sessions_and_amounts_stay_below_the_price() {
    let files = market("amounts", 60, 30);
    let mut closes: BTreeMap<(String, NaiveDate), f64> = BTreeMap::new();
    for row in rows(&files, "prices") {
        closes.insert((row["symbol"].clone(), date(&row["date"])), row["close"].parse().unwrap());
    }
    let past = rows(&files, "dividends").into_iter().filter(|row| date(&row["ex_date"]) <= date(UNTIL));
    for row in past.filter(|row| row["currency"] == "USD") {
        let close = closes[&(row["symbol"].clone(), date(&row["ex_date"]))];
        let large = matches!(row["type"].as_str(), "liquidation" | "spin_off");
        assert!(large || row["amount"].parse::<f64>().unwrap() < close / 5.0, "{row:?} on {close}");
    }
}

#[test]
fn faults_are_listed_and_change_no_other_security() {
    let (sound, one, three) =
        (market("sound", 300, 10), Folder::new("faulty-one"), Folder::new("faulty-three"));
    let with_faults = |fault_percent| SyntheticMarket {
        fault_percent,
        ..SyntheticMarket::new(300, 10, 1, date(UNTIL)).unwrap()
    };
    let faulty = || with_faults(100);
    let counts = market_writer::write_market(&faulty(), &one.0, 1, &ProgressBar::hidden()).unwrap();
    market_writer::write_market(&faulty(), &three.0, 3, &ProgressBar::hidden()).unwrap();
    let adjusted = |folder: &Folder| {
        let entries = std::fs::read_dir(folder.0.join("adjusted")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let files = |folder: &Folder| -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
        let plain = entries.filter(|path| path.is_file()).chain(adjusted(folder));
        plain
            .map(|path| {
                (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
            })
            .collect()
    };
    let written = files(&one);
    assert!(written == files(&three));
    assert_eq!(counts.files, written.len() as u64);
    assert_eq!(counts.bytes, written.values().map(|bytes| bytes.len() as u64).sum::<u64>());

    let planted = rows(&written, "planted");
    assert_eq!(planted.len() as u64, counts.planted);
    let kinds = [
        "near_duplicate",
        "untyped_special",
        "combined_payment",
        "contained_payment",
        "amount_dip",
        "missing_payment",
        "boundary_shift",
        "spin_off_as_split",
        "price_level",
        "share_basis",
        "dividends_missing",
        "supplement",
        "held_newest",
        "conflicting_closes",
        "level_break",
        "unexpected_ex_date",
        "translated_payment",
    ];
    assert_eq!(words(&planted, "kind"), kinds.map(str::to_owned).into());
    let symbols = words(&planted, "symbol");
    assert_eq!(symbols.len(), planted.len(), "one fault a security");
    assert!(!symbols.contains("SPY"));
    for kind in ["prices", "dividends", "splits"] {
        let others = |files: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
            let texts = files.iter().filter(|(name, _)| name.starts_with(kind));
            let lines = texts.flat_map(|(_, bytes)| std::str::from_utf8(bytes).unwrap().lines());
            lines
                .filter(|line| !symbols.contains(line.split(',').next().unwrap()))
                .map(str::to_owned)
                .collect()
        };
        assert!(others(&sound) == others(&written), "{kind}");
    }
    // With a fault percentage of 10, only a few of the 300 securities have a fault.
    let few = Folder::new("faulty-few");
    let planted =
        market_writer::write_market(&with_faults(10), &few.0, 2, &ProgressBar::hidden()).unwrap().planted;
    assert!((15..=40).contains(&planted), "{planted}");
    // Writing a market to the folder of an earlier market deletes the earlier files.
    write(&one, 10, 1, 1, 1);
    assert!(!one.0.join("adjusted").exists() && !one.0.join("planted.list").exists());
}

#[test]
fn holdings_are_whole_snapshots_of_known_securities() {
    let files = market("holdings", 60, 2);
    let known = words(&rows(&files, "securities"), "symbol");
    let mut sums: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows(&files, "holdings") {
        assert!(row["symbol"].is_empty() || known.contains(&row["symbol"]), "{row:?}");
        *sums.entry((row["etf_symbol"].clone(), row["as_of"].clone())).or_default() +=
            row["weight"].parse::<f64>().unwrap();
    }
    assert!(sums.len() >= 10 && sums.values().all(|sum| (sum - 100.0).abs() < 0.001), "{sums:?}");
}

#[test]
fn a_renamed_security_gives_its_ticker_to_the_next() {
    let files = market("renamed", 60, 6);
    let securities = rows(&files, "securities");
    let renamed = securities.iter().find(|row| !row["former_symbols"].is_empty()).unwrap();
    let (former, days) = renamed["former_symbols"].split_once('@').unwrap();
    let until = date(days.split_once("..").unwrap().1);
    let heir = securities.iter().find(|row| row["symbol"] == former).unwrap();
    assert!(date(&heir["ipo_date"]) > until);
    let first = rows(&files, "prices").into_iter().find(|row| row["symbol"] == renamed["symbol"]).unwrap();
    assert!(date(&first["date"]) > until);
}

#[test]
fn tickers_are_unique() {
    const LAST: u64 = naming::MAX_SYMBOLS;
    let indexes = || (0..100_000).chain(LAST - 50_000..LAST);
    let current = indexes().map(naming::ticker);
    let tickers: BTreeSet<String> = current.chain(indexes().map(naming::former_ticker)).collect();
    assert_eq!(tickers.len(), 300_000);
    assert!(tickers.iter().all(|ticker| Symbol::parse(ticker).is_ok_and(|symbol| symbol.as_str() == ticker)));
}

#[test]
fn the_smallest_and_the_longest_market_are_written() {
    for (name, symbols, years) in [("tiny", 1, 1), ("short", 61, 1), ("long", 60, 60)] {
        let files = market(name, symbols, years);
        assert_eq!(rows(&files, "securities").len() as u64, symbols, "{name}");
        assert!(rows(&files, "dividends").len() as u64 > symbols, "{name}");
    }
}

#[test]
fn only_a_folder_of_its_own_is_replaced() {
    let folder = Folder::new("own");
    write(&folder, 70, 1, 1, 1);
    write(&folder, 10, 1, 1, 1);
    assert!(!folder.bytes().contains_key("prices-0002.csv"));
    std::fs::write(folder.0.join("notes.txt"), "keep").unwrap();
    let market = SyntheticMarket::new(10, 1, 1, date(UNTIL)).unwrap();
    assert!(market_writer::write_market(&market, &folder.0, 1, &ProgressBar::hidden()).is_err());
    assert!(folder.bytes().contains_key("notes.txt") && folder.bytes().contains_key("prices-0001.csv"));
}

#[test]
fn revisions_take_rows_away_and_bring_them_back() {
    let (market, later) = (Folder::new("revised"), Folder::new("later"));
    let options = "generate --symbols 30 --years 5 --seed 7 --familiar-tickers --until 2024-06-28 --out";
    let arguments = options.split(' ').map(std::ffi::OsString::from).chain([market.0.clone().into()]);
    generate(&<GenerateArgs as clap::Parser>::try_parse_from(arguments).unwrap()).unwrap();
    let whole = rows(&market.bytes(), "dividends");
    write_revisions(&market.0, &later.0).unwrap();
    let earlier = rows(&market.bytes(), "dividends");
    let missing: Vec<_> = whole.iter().filter(|row| !earlier.contains(row)).collect();
    assert_eq!(missing.iter().map(|row| row["symbol"].as_str()).collect::<Vec<_>>(), ["KO", "PEP"]);
    assert_eq!(earlier.len(), whole.len() - 1);
    let file = |folder: &str, kind: &str| {
        let bytes = std::fs::read(later.0.join(folder).join(format!("{kind}.csv"))).unwrap();
        rows(&BTreeMap::from([(kind.to_owned(), bytes)]), kind)
    };
    assert_eq!(file("correction", "dividends"), [missing[0].clone()]);
    assert_eq!(file("late", "dividends"), [missing[1].clone()]);
    let wire = file("wire", "dividends");
    let desk = file("desk", "dividends");
    assert!(wire.len() == 1 && !whole.contains(&wire[0]), "{wire:?}");
    assert!(desk.len() == 24 && desk.iter().all(|row| whole.contains(row)), "{desk:?}");
    assert!(
        desk.iter().any(|row| row["ex_date"] == wire[0]["ex_date"] && row["symbol"] == wire[0]["symbol"])
    );
    let prices = rows(&market.bytes(), "prices");
    let bars = file("desk", "prices");
    assert_eq!(bars.iter().filter(|bar| !prices.contains(bar)).count(), 1, "one wrong bar");
    for revision in &REVISIONS {
        assert!(later.0.join(revision.folder).is_dir(), "{revision:?}");
    }
}
