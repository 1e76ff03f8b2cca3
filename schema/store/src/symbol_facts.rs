//! Packed facts of one symbol, in the form in which Postgres stores them and the projector caches them.
//!
//! Links between symbols that may name the same security.
//!
//! Symbols that are linked directly or through other symbols form a component. The facts of a component are enough to
//! find the securities that its symbols named in the past.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use codec::bars::{PackedBars, PackedBarsError, pack_closes, unpack_closes};
use codec::digest;
use market::bars::Bars;
use market::event::{Kind, Security};
use market::history::Observation;
use market::symbol::Symbol;
use smallvec::{SmallVec, smallvec};
use tokio_postgres::{Error, GenericClient};

use crate::facts::{FactsError, load_known_symbols, load_securities};

/// Facts of one symbol from all sources. Security records and records of the whole market are not included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolFacts {
    /// Packed records of each kind and source.
    records: BTreeMap<(Kind, Arc<str>), Box<[u8]>>,
    /// Packed bars, by source and by the first calendar year of the bars.
    bars: BTreeMap<(Arc<str>, i32), PackedYears>,
}

/// Bars of one source for one calendar year, or for several consecutive calendar years that are packed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedYears {
    range: Range<i32>,
    /// One digest for each year, in chronological order. It is the digest of the columns that Postgres stores for the
    /// year, except the column `versions`.
    digests: SmallVec<[i64; 1]>,
    columns: PackedColumns,
}

/// Packed columns of bars: all columns, or only the closes with their days and versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackedColumns {
    /// All columns.
    All(Box<PackedBars>),
    /// Closes with their days and versions.
    Closes {
        /// Scale (number of decimal places) of the prices, and days of the bars.
        days: Box<[u8]>,
        /// Closes, as differences from the previous close.
        close: Box<[u8]>,
        /// Distinct versions (revision, observation time and provenance) of the bars, and the index of each bar's
        /// version.
        versions: Box<[u8]>,
    },
}

/// Bars of one source and calendar year as Postgres stores them, with all columns.
#[derive(Debug, Clone, Copy)]
pub struct WholeYear<'a> {
    /// Digest of the columns, except the column `versions`.
    pub digest: i64,
    /// All columns.
    pub packed: &'a PackedBars,
}

/// Approximate memory of an entry without its content, in bytes: map node, boxes and rounding by the allocator.
const ENTRY: usize = 320;

impl SymbolFacts {
    /// True if [`SymbolFacts`] can contain records of this kind.
    pub fn has_kind(kind: Kind) -> bool {
        !matches!(kind, Kind::Security | Kind::Session | Kind::Fx)
    }

    /// Replaces the records of a kind and source.
    pub fn put_records(&mut self, kind: Kind, source: &str, packed: &[u8]) {
        self.records.insert((kind, source.into()), packed.into());
    }

    /// Replaces the bars of one year from a source. If the year is packed together with other years, changes nothing
    /// and returns false.
    #[must_use]
    pub fn put_year(&mut self, source: &str, year: i32, digest: i64, columns: PackedColumns) -> bool {
        let is_alone = self.year(source, year).is_none_or(|years| years.digests.len() == 1);
        if is_alone {
            let years =
                PackedYears { range: year..year.saturating_add(1), digests: smallvec![digest], columns };
            let known = self.bars.keys().map(|(known, _)| known).find(|known| known.as_ref() == source);
            let source = known.map_or_else(|| source.into(), Arc::clone);
            self.bars.insert((source, year), years);
        }
        is_alone
    }

    /// Removes the bars of one year from a source. If the year is packed together with other years, changes nothing and
    /// returns false.
    #[must_use]
    pub fn remove_year(&mut self, source: &str, year: i32) -> bool {
        let is_alone = self.year(source, year).is_none_or(|years| years.digests.len() == 1);
        if is_alone {
            self.bars.retain(|(of, first), _| of.as_ref() != source || *first != year);
        }
        is_alone
    }

    /// Packed records, each with its kind and source.
    pub fn records(&self) -> impl Iterator<Item = (Kind, &str, &[u8])> {
        self.records.iter().map(|((kind, source), packed)| (*kind, source.as_ref(), packed.as_ref()))
    }

    /// Packed bars, each entry with its source. Entries of one source are consecutive, in chronological order.
    pub fn years(&self) -> impl Iterator<Item = (&str, &PackedYears)> {
        self.bars.iter().map(|((source, _), years)| (source.as_ref(), years))
    }

