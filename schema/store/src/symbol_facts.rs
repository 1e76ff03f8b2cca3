//! The facts of one symbol, packed as they are stored: read from Postgres once and kept where they are needed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use market::bars::{Bars, BarsError, Closes, Packed};
use market::event::Kind;

/// What every source said of one symbol, the kinds aside that concern who it is or the whole market.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolFacts {
    /// By kind and source.
    records: BTreeMap<(Kind, Arc<str>), Box<[u8]>>,
    /// By source and calendar year.
    bars: BTreeMap<(Arc<str>, i32), Year>,
}

/// One year of a source's bars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Year {
    /// Tells the columns from others, versions aside.
    pub digest: i64,
    /// Its bars, as far as they were read.
    pub columns: Columns,
}

/// A year's packed columns, or those of them that are read alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// Every column.
    All(Box<Packed>),
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
    /// Whether records of a kind are among them.
    pub fn keeps(kind: Kind) -> bool {
        !matches!(kind, Kind::Security | Kind::Session)
    }

    /// Takes over a row of `records`, in place of the one of its kind and source.
    pub fn put_records(&mut self, kind: Kind, source: &str, packed: &[u8]) {
        self.records.insert((kind, source.into()), packed.into());
    }

    /// Takes over a row of `bars`, in place of the one of its source and year.
    pub fn put_year(&mut self, source: &str, year: i32, of_year: Year) {
        self.bars.insert((source.into(), year), of_year);
    }

    /// The packed records of each kind and source.
    pub fn records(&self) -> impl Iterator<Item = (Kind, &str, &[u8])> {
        self.records.iter().map(|((kind, source), packed)| (*kind, source.as_ref(), packed.as_ref()))
    }

    /// The years of bars, those of a source one after the other.
    pub fn years(&self) -> impl Iterator<Item = (&str, i32, &Year)> {
        self.bars.iter().map(|((source, year), of_year)| (source.as_ref(), *year, of_year))
    }

    /// What a source's year of bars holds.
    pub fn year(&self, source: &str, year: i32) -> Option<&Year> {
        self.bars.get(&(source.into(), year))
    }

    /// Whether any year has more than its closes and needs them alone.
    pub fn can_shrink(&self, closes: impl Fn(i32, i64) -> bool) -> bool {
        self.years().any(|(_, year, of)| matches!(of.columns, Columns::All(_)) && closes(year, of.digest))
    }

    /// Leaves only the closes of years that `closes` accepts, by year and digest.
    pub fn shrink(&mut self, closes: impl Fn(i32, i64) -> bool) {
        for ((_, year), of) in &mut self.bars {
            if let (Columns::All(packed), true) = (&of.columns, closes(*year, of.digest)) {
                let [days, close, versions] =
                    [&packed.days, &packed.close, &packed.versions].map(|column| column.as_slice().into());
                of.columns = Columns::Closes { days, close, versions };
            }
        }
    }

    /// Bytes of memory it takes, about.
    pub fn size(&self) -> usize {
        let records = self.records.values().map(|packed| packed.len() + ENTRY);
        let years = self.bars.values().map(|year| year.columns.size() + ENTRY);
        records.chain(years).sum()
    }
}

impl Columns {
    /// Every column that is held; the others are absent.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpack(&self) -> Result<Bars, BarsError> {
        match self {
            Self::All(packed) => packed.unpack(),
            Self::Closes { .. } => self.unpack_closes().map(Bars::from),
        }
    }

    /// Days, closes and versions.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpack_closes(&self) -> Result<Closes, BarsError> {
        match self {
            Self::All(packed) => Closes::unpack(&packed.days, &packed.close, &packed.versions),
            Self::Closes { days, close, versions } => Closes::unpack(days, close, versions),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::All(packed) => {
                let Packed { days, close, range, volume, extra, versions } = packed.as_ref();
                let columns = [days, close, range, volume, extra, versions];
                size_of::<Packed>() + columns.iter().map(|column| column.len()).sum::<usize>()
            }
            Self::Closes { days, close, versions } => days.len() + close.len() + versions.len(),
        }
    }
}
