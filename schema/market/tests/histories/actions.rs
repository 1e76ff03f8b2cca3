//! Tests for price-only actions such as spin-offs (R35). Such an action adjusts earlier prices, but not earlier share
//! counts, volumes or dividends.

use std::sync::Arc;

use chrono::NaiveDate;
use market::bars::BarVersion;
use market::metrics::DerivedRows;
use market::price::{CumulativeFactors, PriceBasis};
use market::row::Flag;
use rust_decimal::Decimal;

use crate::figures::{has, text};
use crate::lives::date;
use crate::tables::{Tables, derived_on, looking_back};

const QUARTERS: &str = "2022-02-14,0.08 2022-05-15,0.08 2022-08-14,0.08 2022-11-13,0.08 2023-02-14,0.08
    2023-05-15,0.08 2023-08-14,0.08 2023-11-13,0.08";

fn types(derived: &DerivedRows) -> Vec<String> {
    derived.splits.iter().map(|row| format!("{} {}", row.ex_date, row.r#type)).collect()
}

fn served(derived: &DerivedRows, day: &str, basis: PriceBasis) -> Decimal {
    let day: NaiveDate = date(day);
    let position = derived.bars.day.binary_search(&market::day::day_number(day)).expect("a session");
    let factors = CumulativeFactors::new(&derived.factors, None);
    let raw = derived.bars.decimal(derived.bars.close[position]).expect("a close");
    let factor = factors.at(factors.position(derived.bars.day[position]));
    market::decimal::round(factor.exact(raw, basis), 6)
}

#[test]
fn spin_offs_given_as_splits_leave_growth_as_declared() {
    let spun = Tables {
        splits: "2019-02-26,100,104 2021-08-02,8,1 2023-01-04,1000,1281 2024-04-02,1000,1253",
        dividends:
            "2021-03-05,0.01 2021-06-25,0.01 2021-09-27,0.08 2021-12-20,0.08 2022-02-14,0.08 2022-05-15,0.08
            2022-08-14,0.08 2022-11-13,0.08 2023-02-14,0.08 2023-05-15,0.08 2023-08-14,0.08 2023-11-13,0.08
            2024-03-07,0.08 2024-07-10,0.28 2024-09-26,0.28 2024-12-27,0.28",
        prices: "2023-01-03,83.79 2023-01-04,69.83 2024-04-01,175.28 2024-04-02,136.78 2024-12-31,166.79",
        ..Tables::default()
    };
    let found = spun.on("2024-01-31");
    assert_eq!(text(found.metrics.growth_1y), "0");
    // 104:100 is read as a spin-off, because other actions of the source are spin-offs.
    let read = ["2019-02-26 spin_off", "2021-08-02 reverse", "2023-01-04 spin_off", "2024-04-02 spin_off"];
    assert_eq!(types(&found), read);
    let later = spun.on("2024-12-31");
    assert_eq!(types(&later), read);
    assert_eq!(served(&later, "2024-04-01", PriceBasis::SPLIT), "139.888268".parse().expect("a price"));
    let before = later.dividends.iter().find(|row| row.ex_date == date("2024-03-07")).expect("a payment");
    assert_eq!(before.adjusted_amount, before.amount);
    // Before any other spin-off is known, 104:100 is a stock dividend.
    let early = looking_back("2020-01-31", "2024-12-31", &spun.history());
    assert_eq!(types(&early), ["2019-02-26 stock_dividend"]);
}

#[test]
fn a_price_only_action_leaves_shares_volumes_and_earnings() {
    let life = Tables {
        splits: "2023-01-04,1000,1281,spin_off",
        dividends: QUARTERS,
        prices: "2023-01-03,83.79,1000000 2023-01-04,69.83,1000000 2023-12-29,100,1000000",
        fundamentals: "2022-12-31,1000000000,5.00",
    };
    for kind in ["spin_off", "rights", "class_distribution"] {
        let splits = format!("2023-01-04,1000,1281,{kind}");
        let found = Tables { splits: &splits, ..life }.on("2023-12-29");
        assert_eq!(types(&found), [format!("2023-01-04 {kind}")]);
        assert_eq!(found.quote.shares_outstanding, Some(1_000_000_000));
        assert_eq!(found.quote.market_cap, Some(100_000_000_000));
        assert_eq!([found.quote.eps_ttm, found.quote.pe_ratio].map(text), ["5", "20"]);
        assert_eq!((found.quote.volume, found.quote.avg_volume_30d), (Some(1_000_000), Some(1_000_000)));
        assert_eq!(text(found.quote.year_low), "65.409836");
        assert_eq!(served(&found, "2023-01-03", PriceBasis::RAW), "83.79".parse().expect("a price"));
        let factors = CumulativeFactors::new(&found.factors, None);
        assert_eq!(factors.at(0).adjusted_volume(1_000_000), Some(1_000_000));
        let later = Tables { splits: &splits, ..life }.on("2024-01-31");
        assert_eq!(text(later.metrics.growth_1y), "0");
    }
    // The type in the feed decides, even for a ratio that looks like a spin-off.
    let shares = Tables { splits: "2023-01-04,1000,1281,forward", ..life }.on("2023-12-29");
    assert_eq!(types(&shares), ["2023-01-04 forward"]);
    assert_eq!(shares.quote.shares_outstanding, Some(1_281_000_000));
}

#[test]
fn ratios_without_a_type_are_read_by_their_terms() {
    let read = |splits: &str| types(&Tables { splits, ..Tables::default() }.on("2024-06-28"));
    for (ratio, expected) in [
        ("1000,1281", "spin_off"),
        ("4798,10000", "spin_off"),
        ("1,1.281", "spin_off"),
        ("5,4", "reverse"),
        ("11,6", "reverse"),
        ("100,105", "stock_dividend"),
        ("31,1000", "forward"),
        ("1,1.333333", "forward"),
        ("100,104", "stock_dividend"),
    ] {
        assert_eq!(read(&format!("2023-01-04,{ratio}")), [format!("2023-01-04 {expected}")], "{ratio}");
    }
    // A stock dividend of 3 % every year is not read as a spin-off.
    assert_eq!(
        read("2022-03-04,100,103 2023-03-03,100,103 2024-03-01,100,103"),
        ["2022-03-04 stock_dividend", "2023-03-03 stock_dividend", "2024-03-01 stock_dividend"]
    );
}

#[test]
fn a_share_count_that_moves_with_the_ratio_makes_it_a_split() {
    let read = |after: &str| {
        let fundamentals = format!("2022-12-31,1000000,5 2023-03-31,{after},5");
        let splits = "2023-01-04,1000,1281";
        types(&Tables { splits, fundamentals: &fundamentals, ..Tables::default() }.on("2024-06-28"))
    };
    assert_eq!(read("1281000"), ["2023-01-04 forward"]);
    assert_eq!(read("990000"), ["2023-01-04 spin_off"]);
}

#[test]
fn a_streak_over_a_spin_off_is_to_be_reviewed_and_goes_on() {
    let raised =
        "2021-02-15,0.07 2021-05-14,0.07 2021-08-13,0.07 2021-11-12,0.07 2022-02-14,0.08 2022-05-15,0.08
        2022-08-14,0.08 2022-11-13,0.08 2023-02-14,0.09 2023-05-15,0.09 2023-08-14,0.09 2023-11-13,0.09";
    let life = Tables { dividends: raised, ..Tables::default() };
    let spun = Tables { splits: "2022-01-04,1000,1281", ..life }.on("2024-01-31");
    let plain = life.on("2024-01-31");
    assert!(has(&spun, Flag::SpinOffReview) && !has(&plain, Flag::SpinOffReview));
    assert_eq!(spun.metrics.increase_streak_years, plain.metrics.increase_streak_years);
    assert_eq!(spun.metrics.growth_1y, plain.metrics.growth_1y);
}

#[test]
fn adjusted_prices_contain_a_spin_off_and_adjusted_volumes_do_not() {
    let raw = Tables {
        splits: "2023-01-04,1000,1250,spin_off 2023-06-05,1,2",
        prices: "2023-01-03,100,500 2023-01-04,80,500 2023-06-05,41,1000 2023-12-29,40,1000",
        ..Tables::default()
    };
    let adjusted = Tables {
        prices: "2023-01-03,40,1000 2023-01-04,40,1000 2023-06-05,41,1000 2023-12-29,40,1000",
        ..raw
    };
    let mut history = adjusted.history();
    Arc::make_mut(&mut history.prices[0].bars).versions =
        vec![BarVersion { basis_day: Some(0), ..BarVersion::UNKNOWN }];
    let (raw, adjusted) = (raw.on("2023-12-29"), derived_on("2023-12-29", &history));
    let bars = |derived: &DerivedRows| {
        let close =
            |index: usize| derived.bars.decimal(derived.bars.close[index]).map(|close| close.normalize());
        let bar = |index: usize| (close(index), derived.bars.volume[index]);
        (0..derived.bars.len()).map(bar).collect::<Vec<_>>()
    };
    assert_eq!(bars(&raw), bars(&adjusted));
    assert_eq!(raw.factors, adjusted.factors);
}

#[test]
fn total_return_reinvests_a_spin_off_and_counts_it_once() {
    let life = Tables {
        splits: "2024-01-03,1000,1250,spin_off",
        prices: "2023-06-28,100 2024-01-02,100 2024-01-03,80 2024-06-28,80",
        ..Tables::default()
    };
    let twice = Tables { dividends: "2024-01-03,20,spin_off", ..life };
    for life in [life, twice] {
        let found = life.on("2024-06-28");
        assert_eq!([found.metrics.total_return_1y, found.quote.year_high].map(text), ["0", "80"]);
        assert_eq!(served(&found, "2024-01-02", PriceBasis::ALL), Decimal::from(80));
    }
}

#[test]
fn past_yields_are_of_the_price_that_was_paid_then() {
    // 0.40 a year at a price of 10 is 4 %. A later spin-off that halves the price does not change this yield.
    let days = [(2022, 12, 30), (2023, 1, 31), (2023, 2, 28), (2023, 3, 31), (2023, 4, 28), (2023, 5, 31)];
    let more = [(2023, 6, 30), (2023, 7, 31), (2023, 8, 31), (2023, 9, 29), (2023, 10, 31), (2023, 11, 30)];
    let closes = days.iter().chain(&more).map(|(year, month, day)| format!("{year}-{month:02}-{day:02},10"));
    let prices = closes.collect::<Vec<_>>().join(" ");
    let paid: Vec<String> = (2020..=2023)
        .flat_map(|year| [2, 5, 8, 11].map(|month| format!("{year}-{month:02}-10,0.10")))
        .collect();
    let life = Tables { dividends: &paid.join(" "), prices: &prices, ..Tables::default() };
    let spun = Tables { splits: "2023-12-01,1,2,spin_off", ..life };
    let high = |life: Tables<'_>| text(life.on("2023-12-29").metrics.yield_5y_high);
    assert_eq!([high(life), high(spun)], ["4", "4"]);
}

#[test]
fn a_streak_continues_from_the_rate_after_a_spin_off() {
    let life = Tables {
        splits: "2022-07-01,1000,1281",
        dividends:
            "2020-03-02,0.5 2020-06-01,0.5 2020-09-01,0.5 2020-12-01,0.5 2021-03-01,0.55 2021-06-01,0.55 2021-09-01,0.55
            2021-12-01,0.55 2022-03-01,0.6 2022-06-01,0.6 2022-09-01,0.3 2022-12-01,0.3 2023-03-01,0.32 2023-06-01,0.32
            2023-09-01,0.32 2023-12-01,0.32",
        prices: "2022-06-30,128.1 2022-07-01,100",
        ..Tables::default()
    };
    let found = life.on("2024-02-01");
    assert_eq!(types(&found), ["2022-07-01 spin_off"]);
    // 2023 (1.28) is an increase over the rate after the spin-off (1.20), though not over the total of 2022 (1.80).
    assert_eq!(found.metrics.increase_streak_years, 2);
    assert!(has(&found, Flag::SpinOffReview));
}
