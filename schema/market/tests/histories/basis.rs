//! Tests for dividends before a split whose amounts are per share after the split, but not marked as adjusted (R37).

use market::event::ShareBasis;
use market::row::Flag;

use crate::figures::{has, text};
use crate::tables::{Tables, derived_on};

/// Payer with a 4:1 split in August 2020. Amounts until 2019 are as declared. The amounts of 2020 before the split are
/// already adjusted to the new shares.
const ADJUSTED: Tables<'_> = Tables {
    splits: "2020-08-31,1,4",
    dividends:
        "2018-02-14,0.73 2018-05-15,0.73 2018-08-14,0.73 2018-11-13,0.73 2019-02-14,0.77 2019-05-15,0.77
        2019-08-14,0.77 2019-11-13,0.77 2020-02-07,0.1925 2020-05-08,0.205 2020-08-07,0.205 2020-11-06,0.205
        2021-02-05,0.205 2021-05-07,0.22 2021-08-06,0.22 2021-11-05,0.22 2022-02-04,0.22 2022-05-06,0.23
        2022-08-05,0.23 2022-11-04,0.23",
    prices: "2020-02-06,325.21 2020-08-28,499.23 2020-08-31,129.04 2020-12-31,132.69 2022-12-30,129.93",
    fundamentals: "",
};

#[test]
fn equal_amounts_around_a_split_are_suspect() {
    let found = ADJUSTED.on("2020-12-31");
    assert!(has(&found, Flag::AmountBasisSuspect));
    // Growth between earlier years uses the amounts as declared.
    assert_eq!(text(found.metrics.growth_1y), "5.4795");
    let found = ADJUSTED.on("2021-12-31");
    assert_eq!((found.metrics.growth_1y, found.metrics.increase_streak_years), (None, 0));
    let found = ADJUSTED.on("2022-12-30");
    assert_eq!(found.metrics.growth_1y, None);
    assert!(found.metrics.latest_increase_percent.is_some());
    let found = ADJUSTED.on("2023-01-31");
    assert_eq!(text(found.metrics.growth_1y), "5.2023");
    assert_eq!((found.metrics.increase_streak_years, found.metrics.streak_lower_bound), (1, true));
}

#[test]
fn amounts_that_step_with_the_split_or_say_so_are_not_suspect() {
    let declared = ADJUSTED.dividends.replace("0.1925", "0.77").replace("08-07,0.205", "08-07,0.82");
    let declared = declared.replace("2020-05-08,0.205", "2020-05-08,0.82");
    let found = Tables { dividends: &declared, ..ADJUSTED }.on("2021-12-31");
    assert!(!has(&found, Flag::AmountBasisSuspect));
    assert_eq!(text(found.metrics.growth_1y), "4.8701");
    assert_eq!(found.metrics.increase_streak_years, 3);
    // The same amounts are not suspect in rows that are marked as split-adjusted.
    let mut history = ADJUSTED.history();
    for row in &mut history.dividends[8..11] {
        row.record.amount_basis = ShareBasis::SplitAdjusted;
    }
    assert!(!has(&derived_on("2021-12-31", &history), Flag::AmountBasisSuspect));
    // After a 5:4 split, an unchanged amount is read as a raise. After a 3:1 split, it is suspect.
    for splits in ["2020-08-31,4,5", "2020-08-31,1,3"] {
        let found = Tables { splits, ..ADJUSTED }.on("2021-12-31");
        assert_eq!(has(&found, Flag::AmountBasisSuspect), splits.ends_with('3'), "{splits}");
    }
    // If the price does not change at the split either, the split does not count.
    let prices = "2020-02-06,325.21 2020-08-28,499.23 2020-08-31,480.04 2020-12-31,500";
    let found = Tables { prices, ..ADJUSTED }.on("2021-12-31");
    assert!(!has(&found, Flag::AmountBasisSuspect) && found.splits.is_empty());
    assert!(!has(&Tables { prices: "", ..ADJUSTED }.on("2021-12-31"), Flag::AmountBasisSuspect));
}
