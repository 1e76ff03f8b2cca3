//! Bars that do not count. A bar that repeats the values of another bar of its day is kept without these values.

use std::collections::{BTreeMap, HashMap};

use super::column::MISSING;
use super::columns::{Bar, Bars};
use super::version::{BarVersion, BarsError, VersionDictionary};

/// Bars of one symbol and source that do not count, in any order and with any number of bars per day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupersededBars {
    /// The bars. A repeated bar has only its day and its version.
    pub bars: Bars,
    /// For each bar: the version of the bar of the same day that has its values, as an index into `bars.versions`. `None`
    /// if the bar has its own values.
    pub originals: Vec<Option<u16>>,
}

/// Set of bars and index of a bar in this set.
type Place = (usize, usize);

impl SupersededBars {
    /// Bars that a merge with the result `current` replaced. `current` is sorted, with one bar per day.
    ///
    /// # Errors
    /// Prices do not fit a common scale, or there are too many versions.
    pub fn of_merge(replaced: Vec<Bars>, current: &Bars) -> Result<Self, BarsError> {
        let scale = replaced.iter().map(|bars| bars.scale).max().unwrap_or_default().max(current.scale);
        let mut superseded = Self { bars: Bars { scale, ..Bars::default() }, originals: Vec::new() };
        if replaced.is_empty() {
            return Ok(superseded);
        }
        let mut current = current.clone();
        current.rescale(scale)?;
        for mut bars in replaced {
            bars.rescale(scale)?;
            for index in 0..bars.len() {
                let bar = bars.bar(index);
                let place = current.day.binary_search(&bar.day).ok();
                let original = place.filter(|place| current.bar(*place) == bar);
                let original = original.map(|place| current.version_of(place));
                superseded.push(bar, bars.version_of(index), original)?;
            }
        }
        superseded.bars.canonicalize();
        Ok(superseded)
    }

    /// Appends bars that were replaced later.
    ///
    /// # Errors
    /// Prices do not fit a common scale, or there are too many versions.
    pub fn append(mut self, mut later: Self) -> Result<Self, BarsError> {
        let scale = self.bars.scale.max(later.bars.scale);
        self.bars.rescale(scale)?;
        later.bars.rescale(scale)?;
        for (index, original) in later.originals.iter().enumerate() {
            let original = original.map(|version| &later.bars.versions[usize::from(version)]);
            self.push(later.bars.bar(index), later.bars.version_of(index), original)?;
        }
        Ok(self)
    }

    fn push(
        &mut self,
        bar: Bar,
        version: &BarVersion,
        original: Option<&BarVersion>,
    ) -> Result<(), BarsError> {
        let mut dictionary = VersionDictionary::default();
        let mut index = |version| dictionary.index(&mut self.bars.versions, version);
        let (version, original) = (index(version)?, original.map(index).transpose()?);
        self.bars.push(if original.is_some() { without_values(bar.day) } else { bar }, version);
        self.originals.push(original);
        Ok(())
    }

    /// True without bars.
    pub fn is_empty(&self) -> bool {
        self.bars.is_empty()
    }

    /// All bars of `parts` with their values, as one sorted set per part and version. `current` are the bars that count.
    ///
    /// # Errors
    /// A bar repeats a bar that is in no part, and does not count.
    pub fn complete(parts: &[Self], current: &Bars) -> Result<Vec<Bars>, BarsError> {
        let sets: Vec<&Bars> = std::iter::once(current).chain(parts.iter().map(|part| &part.bars)).collect();
        let places = sets.iter().enumerate().skip(1).flat_map(|(set, bars)| {
            (0..bars.len()).map(move |index| ((bars.day[index], bars.version_of(index)), (set, index)))
        });
        let places: HashMap<(i32, &BarVersion), Place> = places.collect();
        let find = |day: i32, version: &BarVersion| match current.day.binary_search(&day) {
            Ok(index) if current.version_of(index) == version => Some((0, index)),
            _ => places.get(&(day, version)).copied(),
        };
        let mut with_values: HashMap<Place, Place> = HashMap::new();
        let mut complete = Vec::new();
        for (part, set) in parts.iter().zip(1..) {
            let mut by_version: BTreeMap<u16, Vec<(usize, Place)>> = BTreeMap::new();
            for index in 0..part.bars.len() {
                let values = find_values((set, index), parts, find, &mut with_values)?;
                by_version.entry(part.bars.version[index]).or_default().push((index, values));
            }
            for (version, mut members) in by_version {
                members.sort_by_key(|(index, _)| part.bars.day[*index]);
                let scale = members.iter().map(|(_, (set, _))| sets[*set].scale).max().unwrap_or_default();
                let versions = vec![part.bars.versions[usize::from(version)].clone()];
                let mut bars = Bars { scale, versions, ..Bars::default() };
                for (_, (set, index)) in members {
                    bars.push(sets[set].bar(index).scaled_up(scale - sets[set].scale)?, 0);
                }
                bars.canonicalize();
                complete.push(bars);
            }
        }
        Ok(complete)
    }
}

