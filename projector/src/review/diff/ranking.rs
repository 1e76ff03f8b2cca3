//! What matters of the differences: for each security and topic the figure that moved most, the greatest first.

use std::cmp::Reverse;

use market::value::Exact;
use rust_decimal::Decimal;
use serde::Serialize;

use super::cell::Cell;
use super::difference::{Change, Difference};

/// The topics, the weightiest first, with the figures of the metrics that each looks at.
const TOPICS: [(Topic, &[&str]); 5] = [
    (Topic::Securities, &[]),
    (Topic::Statuses, &["dividend_status"]),
    (Topic::Lists, &["is_dividend_king", "is_dividend_aristocrat", "tier"]),
    (Topic::Streaks, &["increase_streak_years", "payment_streak_years"]),
    (Topic::Yields, &["dividend_yield", "yield_forward", "yield_ttm"]),
];

/// What a difference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// Securities that only one generation has.
    Securities,
    /// Dividend statuses.
    Statuses,
    /// Members of the lists of dividend growers.
    Lists,
    /// Years of increases and payments.
    Streaks,
    /// Yields, in percent points.
    Yields,
}

/// A figure of a security that matters and differs.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub symbol: String,
    pub figure: String,
    pub a: Cell,
    pub b: Cell,
    /// By how much: years, or percent points of yield; of a status or a list, by how much the headline yield moved.
    pub size: Exact,
    /// Why, where it was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// A topic's differences.
#[derive(Debug, Serialize)]
pub struct Ranked {
    pub topic: Topic,
    /// Securities that it concerns.
    pub count: u64,
    /// How many of them moved by how much, where the figure is a number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Bucket>,
    /// The greatest of them.
    pub first: Vec<Finding>,
}

/// How many figures moved by so much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// They moved by less than this, and by no less than the one before says; null is the last.
    pub below: Option<Exact>,
    pub count: u64,
}

/// The greatest differences of each topic.
#[derive(Debug)]
pub(super) struct Ranking {
    keep: usize,
    topics: Vec<Ranked>,
}

impl Ranking {
    /// Keeps so many of each topic.
    pub(super) fn new(keep: usize) -> Self {
        let topic = |(topic, _): &(Topic, _)| Ranked {
            topic: *topic,
            count: 0,
            sizes: sizes(*topic),
            first: Vec::new(),
        };
        Self { keep, topics: TOPICS.iter().map(topic).collect() }
    }

    /// Looks at a difference of the metrics.
    pub(super) fn note(&mut self, difference: &Difference) {
        for ((topic, figures), ranked) in TOPICS.iter().zip(&mut self.topics) {
            let Some(finding) = finding(*topic, figures, difference) else { continue };
            ranked.count += 1;
            let size = |bucket: &&mut Bucket| bucket.below.is_none_or(|below| finding.size < below);
            ranked.sizes.iter_mut().find(size).into_iter().for_each(|bucket| bucket.count += 1);
            ranked.first.push(finding);
            if ranked.first.len() > 4 * self.keep {
                shorten(&mut ranked.first, self.keep);
            }
        }
    }

    /// The topics that anything was found of.
    pub(super) fn finish(mut self) -> Vec<Ranked> {
        self.topics.iter_mut().for_each(|ranked| shorten(&mut ranked.first, self.keep));
        self.topics.retain(|ranked| ranked.count > 0);
        self.topics
    }
}

/// Nothing is counted yet.
fn sizes(topic: Topic) -> Vec<Bucket> {
    // In thousandths, of years and of percent points.
    let bounds: &[i64] = match topic {
        Topic::Streaks => &[2_000, 5_000, 10_000, 25_000],
        Topic::Yields => &[10, 100, 500, 1_000, 5_000],
        Topic::Securities | Topic::Statuses | Topic::Lists => return Vec::new(),
    };
    let below = bounds.iter().map(|bound| Some(Exact::from(Decimal::new(*bound, 3))));
    below.chain([None]).map(|below| Bucket { below, count: 0 }).collect()
}

