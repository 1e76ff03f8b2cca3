//! Changes of a load in the values of each security. The gate compares them with its expectations.
//!
//! Rows of a load: its files, and its rows by kind.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use event_log::record_batch::{Body, RecordBatch};
use market::bars::Bars;
use market::day::{date_of, day_number};
use market::event::{Kind, RunManifest};
use market::metrics::calendar::add_sessions;
use market::row::{DividendRow, DividendState, DividendStatus, JsonColumn, SplitRow, SplitStatus};
use rust_decimal::Decimal;
use tokio_postgres::Transaction;

use super::comparison::SecurityFigures;
use crate::apply::touched_rows::TouchedRows;
use crate::review::compare::each_pair;

/// Number of newest sessions in which changed values are expected.
const OPEN_SESSIONS: i32 = 10;
/// Minimum number of values that show a common factor: of any size, and of a power of ten.
const MIN_FACTOR_VALUES: [usize; 2] = [10, 3];
/// Approximate number of bars in a year.
const BARS_OF_YEAR: u64 = 252;
/// Minimum number of changed values of a rewritten history.
const MIN_REWRITTEN: u64 = 10;

/// Changes of the values of one kind, in one security.
#[derive(Debug, Default)]
struct ValueChanges {
    /// Number of values from before the newest sessions.
    earlier: u64,
    /// Number of `earlier` values that change or disappear.
    changed: u64,
    /// Changed values of all dates, before and after the load.
    pairs: Vec<[Decimal; 2]>,
}

/// Changes of one security.
#[derive(Debug, Default)]
pub(super) struct SecurityChange {
    values: Vec<(Kind, ValueChanges)>,
    /// See [`newest_closes`].
    newest: Option<([Decimal; 2], bool)>,
    status: Option<[DividendState; 2]>,
    forward: Option<[Decimal; 2]>,
    /// True if earlier years have bars, and the compared ones have bars only with the load.
    is_first_of_years: bool,
}

impl SecurityChange {
    /// Compares two versions of a security. `as_of` is the market date with the load.
    pub(super) fn measure(sides: [Option<&SecurityFigures>; 2], as_of: Option<NaiveDate>) -> Self {
        let ([Some(before), Some(after)], Some(as_of)) = (sides, as_of) else { return Self::default() };
        let first_open = add_sessions(as_of, -OPEN_SESSIONS);
        let earlier = after.earlier_years * BARS_OF_YEAR;
        let [before, after] = [&before.rows, &after.rows];
        let is_first_of_years = earlier > 0 && before.bars.is_empty() && !after.bars.is_empty();
        let metrics = [&before.metrics, &after.metrics];
        let forwards = metrics.map(|metrics| metrics.dps_forward.map(|amount| amount.0));
        Self {
            values: vec![
                (Kind::Price, ValueChanges::of_prices([&before.bars, &after.bars], first_open, earlier)),
                (
                    Kind::Dividend,
                    ValueChanges::of_dividends([&before.dividends, &after.dividends], first_open),
                ),
            ],
            is_first_of_years,
            newest: newest_closes(&before.bars, &after.bars),
            status: Some(metrics.map(|metrics| metrics.dividend_status)).filter(|[a, b]| a != b),
            forward: match forwards {
                [Some(former), Some(new)]
                    if former != new && !has_new_split(&before.splits, &after.splits) =>
                {
                    Some([former, new])
                }
                _ => None,
            },
        }
    }

    /// True if older bars may change the judgement: many values change, or the load has the first bars of these years.
    pub(super) fn needs_all_bars(&self) -> bool {
        let changed = self.values.iter().any(|(_, changes)| changes.changed >= MIN_REWRITTEN);
        changed || self.is_first_of_years
    }
}

impl ValueChanges {
    /// `left_out` is the number of bars of years that were not derived.
    fn of_prices(bars: [&Bars; 2], first_open: NaiveDate, left_out: u64) -> Self {
        let mut changes = Self::default();
        if bars[0] == bars[1] {
            return changes;
        }
        let end = day_number(first_open);
        changes.earlier = left_out + bars[0].day.partition_point(|day| *day < end) as u64;
        let visited = each_pair(bars, |pair| {
            if let Some([Some(before), after]) = pair.differing_closes() {
                changes.add(before, after, pair.date < first_open);
            }
            Ok(())
        });
        debug_assert!(visited.is_ok(), "the visitor never fails");
        changes
    }