/// Finds the bar that has the values of the bar at `place`. `find` returns the bar of a day and version, and
/// `with_values` remembers what was found.
fn find_values(
    place: Place,
    parts: &[SupersededBars],
    find: impl Fn(i32, &BarVersion) -> Option<Place>,
    with_values: &mut HashMap<Place, Place>,
) -> Result<Place, BarsError> {
    let (mut passed, mut at) = (Vec::new(), place);
    while let Some(part) = at.0.checked_sub(1).map(|part| &parts[part]) {
        let Some(original) = part.originals[at.1] else { break };
        if let Some(known) = with_values.get(&at) {
            at = *known;
            break;
        }
        passed.push(at);
        let next = find(part.bars.day[at.1], &part.bars.versions[usize::from(original)]);
        at = next.filter(|next| !passed.contains(next)).ok_or(BarsError::NoOriginal)?;
    }
    with_values.extend(passed.into_iter().map(|place| (place, at)));
    Ok(at)
}

fn without_values(day: i32) -> Bar {
    let [open, high, low, close, volume, vwap, trade_count] = [MISSING; 7];
    Bar { day, open, high, low, close, volume, vwap, trade_count }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bars of one record batch. Each row is (day, close). All closes have one decimal place.
    fn batch(number: u8, rows: &[(i32, i64)]) -> Bars {
        let version = BarVersion { observed_at: number.into(), frame: [number; 16], ..BarVersion::UNKNOWN };
        let mut bars = Bars { scale: 1, versions: vec![version], ..Bars::default() };
        for (day, close) in rows {
            bars.push(Bar { close: *close, volume: 5, ..without_values(*day) }, 0);
        }
        Bars::merge_all(vec![bars]).expect("merges")
    }

    /// Day and close of a bar. The close has one decimal place.
    fn day_and_close(bars: &Bars, index: usize) -> (i32, i64) {
        (bars.day[index], bars.close[index] * 10i64.pow(1 - bars.scale))
    }

    proptest! {
        #[test]
        fn replaced_bars_come_back_with_their_values(
            batches in prop::collection::vec(prop::collection::vec((0i32..5, 1i64..25), 1..6), 1..9),
            order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
            rows in 1usize..4,
        ) {
            let all: Vec<Bars> = (1..).zip(&batches).map(|(number, rows)| batch(number, rows)).collect();
            let (mut current, mut parts) = (Bars::default(), vec![SupersededBars::default(); rows]);
            for (number, index) in order.into_iter().filter(|index| *index < all.len()).enumerate() {
                let (merged, replaced) =
                    Bars::merge_keeping_superseded(vec![current, all[index].clone()]).expect("merges");
                let replaced = SupersededBars::of_merge(replaced, &merged).expect("packs");
                let part = &mut parts[number % rows];
                *part = std::mem::take(part).append(replaced).expect("appends");
                current = merged;
            }
            let found = SupersededBars::complete(&parts, &current).expect("completes");
            // With the bars that count, these are all bars of all batches.
            let mut of_batches = vec![Vec::new(); all.len()];
            for bars in found.iter().chain([&current]) {
                for index in 0..bars.len() {
                    of_batches[usize::from(bars.version_of(index).frame[0]) - 1].push(day_and_close(bars, index));
                }
            }
            for (found, bars) in of_batches.iter_mut().zip(&all) {
                found.sort_unstable();
                let expected: Vec<_> = (0..bars.len()).map(|index| day_and_close(bars, index)).collect();
                prop_assert_eq!(&*found, &expected);
            }
        }
    }

    #[test]
    fn only_bars_with_other_values_have_values() {
        let (first, second) = (batch(1, &[(1, 10), (2, 20)]), batch(2, &[(1, 10), (2, 25)]));
        let (current, replaced) = Bars::merge_keeping_superseded(vec![first, second]).expect("merges");
        let superseded = SupersededBars::of_merge(replaced, &current).expect("packs");
        assert_eq!(superseded.bars.close, [MISSING, 2]);
        assert_eq!(superseded.originals, [Some(1), None]);
        let complete =
            SupersededBars::complete(std::slice::from_ref(&superseded), &current).expect("completes");
        assert_eq!(complete, [batch(1, &[(1, 10), (2, 20)])]);
        // The bar that counts is the only one with the values.
        let error = SupersededBars::complete(&[superseded], &Bars::default());
        assert!(matches!(error, Err(BarsError::NoOriginal)), "{error:?}");
    }
}
