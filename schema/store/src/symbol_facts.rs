//! Packed facts of one symbol, as stored and as cached.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use market::bars::{Bars, BarsError, CloseColumns, PackedBars};
use market::event::Kind;
use smallvec::{SmallVec, smallvec};

/// What every source said of one symbol, the kinds aside that concern who it is or the whole market.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolFacts {
    /// By kind and source.
    records: BTreeMap<(Kind, Arc<str>), Box<[u8]>>,
    /// By source and first calendar year.
    bars: BTreeMap<(Arc<str>, i32), Years>,
}

/// Calendar years of a source's bars, one after the other: one as it is stored, or several packed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Years {
    range: Range<i32>,
    /// Of each year, what tells its columns as they are stored from others, versions aside.
    digests: SmallVec<[i64; 1]>,
    columns: Columns,
}

/// Packed columns of bars, or those of them that are read alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// Every column.
    All(Box<PackedBars>),
    /// What tells the closes and who said them.
    Closes {
        /// Scale and days.
        days: Box<[u8]>,
        /// Closes, as differences.
        close: Box<[u8]>,
        /// The distinct versions and where each holds.
        versions: Box<[u8]>,
    },
}

/// Memory that an entry takes beside its bytes, about: its place in the map, its boxes, and what the allocator rounds up.
const ENTRY: usize = 320;

impl SymbolFacts {
    /// True if records of a kind are among them.
    pub fn keeps(kind: Kind) -> bool {
        !matches!(kind, Kind::Security | Kind::Session)
    }

    /// Takes over a row of `records`, in place of the one of its kind and source.
    pub fn put_records(&mut self, kind: Kind, source: &str, packed: &[u8]) {
        self.records.insert((kind, source.into()), packed.into());
    }

    /// Takes over a row of `bars`, in place of the one of its source and year. Gives whether it could: a year that is packed
    /// together with others stays as it is.
    #[must_use]
    pub fn put_year(&mut self, source: &str, year: i32, digest: i64, columns: Columns) -> bool {
        let is_alone = self.year(source, year).is_none_or(|years| years.digests.len() == 1);
        if is_alone {
            let years = Years { range: year..year.saturating_add(1), digests: smallvec![digest], columns };
            let known = self.bars.keys().map(|(known, _)| known).find(|known| known.as_ref() == source);
            let source = known.map_or_else(|| source.into(), Arc::clone);
            self.bars.insert((source, year), years);
        }
        is_alone
    }

    /// The packed records of each kind and source.
    pub fn records(&self) -> impl Iterator<Item = (Kind, &str, &[u8])> {
        self.records.iter().map(|((kind, source), packed)| (*kind, source.as_ref(), packed.as_ref()))
    }

    /// The years of bars, those of a source one after the other.
    pub fn years(&self) -> impl Iterator<Item = (&str, &Years)> {
        self.bars.iter().map(|((source, _), years)| (source.as_ref(), years))
    }

    /// What a source's year of bars is held in.
    pub fn year(&self, source: &str, year: i32) -> Option<&Years> {
        // There are few, of which the last are asked for mostly.
        let mut newest_first = self.bars.iter().rev();
        newest_first
            .find(|((of, _), years)| of.as_ref() == source && years.range.contains(&year))
            .map(|(_, years)| years)
    }

    /// True if [`SymbolFacts::shrink`] would leave less.
    pub fn can_shrink(&self, closes: impl Fn(i32, i64) -> bool) -> bool {
        let mut before: Option<(&str, &Years)> = None;
        self.years().any(|(source, years)| {
            let found = years.suffice(&closes).then_some((source, years));
            let joins = found.zip(before).is_some_and(|(found, before)| before.1.precede(before.0, found));
            before = found;
            found.is_some() && (joins || matches!(years.columns, Columns::All(_)))
        })
    }

    /// Leaves only the closes of years that `closes` accepts, by year and digest, and packs those that follow each other
    /// together: one column of thirty years is smaller than thirty, and read faster.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn shrink(&mut self, closes: impl Fn(i32, i64) -> bool) -> Result<(), BarsError> {
        self.bars
            .values_mut()
            .filter(|years| years.suffice(&closes))
            .for_each(|years| years.columns.shrink());
        let bars: Vec<((Arc<str>, i32), Years)> = std::mem::take(&mut self.bars).into_iter().collect();
        let suffice = |years: &Years| years.suffice(&closes);
        let runs = bars.chunk_by(|((of, _), before), ((source, _), years)| {
            before.precede(of, (source, years)) && suffice(before) && suffice(years)
        });
        for run in runs {
            let [(key, first), more @ ..] = run else { continue };
            let years = match more {
                [] => first.clone(),
                more => joined(first, more.iter().map(|(_, years)| years))?,
            };
            self.bars.insert(key.clone(), years);
        }
        Ok(())
    }

    /// Bytes of memory it takes, about.
    pub fn size(&self) -> usize {
        let records = self.records.values().map(|packed| packed.len() + ENTRY);
        let years =
            self.bars.values().map(|years| years.columns.size() + size_of_val(&*years.digests) + ENTRY);
        records.chain(years).sum()
    }
}

/// Years and those that follow them, their closes packed together.
fn joined<'a>(first: &Years, more: impl Iterator<Item = &'a Years>) -> Result<Years, BarsError> {
    let (mut range, mut digests) = (first.range.clone(), first.digests.clone());
    let mut bars = Bars::from(first.columns.unpack_closes(0)?);
    for years in more {
        range.end = years.range.end;
        digests.extend_from_slice(&years.digests);
        bars = bars.append_closes(years.columns.unpack_closes(0)?)?;
    }
    let [days, close, versions] = CloseColumns::from(bars).pack()?.map(Vec::into_boxed_slice);
    Ok(Years { range, digests, columns: Columns::Closes { days, close, versions } })
}

