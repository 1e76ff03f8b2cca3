//! Tests for amounts and closes that a feed has adjusted for all splits in its list up to an unstated day (R10, R35). This
//! day is the newest day of the feed's prices. If the feed has no prices, it is the feed's newest ex-date.

use std::sync::Arc;

use market::bars::BarVersion;
use market::event::{Action, DividendEvidence, ShareBasis};
use market::history::History;
use market::metrics::explain;
use serde_json::json;

use crate::explained::observed;
use crate::figures::{derived, explained, in_market, text};
use crate::lives::{Life, date};
use crate::tables::{Tables, closes, looking_back};

/// Two amounts of the first dividend: the amount as it was paid, and the amount adjusted to today's shares.
fn first(history: &History) -> [String; 2] {
    let rows = derived(history).dividends;
    [rows[0].amount, rows[0].adjusted_amount].map(|amount| amount.to_string())
}

/// History with a split-adjusted dividend of 1 from source `a`, and a later 2:1 split from source `b`.
fn adjusted(life: Life) -> History {
    let mut history = life.pay("2023-01-03", "1").split("2024-03-01", 1, 2).history();
    history.splits[0].source = "b".into();
    for row in &mut history.dividends {
        row.record.amount_basis = ShareBasis::SplitAdjusted;
    }
    history
}

#[test]
fn a_feeds_own_prices_tell_how_far_it_reaches() {
    let reaching = |until: &str| {
        let life = Life::new("until", "2024-06-28").close("2023-01-02", "40").close(until, "40");
        let mut history = adjusted(life);
        let longer = Life::new("longer", "2024-06-28").close("2023-01-02", "40").close("2024-06-27", "20");
        let mut other = longer.history().prices.remove(0);
        other.source = "b".into();
        // The order of the sources does not matter.
        history.prices.insert(0, other);
        let turned = History { prices: history.prices.iter().rev().cloned().collect(), ..history.clone() };
        assert_eq!(first(&history), first(&turned));
        first(&history)
    };
    assert_eq!(reaching("2024-02-29"), ["1", "0.5"]);
    assert_eq!(reaching("2024-03-01"), ["2", "1"]);
}

#[test]
fn a_feeds_own_splits_tell_how_far_it_reaches() {
    let mut history = adjusted(Life::new("split", "2024-06-28"));
    assert_eq!(first(&history), ["1", "0.5"]);
    let mut said = history.splits[0].clone();
    said.source = "a".into();
    history.splits.push(said);
    assert_eq!(first(&history), ["2", "1"]);
    // A split that the feed has retracted does not count.
    history.splits[1].action = Action::Retract;
    assert_eq!(first(&history), ["1", "0.5"]);
}

#[test]
fn a_split_that_was_taken_back_is_none() {
    let mut history =
        Life::new("back", "2024-06-28").pay("2023-01-03", "1").split("2024-03-01", 1, 2).history();
    assert_eq!(first(&history), ["1", "0.5"]);
    let mut withdrawn = history.splits[0].clone();
    (withdrawn.action, withdrawn.line) = (Action::Retract, 9);
    history.splits.push(withdrawn);
    assert_eq!(first(&history), ["1", "1"]);
}

/// Payer with a spin-off that the feed lists as a split. The feed divides the amounts before it by 1.196.
const SPUN_OFF: Tables<'_> = Tables {
    splits: "2024-04-01,1000,1196",
    dividends:
        "2023-02-16,1.254181 2023-05-18,1.254181 2023-08-18,1.254181 2023-11-16,1.254181 2024-02-15,1.262542
        2024-05-23,0.70",
    prices: "2024-03-28,88.939799,1196 2024-04-01,91.5,1000 2024-05-23,94",
    fundamentals: "",
};

fn spun_off() -> History {
    let mut history = SPUN_OFF.history();
    history.dividends.iter_mut().for_each(|row| row.record.amount_basis = ShareBasis::SplitAdjusted);
    Arc::make_mut(&mut history.prices[0].bars).versions =
        vec![BarVersion { basis_day: Some(0), ..BarVersion::UNKNOWN }];
    history
}