    fn of_dividends([before, after]: [&[DividendRow]; 2], first_open: NaiveDate) -> Self {
        let mut changes = Self::default();
        if before == after {
            return changes;
        }
        let after: HashMap<&str, Decimal> = known(after).map(|(id, row)| (id, row.amount.0)).collect();
        for (id, row) in known(before) {
            let (is_earlier, amount) = (row.ex_date < first_open, after.get(id).copied());
            changes.earlier += u64::from(is_earlier);
            if amount != Some(row.amount.0) {
                changes.add(row.amount.0, amount, is_earlier);
            }
        }
        changes
    }

    /// Adds a value that changes or disappears.
    fn add(&mut self, before: Decimal, after: Option<Decimal>, is_earlier: bool) {
        self.changed += u64::from(is_earlier);
        self.pairs.extend(after.map(|after| [before, after]));
    }

    /// Factor between the values before and after, if most of the changed values have the same one within 0.1 %.
    fn common_factor(&self) -> Option<(Decimal, usize)> {
        let ratio = |[before, after]: &[Decimal; 2]| after.checked_div(*before);
        let mut ratios: Vec<Decimal> = self.pairs.iter().filter_map(ratio).collect();
        let factor = median(&mut ratios).filter(|factor| !factor.is_zero())?;
        let tolerance = Decimal::new(1, 3);
        let is_near = |ratio: &Decimal, factor: Decimal| (*ratio - factor).abs() <= factor.abs() * tolerance;
        let equal = ratios.iter().filter(|ratio| is_near(ratio, factor)).count();
        let powers = [10, 100, 1_000].map(Decimal::from);
        let is_power =
            powers.iter().any(|power| is_near(&factor, *power) || is_near(&(factor * power), Decimal::ONE));
        let [any, of_ten] = MIN_FACTOR_VALUES;
        let is_common = equal >= if is_power { of_ten } else { any } && equal * 5 >= ratios.len() * 4;
        (is_common && !is_near(&factor, Decimal::ONE)).then_some((factor, equal))
    }
}

/// Dividends that are neither projected nor cancelled, with their ids.
fn known(rows: &[DividendRow]) -> impl Iterator<Item = (&str, &DividendRow)> {
    let is_known = |row: &&DividendRow| matches!(row.status, DividendStatus::Declared | DividendStatus::Paid);
    rows.iter().filter(is_known).filter_map(|row| Some((row.id.as_deref()?, row)))
}

/// True if an announced split becomes effective, which divides the forward dividend.
fn has_new_split(before: &[SplitRow], after: &[SplitRow]) -> bool {
    let is_effective =
        |id: &str| after.iter().any(|split| split.id == id && split.status == SplitStatus::Effective);
    before.iter().any(|split| split.status == SplitStatus::Announced && is_effective(&split.id))
}

/// Newest closes before and after, if the load has a new session, changes the close of the newest one, or takes it out of
/// use, which counts as a close of 0. `true` if a new session repeats the volume.
fn newest_closes(before: &Bars, after: &Bars) -> Option<([Decimal; 2], bool)> {
    let [former, newest] = [before, after].map(|bars| bars.len().checked_sub(1).map(|last| bars.bar(last)));
    let former = former?;
    let newest = newest.filter(|bar| bar.day >= former.day);
    let close = newest.map_or(Decimal::ZERO, |bar| Decimal::new(bar.close, after.scale));
    let closes = [Decimal::new(former.close, before.scale), close];
    let new_volume = newest.filter(|bar| bar.day > former.day).map(|bar| bar.volume);
    let is_changed = new_volume.is_some() || closes[0] != closes[1];
    is_changed.then_some((closes, new_volume == Some(former.volume)))
}

/// Median of the values; `None` without values. Sorts the values.
pub(crate) fn median(values: &mut [Decimal]) -> Option<Decimal> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Changed values of one kind, in all securities.
#[derive(Debug, Default)]
pub(crate) struct ChangedValues {
    /// Number of values from before the newest ten sessions.
    pub(crate) earlier: u64,
    /// Number of `earlier` values that change or disappear.
    pub(crate) changed: u64,
    /// Securities with changed `earlier` values, and the number of these values.
    pub(crate) securities: Vec<(u64, String)>,
    /// Securities with a common factor, and the number of multiplied values.
    pub(crate) factors: Vec<(u64, String)>,
    /// Securities with most of their `earlier` values changed, by no common factor.
    pub(crate) rewritten: Vec<(u64, String)>,
}