fn shorten(findings: &mut Vec<Finding>, keep: usize) {
    findings.sort_by(|a, b| (Reverse(a.size), &a.symbol).cmp(&(Reverse(b.size), &b.symbol)));
    findings.truncate(keep);
}

/// A topic's greatest difference of a security.
fn finding(topic: Topic, figures: &[&str], difference: &Difference) -> Option<Finding> {
    let symbol = difference.owner();
    if difference.change != Change::Changed {
        let there = |is_there: bool| Cell::Text(if is_there { "there" } else { "not there" }.to_owned());
        let (a, b) = (difference.change == Change::Removed, difference.change == Change::Added);
        let figure = "security".to_owned();
        let found =
            Finding { symbol, figure, a: there(a), b: there(b), size: Exact::default(), why: Vec::new() };
        return (topic == Topic::Securities).then_some(found);
    }
    let changed = figures.iter().filter_map(|figure| difference.column(figure));
    let sized = changed.map(|changed| match topic {
        Topic::Streaks | Topic::Yields => (distance(&changed.a, &changed.b), changed),
        _ => (headline(difference), changed),
    });
    let first_of_greatest = sized.rev().max_by_key(|(size, _)| *size);
    first_of_greatest.map(|(size, changed)| Finding {
        symbol,
        figure: changed.column.clone(),
        a: changed.a.clone(),
        b: changed.b.clone(),
        size,
        why: Vec::new(),
    })
}

/// By how much the headline yield differs.
fn headline(difference: &Difference) -> Exact {
    difference.column("dividend_yield").map(|changed| distance(&changed.a, &changed.b)).unwrap_or_default()
}

/// How far two values are apart; one that is absent is 0.
fn distance(a: &Cell, b: &Cell) -> Exact {
    let value = |cell: &Cell| cell.number().map_or(Decimal::ZERO, |Exact(value)| value);
    Exact::from(value(b).saturating_sub(value(a)).abs())
}

#[cfg(test)]
mod tests {
    use super::super::difference::Changed;
    use super::*;

    fn moved(symbol: &str, columns: &[(&str, i64, i64)]) -> Difference {
        let changed = |(name, a, b): &(&str, i64, i64)| Changed {
            column: (*name).to_owned(),
            a: Cell::Whole(*a),
            b: Cell::Whole(*b),
        };
        Difference {
            table: "metrics",
            key: vec![("symbol", Cell::Text(symbol.to_owned()))],
            change: Change::Changed,
            columns: columns.iter().map(changed).collect(),
            why: Vec::new(),
        }
    }

    #[test]
    fn the_greatest_come_first_and_each_security_once_a_topic() {
        let mut ranking = Ranking::new(2);
        for (symbol, by) in [("AAA", 1), ("BBB", 9), ("CCC", -5), ("DDD", 1)] {
            ranking.note(&moved(symbol, &[("yield_ttm", 1, 1 + by), ("dividend_yield", 1, 1)]));
        }
        ranking.note(&moved(
            "EEE",
            &[("increase_streak_years", 30, 2), ("yield_forward", 3, 4), ("price", 1, 2)],
        ));
        let found = ranking.finish();
        let seen = |ranked: &Ranked| {
            let first = ranked.first.iter().map(|f| format!("{} {} {:?}", f.symbol, f.figure, f.size));
            (ranked.topic, ranked.count, first.collect::<Vec<_>>())
        };
        let [streaks, yields] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(seen(streaks), (Topic::Streaks, 1, vec!["EEE increase_streak_years 28".to_owned()]));
        let greatest = ["BBB yield_ttm 9", "CCC yield_ttm 5"].map(str::to_owned).to_vec();
        assert_eq!(seen(yields), (Topic::Yields, 5, greatest));
        assert_eq!(yields.sizes.iter().map(|bucket| bucket.count).collect::<Vec<_>>(), [0, 0, 0, 0, 3, 2]);
    }
}