    /// Entry that contains the bars of a year from a source; `None` without bars.
    pub fn year(&self, source: &str, year: i32) -> Option<&PackedYears> {
        // A linear search, because a source has few entries. It begins with the newest entries, which are read most.
        let mut newest_first = self.bars.iter().rev();
        newest_first
            .find(|((of, _), years)| of.as_ref() == source && years.range.contains(&year))
            .map(|(_, years)| years)
    }

    /// True if [`SymbolFacts::shrink`] with the same `closes` would save memory.
    pub fn can_shrink(&self, closes: impl Fn(i32, i64) -> bool) -> bool {
        let mut before: Option<(&str, &PackedYears)> = None;
        self.years().any(|(source, years)| {
            let found = years.all_accepted(&closes).then_some((source, years));
            let joins =
                found.zip(before).is_some_and(|(found, before)| before.1.is_followed_by(before.0, found));
            before = found;
            found.is_some() && (joins || matches!(years.columns, PackedColumns::All(_)))
        })
    }

    /// Reduces years of bars to closes, days and versions. The predicate `closes` selects the years by calendar year
    /// and digest. Adjacent reduced years are packed together.
    ///
    /// # Errors
    /// The columns are damaged.
    pub fn shrink(&mut self, closes: impl Fn(i32, i64) -> bool) -> Result<(), PackedBarsError> {
        self.bars
            .values_mut()
            .filter(|years| years.all_accepted(&closes))
            .for_each(|years| years.columns.shrink());
        let bars: Vec<((Arc<str>, i32), PackedYears)> = std::mem::take(&mut self.bars).into_iter().collect();
        let suffice = |years: &PackedYears| years.all_accepted(&closes);
        let runs = bars.chunk_by(|((of, _), before), ((source, _), years)| {
            before.is_followed_by(of, (source, years)) && suffice(before) && suffice(years)
        });
        for run in runs {
            let [(key, first), more @ ..] = run else { continue };
            let years = match more {
                [] => first.clone(),
                more => pack_closes_together(first, more.iter().map(|(_, years)| years))?,
            };
            self.bars.insert(key.clone(), years);
        }
        Ok(())
    }

    /// Approximate size in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        let records = self.records.values().map(|packed| packed.len() + ENTRY);
        let years =
            self.bars.values().map(|years| years.columns.size_bytes() + size_of_val(&*years.digests) + ENTRY);
        records.chain(years).sum()
    }
}

/// Packs the closes of `first` and of the following years together.
fn pack_closes_together<'a>(
    first: &PackedYears,
    more: impl Iterator<Item = &'a PackedYears>,
) -> Result<PackedYears, PackedBarsError> {
    let (mut range, mut digests) = (first.range.clone(), first.digests.clone());
    let mut bars = first.columns.unpack_closes(0)?;
    for years in more {
        range.end = years.range.end;
        digests.extend_from_slice(&years.digests);
        bars = bars.append(years.columns.unpack_closes(0)?)?;
    }
    let [days, close, versions] = pack_closes(&bars)?.map(Vec::into_boxed_slice);
    Ok(PackedYears { range, digests, columns: PackedColumns::Closes { days, close, versions } })
}

impl PackedYears {
    /// Calendar years of the entry.
    pub fn range(&self) -> Range<i32> {
        self.range.clone()
    }

    /// Packed columns of all years of the entry.
    pub fn columns(&self) -> &PackedColumns {
        &self.columns
    }

    /// Bars of the entry; `None` if the entry has only closes.
    pub fn whole_year(&self) -> Option<WholeYear<'_>> {
        match (&self.columns, self.digests.as_slice()) {
            (PackedColumns::All(packed), [digest]) => Some(WholeYear { digest: *digest, packed }),
            _ => None,
        }
    }

    /// True if `accepted` returns true for the calendar year and digest of every year of the entry.
    pub fn all_accepted(&self, accepted: impl Fn(i32, i64) -> bool) -> bool {
        self.range().zip(&self.digests).all(|(year, digest)| accepted(year, *digest))
    }

    /// True if `next` has the same source and begins in the year after the last year of this entry. `source` is the
    /// source of this entry, `of` the source of `next`.
    fn is_followed_by(&self, source: &str, (of, next): (&str, &Self)) -> bool {
        source == of && self.range.end == next.range.start
    }
}

impl PackedColumns {
    fn shrink(&mut self) {
        if let Self::All(packed) = self {
            let [days, close, versions] = [&mut packed.days, &mut packed.close, &mut packed.versions]
                .map(|column| std::mem::take(column).into_boxed_slice());
            *self = Self::Closes { days, close, versions };
        }
    }

    /// Unpacks the bars. Columns that are not stored have absent values.
    ///
    /// # Errors
    /// The columns are damaged.
    pub fn unpack(&self) -> Result<Bars, PackedBarsError> {
        match self {
            Self::All(packed) => packed.unpack(),
            Self::Closes { .. } => self.unpack_closes(0),
        }
    }