/// Changes of all securities. Each list has a size and a text about one security.
#[derive(Debug, Default)]
pub(crate) struct LoadFigures {
    pub(crate) values: BTreeMap<Kind, ChangedValues>,
    /// Change of the close in a new session, in percent.
    pub(crate) moves: Vec<(Decimal, String)>,
    /// Securities with the close and volume of the session before.
    pub(crate) repeated: Vec<String>,
    /// Securities whose dividend status became lapsed, suspended or unknown.
    pub(crate) stopped: Vec<String>,
    /// Change of the forward dividend, in percent.
    pub(crate) forwards: Vec<(Decimal, String)>,
}

impl LoadFigures {
    pub(super) fn add(&mut self, symbol: &str, change: SecurityChange) {
        for (kind, changes) in change.values {
            let found = self.values.entry(kind).or_default();
            let ValueChanges { earlier, changed, .. } = changes;
            found.earlier += earlier;
            found.changed += changed;
            if let Some((factor, values)) = changes.common_factor() {
                let factor = factor.round_dp(6).normalize();
                found.factors.push((values as u64, format!("{symbol}: {values} values times {factor}")));
            } else if changed >= MIN_REWRITTEN && changed * 2 > earlier {
                found.rewritten.push((changed, format!("{symbol}: {changed} of {earlier} values change")));
            }
            if changed > 0 {
                found.securities.push((changed, format!("{symbol}: {changed} of {earlier} values change")));
            }
        }
        if let Some(([before, after], same_volume)) = change.newest {
            if same_volume && before == after {
                self.repeated.push(format!("{symbol}: {after} again"));
            }
            self.moves.extend(percent_change(symbol, before, after));
        }
        if let Some([before, after]) = change.status
            && matches!(after, DividendState::Lapsed | DividendState::Suspended | DividendState::Unknown)
        {
            self.stopped.push(format!("{symbol}: {before} to {after}"));
        }
        let forward = change.forward.and_then(|[before, after]| percent_change(symbol, before, after));
        self.forwards.extend(forward);
    }
}

fn percent_change(symbol: &str, before: Decimal, after: Decimal) -> Option<(Decimal, String)> {
    let percent = (after.checked_div(before)? - Decimal::ONE) * Decimal::ONE_HUNDRED;
    let [before, after] = [before, after].map(|value| value.normalize());
    Some((percent, format!("{symbol}: {before} to {after}")))
}

const MANIFEST: &str = "select manifest from runs where run = $1 and state = 'completed'";
const ROWS: &str = include_str!("../../../queries/gate/load_rows.sql");

#[derive(Debug, Default)]
pub(crate) struct LoadedRows {
    /// File names, as in a manifest.
    pub(crate) files: Vec<String>,
    /// Number of rows by kind, without rejects.
    pub(crate) rows: BTreeMap<Kind, u64>,
    pub(crate) rejects: u64,
    /// Newest session with prices.
    pub(crate) newest: Option<NaiveDate>,
    /// Symbols of all rows.
    pub(crate) symbols: BTreeSet<String>,
    /// Symbols with prices.
    pub(crate) priced: BTreeSet<String>,
}