#[test]
fn a_spin_off_in_the_feeds_list_is_undone_at_every_as_of_date() {
    let history = spun_off();
    let newest = "2024-05-23";
    for (as_of, known) in
        [("2023-12-29", 4), ("2024-02-29", 5), ("2024-03-28", 5), ("2024-04-01", 5), (newest, 6)]
    {
        let found = looking_back(as_of, newest, &history);
        let paid = found.dividends.iter().filter(|row| row.ex_date <= date(as_of));
        let amounts: Vec<[String; 2]> =
            paid.map(|row| [row.amount, row.adjusted_amount].map(|amount| amount.to_string())).collect();
        let declared =
            ["1.5", "1.5", "1.5", "1.5", "1.51", "0.7"].map(|amount| [amount, amount].map(str::to_owned));
        assert_eq!(amounts, declared[..known], "{as_of}");
        let total = found.metrics.annual_totals.0.iter().find(|total| total.year == 2023).expect("a total");
        assert_eq!(total.amount.to_string(), "6", "{as_of}");
        let days = ["2024-03-28 106.371999604", "2024-04-01 91.5", "2024-05-23 94"];
        let passed: Vec<&str> = days.into_iter().filter(|day| day[..10] <= *as_of).collect();
        assert_eq!(closes(&found), passed, "{as_of}");
        // The feed's volume is adjusted by the same ratio. A spin-off changes no volume.
        assert_eq!(found.bars.volume.iter().next(), [1000].iter().find(|_| !passed.is_empty()), "{as_of}");
    }
    let found = looking_back(newest, newest, &history);
    assert_eq!(text(found.metrics.dps_ttm), "5.21");
    assert_eq!(found.splits[0].r#type.to_string(), "spin_off");
}

#[test]
fn an_explanation_has_the_amount_that_the_feed_gave() {
    let explanation = in_market(|market| explain(&spun_off(), market));
    let trailing = explanation.metrics.iter().find(|metric| metric.metric == "dps_ttm").expect("a metric");
    let reasons: Vec<&str> = trailing.observations.iter().map(|row| row.reason.as_str()).collect();
    assert_eq!(reasons[0], "R10: the feed gave 1.254181, adjusted for the splits in its list");
    assert_eq!(trailing.observations[0].amount.expect("an amount").to_string(), "1.5");
    let raw = explained(&Life::new("raw", "2024-06-28").pay("2024-02-15", "1.51").history());
    let trailing = raw.metrics.iter().find(|metric| metric.metric == "dps_ttm").expect("a metric");
    assert_eq!(trailing.observations[0].reason, "");
}

/// Adjusted closes beside raw closes contain the effect of a spin-off that the feed lists as a split (R40).
#[test]
fn implied_dividend_factors_leave_out_spin_offs() {
    let mut history = SPUN_OFF.history();
    history.dividends.clear();
    // On the ex-date of the spin-off, the adjusted closes step by the spin-off alone, or also by a dividend of 1 %.
    for (factor, missing) in [("0.836120", false), ("0.827759", true)] {
        let record = json!({
            "symbol": "LIFE", "ex_date": "2024-04-01", "previous": "2024-03-28", "factor": factor, "basis": "raw",
        });
        history.evidence = vec![observed::<DividendEvidence>(record)];
        let found = looking_back("2024-05-23", "2024-05-23", &history);
        assert_eq!(found.metrics.flags.0.iter().any(|flag| flag == "dividends_missing"), missing, "{factor}");
    }
}

/// The newest bar is confirmed by the close of another source, although this source has adjusted it for a later split.
#[test]
fn an_adjusted_close_confirms_a_raw_one() {
    let mut history = Tables {
        prices: "2024-06-26,20 2024-06-27,20 2024-06-28,70",
        splits: "2024-07-15,1,2",
        ..Tables::default()
    }
    .history();
    let mut adjusted =
        Tables { prices: "2024-06-28,35 2024-07-15,36", ..Tables::default() }.history().prices.remove(0);
    adjusted.source = "b".into();
    // The newer source is preferred.
    Arc::make_mut(&mut history.prices[0].bars).versions[0].observed_at = 1;
    Arc::make_mut(&mut adjusted.bars).versions =
        vec![BarVersion { basis_day: Some(0), ..BarVersion::UNKNOWN }];
    let newest = |history: &History| closes(&looking_back("2024-06-28", "2024-07-15", history)).pop();
    assert_eq!(newest(&history).as_deref(), Some("2024-06-27 20"));
    history.prices.push(adjusted);
    assert_eq!(newest(&history).as_deref(), Some("2024-06-28 70"));
}
