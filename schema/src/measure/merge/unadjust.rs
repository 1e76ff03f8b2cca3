//! Split-adjusted bars brought back to raw (R10, R30), in integers.

use chrono::NaiveDate;
use rust_decimal::{Decimal, RoundingStrategy};

use crate::bars::{Bars, MISSING, date_of};
use crate::measure::adjust::{Ratio, Splits};

/// Digits an un-adjusted price keeps at most.
const PLACES: u32 = 10;

/// The bars on the basis of their own days. `newest` is the basis of bars whose version says 0.
pub(crate) fn raw_bars(bars: &Bars, splits: &Splits, newest: NaiveDate) -> Bars {
    let ratios: Vec<Ratio> = ratios(bars, splits, newest);
    if ratios.iter().all(Ratio::is_one) {
        return bars.clone();
    }
    let scale = (bars.scale..=PLACES.max(bars.scale)).rev().find(|scale| fits(bars, &ratios, *scale)).unwrap_or(bars.scale);
    let mut raw = Bars { scale, versions: bars.versions.clone(), ..Bars::default() };
    for (index, ratio) in ratios.iter().enumerate() {
        let price = |value: i64| scaled(value, bars.scale, *ratio, scale).unwrap_or(MISSING);
        let mut bar = bars.bar(index);
        (bar.open, bar.high, bar.low, bar.close) = (price(bar.open), price(bar.high), price(bar.low), price(bar.close));
        bar.vwap = price(bar.vwap);
        bar.volume = scaled(bar.volume, 0, ratio.inverse(), 0).unwrap_or(MISSING);
        raw.push(bar, bars.version[index]);
    }
    raw
}

/// What each bar's prices are multiplied by: to/from over the splits after its day, through its basis day.
fn ratios(bars: &Bars, splits: &Splits, newest: NaiveDate) -> Vec<Ratio> {
    let mut known: Option<(i32, u16, Ratio)> = None;
    let mut ratios = Vec::with_capacity(bars.len());
    for index in 0..bars.len() {
        let (day, version) = (date_of(bars.day[index]), bars.version[index]);
        // Between two splits the ratio of one version stays the same.
        let unchanged = known.filter(|(since, same, _)| {
            *same == version && splits.events().iter().all(|s| s.ex_date <= date_of(*since) || s.ex_date > day)
        });
        let ratio = unchanged.map_or_else(
            || match bars.version_of(index).basis_day {
                None => Ratio::ONE,
                Some(0) => splits.between(day, newest).inverse(),
                Some(basis) => splits.between(day, date_of(basis)).inverse(),
            },
            |(_, _, ratio)| ratio,
        );
        known = Some((bars.day[index], version, ratio));
        ratios.push(ratio);
    }
    ratios
}

fn fits(bars: &Bars, ratios: &[Ratio], scale: u32) -> bool {
    ratios.iter().enumerate().all(|(index, ratio)| {
        [bars.high[index], bars.close[index], bars.open[index], bars.low[index]]
            .into_iter()
            .filter(|value| *value != MISSING)
            .all(|value| scaled(value, bars.scale, *ratio, scale).is_some())
    })
}

/// `value / 10^scale` x ratio at another scale, half away from zero; `None` where it does not fit or is absent.
fn scaled(value: i64, scale: u32, ratio: Ratio, target: u32) -> Option<i64> {
    if value == MISSING {
        return None;
    }
    let raw = ratio.apply(Decimal::new(value, scale));
    let rounded = raw.round_dp_with_strategy(target, RoundingStrategy::MidpointAwayFromZero);
    let shifted = rounded.checked_mul(Decimal::from(10i64.checked_pow(target)?))?;
    i64::try_from(shifted.trunc()).ok()
}
