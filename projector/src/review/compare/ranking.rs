//! Ranking of the differences in table `metrics`, by topic. A topic is a group of related metrics, for example all
//! yields. A security is in a topic's ranking at most once, with its largest change.

use std::cmp::Reverse;

use market::decimal::{ExactDecimal, PLACES_PERCENT, round};
use rust_decimal::Decimal;
use serde::Serialize;

use super::row_difference::{CellValue, ChangeKind, ColumnDifference, RowDifference};

/// Topics, the most important first: the compared columns of table `metrics`, and the upper bounds of the ranges of sizes
/// in thousandths of the topic's unit (years, percentage points or percent).
const TOPICS: [(DiffTopic, &[&str], &[i64]); 6] = [
    (DiffTopic::Securities, &[], &[]),
    (DiffTopic::Statuses, &["dividend_status"], &[]),
    (DiffTopic::Lists, &["is_dividend_king", "is_dividend_aristocrat", "tier"], &[]),
    (DiffTopic::Streaks, &["increase_streak_years", "payment_streak_years"], &[2_000, 5_000, 10_000, 25_000]),
    (DiffTopic::Yields, &["dividend_yield", "yield_forward", "yield_ttm"], &[10, 100, 500, 1_000, 5_000]),
    (DiffTopic::Prices, &["price"], &[1_000, 5_000, 10_000, 50_000]),
];

/// Group of related metrics. Differences are ranked within a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DiffTopic {
    /// Securities that only one generation has.
    Securities,
    Statuses,
    /// Memberships in the lists of dividend growers, for example the Dividend Kings.
    Lists,
    /// Streaks: consecutive years of dividend increases and of dividend payments.
    Streaks,
    Yields,
    Prices,
}

