//! Tests for amounts that a feed has adjusted for all splits up to an unstated day (R10). This day is the newest day of
//! the feed's prices. If the feed has no prices, it is the feed's newest ex-date.

use market::event::{Action, ShareBasis};
use market::history::History;

use crate::figures::derived;
use crate::lives::Life;

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