impl LoadedRows {
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        run: &str,
        touched: &TouchedRows,
    ) -> anyhow::Result<Self> {
        let mut loaded = Self::of_touched(touched);
        if let Some(row) = transaction.query_opt(MANIFEST, &[&run]).await? {
            let JsonColumn(manifest): JsonColumn<RunManifest> = row.try_get(0)?;
            loaded.newest = manifest.newest.get(&Kind::Price).copied();
            (loaded.files, loaded.rejects) = (manifest.files, manifest.rejects);
        }
        for row in transaction.query(ROWS, &[&run]).await? {
            loaded.rows.insert(row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs());
        }
        Ok(loaded)
    }

    /// Rows of a dry run.
    pub(super) fn of_candidate(batches: &[RecordBatch], touched: &TouchedRows) -> Self {
        let mut loaded = Self::of_touched(touched);
        for batch in batches {
            let (kind, rows) = (batch.body.kind(), batch.body.row_count() as u64);
            match &batch.body {
                Body::Rejects(_) => loaded.rejects += rows,
                _ if kind == Kind::Evidence => {}
                body => {
                    *loaded.rows.entry(kind).or_default() += rows;
                    if let Body::Prices(series) = body {
                        let days = series.iter().flat_map(|series| series.bars.day.last());
                        loaded.newest = loaded.newest.max(days.max().map(|day| date_of(*day)));
                    }
                }
            }
            if !loaded.files.contains(&batch.file) {
                loaded.files.push(batch.file.clone());
            }
        }
        loaded
    }

    fn of_touched(touched: &TouchedRows) -> Self {
        let symbols = touched.symbols().into_iter().map(str::to_owned).collect();
        let priced = touched.years.iter().map(|(symbol, ..)| symbol.clone()).collect();
        Self { symbols, priced, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use market::bars::{Bar, BarVersion, MISSING};
    use serde_json::json;

    use super::*;

    fn factor(pairs: &[(i64, i64)]) -> Option<String> {
        let pairs =
            pairs.iter().map(|(before, after)| [Decimal::from(*before), Decimal::from(*after)]).collect();
        let found = ValueChanges { pairs, ..ValueChanges::default() }.common_factor();
        found.map(|(factor, values)| format!("{} {values}", factor.normalize()))
    }

    #[test]
    fn a_factor_needs_enough_values_with_the_same_ratio() {
        let times =
            |factor: i64, values: i64| (1..=values).map(|value| (value, value * factor)).collect::<Vec<_>>();
        assert_eq!(factor(&times(4, 10)).as_deref(), Some("4 10"));
        assert_eq!(factor(&times(4, 9)), None);
        assert_eq!(factor(&times(100, 3)).as_deref(), Some("100 3"));
        let mixed = [times(4, 8), vec![(10, 11), (10, 12), (10, 13)]].concat();
        assert_eq!(factor(&mixed), None);
        assert_eq!(factor(&[]), None);
    }

    #[test]
    fn the_newest_close_is_new_corrected_or_lost() {
        let bars = |rows: &[(i32, i64, i64)]| {
            let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
            for (day, close, volume) in rows.iter().copied() {
                let [open, high, low] = [close; 3];
                bars.push(
                    Bar { day, open, high, low, close, volume, vwap: MISSING, trade_count: MISSING },
                    0,
                );
            }
            bars
        };
        let closes = |before: &[_], after: &[_]| newest_closes(&bars(before), &bars(after));
        let close = |cents: i64| Decimal::new(cents, 2);
        let former = [(1, 900, 5), (2, 1_000, 7)];
        let with = |newest| [former.as_slice(), &[newest]].concat();
        assert_eq!(closes(&former, &with((3, 1_100, 8))), Some(([close(1_000), close(1_100)], false)));
        assert_eq!(closes(&former, &with((3, 1_000, 7))), Some(([close(1_000), close(1_000)], true)));
        assert_eq!(closes(&former, &[(2, 1_300, 7)]), Some(([close(1_000), close(1_300)], false)));
        assert_eq!(closes(&former, &former[..1]), Some(([close(1_000), Decimal::ZERO], false)));
        assert_eq!(closes(&former, &[]), Some(([close(1_000), Decimal::ZERO], false)));
        assert_eq!(closes(&former, &[(1, 950, 5), (2, 1_000, 9)]), None);
        assert_eq!(closes(&[], &former), None);
    }

    #[test]
    fn only_a_split_that_was_announced_before_is_expected() {
        let split = |id: &str, status: &str| {
            let row = json!({
                "id": id, "symbol": "X", "ex_date": "2024-06-03", "from_shares": "1", "to_shares": "4", "ratio": "4",
                "text": "4:1", "type": "forward", "price_factor": "0.25", "cumulative_price_factor": "0.25",
                "status": status, "revision": 0, "updated_at": "2024-06-03T00:00:00Z"
            });
            serde_json::from_value::<SplitRow>(row).expect("a split")
        };
        let [announced, effective] = ["announced", "effective"].map(|status| vec![split("a", status)]);
        assert!(has_new_split(&announced, &effective));
        assert!(!has_new_split(&announced, &announced) && !has_new_split(&effective, &effective));
        assert!(!has_new_split(&[], &effective) && !has_new_split(&[split("b", "announced")], &effective));
    }
}