impl Years {
    /// The years.
    pub fn range(&self) -> Range<i32> {
        self.range.clone()
    }

    /// Their bars, as far as they were read.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// True if each of them is accepted, by year and digest.
    pub fn suffice(&self, accepted: impl Fn(i32, i64) -> bool) -> bool {
        self.range().zip(&self.digests).all(|(year, digest)| accepted(year, *digest))
    }

    /// True if they are followed by others without a year between them.
    fn precede(&self, source: &str, (of, next): (&str, &Self)) -> bool {
        source == of && self.range.end == next.range.start
    }
}

impl Columns {
    /// Leaves the closes alone.
    fn shrink(&mut self) {
        if let Self::All(packed) = self {
            let [days, close, versions] = [&mut packed.days, &mut packed.close, &mut packed.versions]
                .map(|column| std::mem::take(column).into_boxed_slice());
            *self = Self::Closes { days, close, versions };
        }
    }

    /// Every column that is held; the others are absent.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpack(&self) -> Result<Bars, BarsError> {
        match self {
            Self::All(packed) => packed.unpack(),
            Self::Closes { .. } => self.unpack_closes(0).map(Bars::from),
        }
    }

    /// Days, closes and versions, with room for so many more bars.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpack_closes(&self, room: usize) -> Result<CloseColumns, BarsError> {
        match self {
            Self::All(packed) => CloseColumns::unpack(&packed.days, &packed.close, &packed.versions, room),
            Self::Closes { days, close, versions } => CloseColumns::unpack(days, close, versions, room),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::All(packed) => {
                let PackedBars { days, close, range, volume, extra, versions } = packed.as_ref();
                let columns = [days, close, range, volume, extra, versions];
                size_of::<PackedBars>() + columns.iter().map(|column| column.len()).sum::<usize>()
            }
            Self::Closes { days, close, versions } => days.len() + close.len() + versions.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use market::bars::{Bar, BarVersion, MISSING};
    use market::day::day_number;
    use proptest::prelude::*;

    use super::*;

    /// Some sessions of a year, of two versions.
    fn packed(year: i32, scale: u32, closes: &[i64]) -> PackedBars {
        let versions =
            vec![BarVersion::UNKNOWN, BarVersion { revision: i64::from(year), ..BarVersion::UNKNOWN }];
        let mut bars = Bars { scale, versions, ..Bars::default() };
        let first = day_number(chrono::NaiveDate::from_ymd_opt(year, 1, 4).expect("a day"));
        for (day, close) in (first..).step_by(3).zip(closes) {
            let [open, high, low, vwap, trade_count] = [MISSING; 5];
            bars.push(
                Bar { day, open, high, low, close: *close, volume: 7, vwap, trade_count },
                u16::from(close % 2 == 0),
            );
        }
        bars.canonicalize();
        bars.pack().expect("bars")
    }

    /// All closes of a source, as histories are made of them.
    fn closes(facts: &SymbolFacts, source: &str) -> Bars {
        let parts = facts.years().filter(|(of, _)| *of == source);
        parts.fold(Bars::default(), |bars, (_, years)| {
            bars.append_closes(years.columns().unpack_closes(0).expect("closes")).expect("later days")
        })
    }

    proptest! {
        #[test]
        fn years_packed_together_have_the_same_closes(
            years in prop::collection::btree_map(
                (prop::sample::select(vec!["a", "b"]), 2000i32..2012),
                (0u32..4, prop::collection::vec(1i64..100_000, 1..40)),
                1..20,
            ),
            accepted in prop::collection::btree_set(2000i32..2012, 0..12),
            more in prop::collection::btree_set(2000i32..2012, 0..12),
        ) {
            let mut facts = SymbolFacts::default();
            for ((source, year), (scale, closes)) in &years {
                let columns = Columns::All(Box::new(packed(*year, *scale, closes)));
                prop_assert!(facts.put_year(source, *year, i64::from(*year) * 3, columns));
            }
            let whole = facts.clone();
            for accepted in [&accepted, &(&accepted | &more)] {
                let suffices = |year: i32, digest: i64| accepted.contains(&year) && digest == i64::from(year) * 3;
                let can_shrink = facts.can_shrink(suffices);
                let before = facts.clone();
                facts.shrink(suffices).expect("closes");
                prop_assert_eq!(can_shrink, facts != before);
                prop_assert!(!facts.can_shrink(suffices));
                for source in ["a", "b"] {
                    prop_assert_eq!(closes(&facts, source), closes(&whole, source));
                }
                for (source, year) in years.keys() {
                    let held = facts.year(source, *year).expect("a year");
                    prop_assert_eq!(matches!(held.columns, Columns::Closes { .. }), accepted.contains(year));
                    prop_assert!(held.suffice(|_, digest| digest % 3 == 0));
                    // A year alone can be replaced; of others only all at once.
                    let (mut changed, alone) = (facts.clone(), held.range().len() == 1);
                    let columns = Columns::All(Box::new(packed(*year, 2, &[5])));
                    prop_assert_eq!(changed.put_year(source, *year, 1, columns), alone);
                    prop_assert_eq!(changed == facts, !alone);
                }
                prop_assert!(facts.year("c", 2005).is_none() && facts.year("a", 1999).is_none());
            }
        }
    }
}