/// Largest change of one security in one topic. Contains the metric that changed most, and its value in both
/// generations.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MetricDifference {
    pub symbol: String,
    pub figure: String,
    pub a: CellValue,
    pub b: CellValue,
    /// Size of the change: in years for streaks, in percentage points for yields, in percent for prices. For statuses
    /// and lists, it is the change of the dividend yield in percentage points. For securities, it is always 0.
    pub size: ExactDecimal,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TopicSummary {
    pub topic: DiffTopic,
    pub count: u64,
    /// Number of changes by size. Each element counts the changes in one range of sizes. Empty for topics without
    /// numeric metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeBucket>,
    pub first: Vec<MetricDifference>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SizeBucket {
    /// Upper bound of the range, exclusive; null if unlimited. The lower bound is the `below` of the previous range.
    pub below: Option<ExactDecimal>,
    pub count: u64,
}

#[derive(Debug)]
pub(super) struct DiffRanking {
    keep: usize,
    topics: Vec<TopicSummary>,
}

impl DiffRanking {
    pub(super) fn new(keep: usize) -> Self {
        let topics = TOPICS.iter().map(|(topic, _, bounds)| {
            let below = bounds.iter().map(|bound| Some(ExactDecimal::from(Decimal::new(*bound, 3))));
            let last = (!bounds.is_empty()).then_some(None);
            let sizes = below.chain(last).map(|below| SizeBucket { below, count: 0 }).collect();
            TopicSummary { topic: *topic, count: 0, sizes, first: Vec::new() }
        });
        Self { keep, topics: topics.collect() }
    }

    pub(super) fn add(&mut self, difference: &RowDifference) {
        for ((topic, figures, _), ranked) in TOPICS.iter().zip(&mut self.topics) {
            let Some(finding) = find_largest(*topic, figures, difference) else { continue };
            ranked.count += 1;
            let size = |bucket: &&mut SizeBucket| bucket.below.is_none_or(|below| finding.size < below);
            ranked.sizes.iter_mut().find(size).into_iter().for_each(|bucket| bucket.count += 1);
            ranked.first.push(finding);
            if ranked.first.len() > 4 * self.keep {
                keep_largest(&mut ranked.first, self.keep);
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<TopicSummary> {
        self.topics.iter_mut().for_each(|ranked| keep_largest(&mut ranked.first, self.keep));
        self.topics.retain(|ranked| ranked.count > 0);
        self.topics
    }
}

fn keep_largest(findings: &mut Vec<MetricDifference>, keep: usize) {
    findings.sort_by(|a, b| (Reverse(a.size), &a.symbol).cmp(&(Reverse(b.size), &b.symbol)));
    findings.truncate(keep);
}

/// Compares the metrics of a topic in one differing row, and returns the metric that changed most. Returns `None` if no
/// metric of the topic differs.
fn find_largest(topic: DiffTopic, figures: &[&str], difference: &RowDifference) -> Option<MetricDifference> {
    let found = |figure: &str, a, b, size| MetricDifference {
        symbol: difference.owner(),
        figure: figure.to_owned(),
        a,
        b,
        size,
        why: Vec::new(),
    };
    if difference.change != ChangeKind::Changed {
        let presence = |change: ChangeKind| {
            CellValue::Text(if difference.change == change { "there" } else { "not there" }.to_owned())
        };
        let (a, b) = (presence(ChangeKind::Removed), presence(ChangeKind::Added));
        return (topic == DiffTopic::Securities).then(|| found("security", a, b, ExactDecimal::default()));
    }
    let changed = figures.iter().filter_map(|figure| difference.column(figure));
    let sized = changed.map(|changed| match topic {
        DiffTopic::Streaks | DiffTopic::Yields => (value_distance(&changed.a, &changed.b), changed),
        DiffTopic::Prices => (percent_distance(&changed.a, &changed.b), changed),
        _ => (yield_distance(difference), changed),
    });
    let (size, first_of_greatest) = sized.rev().max_by_key(|(size, _)| *size)?;
    let ColumnDifference { column, a, b } = first_of_greatest;
    Some(found(column, a.clone(), b.clone(), size))
}

fn yield_distance(difference: &RowDifference) -> ExactDecimal {
    let changed = difference.column("dividend_yield");
    changed.map(|changed| value_distance(&changed.a, &changed.b)).unwrap_or_default()
}

/// Absolute change from `a` to `b` in percent of `a`, rounded; 100 if `a` is 0 or absent.
fn percent_distance(a: &CellValue, b: &CellValue) -> ExactDecimal {
    let ExactDecimal(distance) = value_distance(a, b);
    let base = a.as_decimal().map(|ExactDecimal(base)| base.abs());
    let percent = base.and_then(|base| distance.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(base));
    ExactDecimal::from(round(percent.unwrap_or(Decimal::ONE_HUNDRED), PLACES_PERCENT))
}

/// Absolute difference of two values. An absent value counts as 0.
fn value_distance(a: &CellValue, b: &CellValue) -> ExactDecimal {
    let value = |cell: &CellValue| cell.as_decimal().map_or(Decimal::ZERO, |ExactDecimal(value)| value);
    ExactDecimal::from(value(b).saturating_sub(value(a)).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(symbol: &str, columns: &[(&str, i64, i64)]) -> RowDifference {
        let changed = |(name, a, b): &(&str, i64, i64)| ColumnDifference {
            column: (*name).to_owned(),
            a: CellValue::Integer(*a),
            b: CellValue::Integer(*b),
        };
        RowDifference {
            table: "metrics",
            key: vec![("symbol", CellValue::Text(symbol.to_owned()))],
            change: ChangeKind::Changed,
            columns: columns.iter().map(changed).collect(),
            why: Vec::new(),
        }
    }

    #[test]
    fn largest_changes_come_first_and_each_security_once_per_topic() {
        let mut ranking = DiffRanking::new(2);
        for (symbol, by) in [("AAA", 1), ("BBB", 9), ("CCC", -5), ("DDD", 1)] {
            ranking.add(&moved(symbol, &[("yield_ttm", 1, 1 + by), ("dividend_yield", 1, 1)]));
        }
        ranking.add(&moved(
            "EEE",
            &[("increase_streak_years", 30, 2), ("yield_forward", 3, 4), ("price", 1, 2)],
        ));
        let found = ranking.finish();
        let seen = |ranked: &TopicSummary| {
            let first = ranked.first.iter().map(|f| format!("{} {} {:?}", f.symbol, f.figure, f.size));
            (ranked.topic, ranked.count, first.collect::<Vec<_>>())
        };
        let [streaks, yields, prices] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(seen(streaks), (DiffTopic::Streaks, 1, vec!["EEE increase_streak_years 28".to_owned()]));
        assert_eq!(seen(prices), (DiffTopic::Prices, 1, vec!["EEE price 100".to_owned()]));
        let greatest = ["BBB yield_ttm 9", "CCC yield_ttm 5"].map(str::to_owned).to_vec();
        assert_eq!(seen(yields), (DiffTopic::Yields, 5, greatest));
        assert_eq!(yields.sizes.iter().map(|bucket| bucket.count).collect::<Vec<_>>(), [0, 0, 0, 0, 3, 2]);
    }
}
