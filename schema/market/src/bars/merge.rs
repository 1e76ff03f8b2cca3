//! Merge of sets of bars. For each day, the result has the bar with the greatest version. The order of the sets does
//! not matter.

use super::column::MISSING;
use super::columns::Bars;
use super::version::{BarVersion, BarsError, VersionDictionary};

impl Bars {
    /// Merges two sets of bars by day. Of several bars of one day, the greatest version is kept. The order of merging
    /// does not matter.
    pub fn merge(self, other: Self) -> Result<Self, BarsError> {
        Self::merge_all(vec![self, other])
    }

    /// Merges any number of sets of bars into one set, with the same result as repeated calls of [`Bars::merge`].
    pub fn merge_all(mut parts: Vec<Self>) -> Result<Self, BarsError> {
        if are_in_order(&parts) {
            return parts.into_iter().try_fold(Self::default(), Self::append)?.into_canonical();
        }
        let scale = parts.iter().map(|part| part.scale).max().unwrap_or_default();
        parts.iter_mut().try_for_each(|part| part.rescale(scale))?;
        let mut picks: Vec<(i32, usize, usize)> = Vec::with_capacity(parts.iter().map(Self::len).sum());
        for (number, part) in parts.iter().enumerate() {
            picks.extend(part.day.iter().enumerate().map(|(index, day)| (*day, number, index)));
        }
        picks.sort_by_key(|(day, _, _)| *day);
        let mut merged = Self { scale, ..Self::default() };
        let mut dictionary = VersionDictionary::default();
        for same_day in picks.chunk_by(|a, b| a.0 == b.0) {
            // If a record batch has two bars of one day, their versions are equal. The last bar then wins, because
            // `max_by_key` returns the last maximum.
            let version = |pick: &(i32, usize, usize)| parts[pick.1].version_of(pick.2);
            if let Some(best) = same_day.iter().max_by_key(|pick| version(pick).rank()) {
                let index = dictionary.index(&mut merged.versions, version(best))?;
                merged.push(parts[best.1].bar(best.2), index);
            }
        }
        merged.canonicalize();
        Ok(merged)
    }

    /// Merges any number of sets of bars. Also returns the replaced bars. For each part that has replaced bars, one set
    /// with these bars is returned.
    pub fn merge_keeping_superseded(parts: Vec<Self>) -> Result<(Self, Vec<Self>), BarsError> {
        if are_in_order(&parts) {
            return Ok((Self::merge_all(parts)?, Vec::new()));
        }
        let merged = Self::merge_all(parts.clone())?;
        let mut superseded = Vec::new();
        for part in parts {
            let replaced = Self::merge_all(vec![part])?.superseded_by(&merged);
            if !replaced.is_empty() {
                // `replaced` still has all versions of `part`. `merge_all` of this one set removes the versions that no
                // replaced bar uses.
                superseded.push(Self::merge_all(vec![replaced])?);
            }
        }
        Ok((merged, superseded))
    }

    /// Converts bars to the canonical form: the smallest possible scale, and no unused versions. The bars must be
    /// sorted, with one bar per day.
    fn into_canonical(mut self) -> Result<Self, BarsError> {
        let (version, versions) = (std::mem::take(&mut self.version), std::mem::take(&mut self.versions));
        self.append_versions(&version, &versions)?;
        self.canonicalize();
        Ok(self)
    }

    /// Appends bars. If `other` does not begin after the last bar, both sets are merged by day.
    pub fn append(mut self, mut other: Self) -> Result<Self, BarsError> {
        if self.is_empty() || other.is_empty() {
            return Ok(if self.is_empty() { other } else { self });
        }
        if self.day.last() >= other.day.first() {
            return self.merge(other);
        }
        let scale = self.scale.max(other.scale);
        self.rescale(scale)?;
        other.rescale(scale)?;
        self.append_versions(&other.version, &other.versions)?;
        self.extend_columns(&other, 0..other.len());
        Ok(self)
    }

    /// Appends the versions of more bars. `version` has one entry per bar: the index of its version in `versions`.
    fn append_versions(&mut self, version: &[u16], versions: &[BarVersion]) -> Result<(), BarsError> {
        let (mut dictionary, mut places) = (VersionDictionary::default(), vec![None; versions.len()]);
        for run in version.chunk_by(|one, next| one == next) {
            let index = usize::from(run[0]);
            let place = match places[index] {
                Some(place) => place,
                None => *places[index].insert(dictionary.index(&mut self.versions, &versions[index])?),
            };
            self.version.resize(self.version.len() + run.len(), place);
        }
        Ok(())
    }

    /// Reduces the scale to the smallest one that represents all prices exactly.
    pub fn canonicalize(&mut self) {
        let mut divisor = 1i64;
        let mut scale = self.scale;
        while scale > 0 && self.has_multiples_only(divisor * 10) {
            divisor *= 10;
            scale -= 1;
        }
        if divisor > 1 {
            for column in self.prices_mut() {
                column.iter_mut().filter(|value| **value != MISSING).for_each(|value| *value /= divisor);
            }
            self.scale = scale;
        }
    }

    /// True if no smaller scale represents all prices exactly.
    pub(crate) fn is_canonical(&self) -> bool {
        self.scale == 0 || !self.has_multiples_only(10)
    }

    /// True if all integer prices are multiples of `divisor`.
    fn has_multiples_only(&self, divisor: i64) -> bool {
        self.prices().into_iter().flatten().all(|value| *value == MISSING || value % divisor == 0)
    }
}

/// True if each set is sorted by day, and begins after the previous set. No day then occurs twice.
fn are_in_order(parts: &[Bars]) -> bool {
    let follows = |parts: &[Bars]| parts[0].day.last() < parts[1].day.first();
    let is_sorted = |part: &Bars| part.day.is_sorted_by(|before, day| before < day);
    parts.windows(2).all(follows) && parts.iter().all(is_sorted)
}