    /// Unpacks days, closes and versions. All other values are absent. Reserves capacity for `room` more bars.
    ///
    /// # Errors
    /// The columns are damaged.
    pub fn unpack_closes(&self, room: usize) -> Result<Bars, PackedBarsError> {
        match self {
            Self::All(packed) => unpack_closes(&packed.days, &packed.close, &packed.versions, room),
            Self::Closes { days, close, versions } => unpack_closes(days, close, versions, room),
        }
    }

    fn size_bytes(&self) -> usize {
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

const INSERT: &str = include_str!("../queries/symbol_links_insert.sql");
/// Selects true if the fact set has no links. Older program versions did not store links.
const IS_UNLINKED: &str = "select not exists (select from symbol_links) as unlinked";

/// Collected links, which [`SymbolLinks::store`] writes to Postgres. They are pairs (digest of the link, symbol). All
/// symbols with the same digest are linked.
#[derive(Debug, Default)]
pub struct SymbolLinks(BTreeSet<(i64, String)>);

impl SymbolLinks {
    /// Links the current symbol and the former symbols of a security record. All versions of a record have the same
    /// link digest, so their symbols are linked too.
    pub fn add_security(&mut self, observation: &Observation<Security>) {
        let record = &observation.record;
        let key = observation.security_ref.as_deref().or(observation.id.as_deref());
        let key = key.unwrap_or(record.symbol.as_str());
        let link = digest(["security", observation.source.as_str(), key].map(str::as_bytes));
        let former = record.former_symbols.iter().map(|former| &former.symbol);
        self.0.extend(former.chain([&record.symbol]).map(|symbol| (link, symbol.to_string())));
    }

    /// Links the spellings of a symbol, if it has more than one.
    pub fn add_spellings(&mut self, symbol: &Symbol) {
        let spellings: Vec<Symbol> = symbol.spellings().collect();
        if spellings.len() > 1 {
            let link = digest(["spellings", symbol.as_str()].map(str::as_bytes));
            self.0.extend(spellings.iter().map(|spelling| (link, spelling.to_string())));
        }
    }

    /// Stores the links. Existing links stay unchanged.
    ///
    /// # Errors
    /// Postgres rejects the statement or is unreachable.
    pub async fn store(self, client: &impl GenericClient) -> Result<(), Error> {
        if !self.0.is_empty() {
            let (links, symbols): (Vec<i64>, Vec<String>) = self.0.into_iter().unzip();
            client.execute(INSERT, &[&links, &symbols]).await?;
        }
        Ok(())
    }
}

/// Adds the links to a fact set that an older program version wrote without links.
///
/// # Errors
/// Postgres rejects a statement or is unreachable, or the stored facts are damaged.
pub async fn fill_symbol_links(client: &impl GenericClient) -> Result<(), FactsError> {
    if !client.query_one(IS_UNLINKED, &[]).await?.try_get::<_, bool>("unlinked")? {
        return Ok(());
    }
    let mut links = SymbolLinks::default();
    load_securities(client).await?.iter().for_each(|observation| links.add_security(observation));
    load_known_symbols(client).await?.iter().for_each(|symbol| links.add_spellings(symbol));
    Ok(links.store(client).await?)
}

#[cfg(test)]
mod tests {
    use market::bars::{Bar, BarVersion, MISSING};
    use market::day::day_number;
    use proptest::prelude::*;

    use super::*;

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
        PackedBars::pack(&bars).expect("bars")
    }

    fn closes(facts: &SymbolFacts, source: &str) -> Bars {
        let parts = facts.years().filter(|(of, _)| *of == source);
        parts.fold(Bars::default(), |bars, (_, years)| {
            bars.append(years.columns().unpack_closes(0).expect("closes")).expect("later days")
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
                let columns = PackedColumns::All(Box::new(packed(*year, *scale, closes)));
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
                    prop_assert_eq!(matches!(held.columns, PackedColumns::Closes { .. }), accepted.contains(year));
                    prop_assert!(held.all_accepted(|_, digest| digest % 3 == 0));
                    // A single year can be replaced; a year packed with others cannot.
                    let (mut changed, alone) = (facts.clone(), held.range().len() == 1);
                    let columns = PackedColumns::All(Box::new(packed(*year, 2, &[5])));
                    prop_assert_eq!(changed.put_year(source, *year, 1, columns), alone);
                    prop_assert_eq!(changed == facts, !alone);
                }
                prop_assert!(facts.year("c", 2005).is_none() && facts.year("a", 1999).is_none());
            }
        }
    }
}
