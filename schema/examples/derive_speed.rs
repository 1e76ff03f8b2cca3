use chrono::{DateTime, Datelike, Days, NaiveDate, Weekday};
use rust_decimal::Decimal;
use schema::bars::*;
use schema::event::*;
use schema::history::*;
use schema::measure::*;
use schema::symbol::Symbol;
use std::time::Instant;
fn main() {
    let as_of = NaiveDate::from_ymd_opt(2024, 6, 28).unwrap();
    let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    let mut day = as_of - Days::new(365 * 30);
    let mut close = 5000i64;
    let mut x = 12345u64;
    while day <= as_of {
        if !matches!(day.weekday(), Weekday::Sat | Weekday::Sun) {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
            let r = ((x >> 33) % 401) as i64 - 200;
            close = (close + close * r / 10000).max(500);
            bars.push(
                Bar {
                    day: day_number(day),
                    open: close + 3,
                    high: close + 10,
                    low: close - 9,
                    close,
                    volume: 1000000,
                    vwap: MISSING,
                    trade_count: MISSING,
                },
                0,
            );
        }
        day = day + Days::new(1);
    }
    let sym = Symbol::parse("TEST").unwrap();
    let ob = |line: u64| (line, DateTime::UNIX_EPOCH);
    let mk = |line, record| Observation {
        source: "a".to_string(),
        id: Some(format!("id{line}")),
        security_ref: None,
        revision: 0,
        action: Action::Put,
        observed_at: ob(line).1,
        line,
        frame: "00".repeat(16),
        record,
    };
    let dividends: Vec<_> = (0..120u64)
        .map(|i| {
            mk(
                i,
                Dividend {
                    symbol: sym.clone(),
                    amount: Decimal::new(3000 + i as i64 * 10, 4),
                    currency: "USD".into(),
                    r#type: DividendType::Regular,
                    amount_basis: Basis::Raw,
                    ex_date: Some(as_of - Days::new(40 + 91 * (119 - i))),
                    record_date: Some(as_of - Days::new(39 + 91 * (119 - i))),
                    payment_date: Some(as_of - Days::new(20 + 91 * (119 - i))),
                    declaration_date: Some(as_of - Days::new(60 + 91 * (119 - i))),
                    frequency: Some(Frequency::Quarterly),
                    basis_as_of: None,
                },
            )
        })
        .collect();
    let splits = vec![Observation {
        source: "a".to_string(),
        id: None,
        security_ref: None,
        revision: 0,
        action: Action::Put,
        observed_at: DateTime::UNIX_EPOCH,
        line: 1,
        frame: String::new(),
        record: Split {
            symbol: sym.clone(),
            ex_date: as_of - Days::new(3000),
            from: 1.into(),
            to: 2.into(),
            declaration_date: None,
            payable_date: None,
            r#type: None,
        },
    }];
    let h = History {
        symbol: sym,
        former_symbols: vec![],
        security: None,
        dividends,
        splits,
        fundamentals: vec![],
        etf: vec![],
        holdings: vec![],
        prices: vec![SourceBars { source: "a".into(), bars }],
    };
    let policy = SourcePolicy::default();
    let b = benchmark(&h, as_of, &policy);
    let m = Market { as_of, benchmark: Some(&b), policy: &policy };
    let n: u32 = 2000;
    let t = Instant::now();
    let mut k = 0;
    for _ in 0..n {
        k += derive(&h, &m).dividends.len();
    }
    println!("derive {:?} each ({k})", t.elapsed() / n);
    let t = Instant::now();
    for _ in 0..n {
        k += h.prices[0].bars.clone().len();
    }
    println!("clone {:?}", t.elapsed() / n);
}
