//! Coverage of a load: symbols, new symbols and date range, for the summary and `--dry-run`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use market::event::{EventRecord, Kind, RunManifest, RunState};
use market::symbol::Symbol;
use serde::Serialize;
use telemetry::list_names;

/// Maximum number of symbols recorded per load. Further symbols are ignored, which limits the memory and the size of
/// the manifest.
const MAX_SYMBOLS: usize = 200_000;
/// Maximum number of symbols named in a summary.
const MAX_NAMED: usize = 10;

/// Symbols and dates of the accepted rows.
#[derive(Debug, Default, Clone)]
pub(crate) struct LoadCoverage {
    symbols: BTreeSet<Symbol>,
    /// Symbols with a price row that is not a retraction.
    priced: BTreeSet<Symbol>,
    /// True if the load has more than [`MAX_SYMBOLS`] symbols.
    overflowed: bool,
    /// First and last date, by kind.
    dates: BTreeMap<Kind, (NaiveDate, NaiveDate)>,
}

impl LoadCoverage {
    pub(crate) fn add_symbol(&mut self, symbol: &Symbol) {
        if !self.symbols.contains(symbol) {
            self.overflowed |= self.symbols.len() >= MAX_SYMBOLS;
            if !self.overflowed {
                self.symbols.insert(symbol.clone());
            }
        }
    }

    /// Adds the symbol of a price that is not a retraction.
    pub(crate) fn add_priced_symbol(&mut self, symbol: &Symbol) {
        self.add_symbol(symbol);
        if !self.overflowed && !self.priced.contains(symbol) {
            self.priced.insert(symbol.clone());
        }
    }

    /// Symbols with a price that is not a retraction.
    pub(crate) fn priced_symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.priced.iter()
    }

    pub(crate) fn add_date(&mut self, kind: Kind, date: NaiveDate) {
        let (first, last) = self.dates.entry(kind).or_insert((date, date));
        (*first, *last) = ((*first).min(date), (*last).max(date));
    }

    /// Newest date of each kind.
    pub(crate) fn newest_dates(&self) -> BTreeMap<Kind, NaiveDate> {
        self.dates.iter().map(|(kind, (_, last))| (*kind, *last)).collect()
    }

    pub(crate) fn add_record<T: EventRecord>(&mut self, record: &T) {
        // The symbol of an exchange rate is the key of its facts, not a ticker.
        record
            .symbol()
            .filter(|_| T::KIND != Kind::Fx)
            .into_iter()
            .for_each(|symbol| self.add_symbol(symbol));
        record.date().into_iter().for_each(|date| self.add_date(T::KIND, date));
    }

    /// Adds the symbols and dates of another file's rows.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.overflowed |= other.overflowed;
        other.symbols.iter().for_each(|symbol| self.add_symbol(symbol));
        other.priced.iter().for_each(|symbol| self.add_priced_symbol(symbol));
        for (kind, (first, last)) in &other.dates {
            self.add_date(*kind, *first);
            self.add_date(*kind, *last);
        }
    }
}

/// Sources and symbols of earlier loads, for comparison with a new load. The earlier loads are the completed runs in
/// the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierCoverage {
    pub sources: BTreeSet<String>,
    /// Index of the first completed run of each symbol. `None` if a manifest has no list of new symbols.
    symbols: Option<HashMap<Symbol, usize>>,
    /// For each source, the index of its last completed run with prices.
    last_priced: BTreeMap<String, usize>,
}

impl EarlierCoverage {
    /// Builds the coverage from the manifests of a log.
    pub(crate) fn from_manifests<'a>(manifests: impl IntoIterator<Item = &'a RunManifest>) -> Self {
        let symbols = Some(HashMap::new());
        let mut before = Self { sources: BTreeSet::new(), symbols, last_priced: BTreeMap::new() };
        let loaded = |run: &&RunManifest| run.state == RunState::Completed && run.pull.is_none();
        for (number, run) in manifests.into_iter().filter(loaded).enumerate() {
            before.sources.insert(run.source.clone());
            if run.newest.contains_key(&Kind::Price) {
                before.last_priced.insert(run.source.clone(), number);
            }
            match (&mut before.symbols, &run.new_symbols) {
                (Some(symbols), Some(new)) => {
                    for symbol in new {
                        symbols.entry(symbol.clone()).or_insert(number);
                    }
                }
                _ => before.symbols = None,
            }
        }
        before
    }

    /// Symbols that may have prices from a source. They were known at the source's last run with prices, or have prices
    /// in this load. `None` if a list of symbols is incomplete.
    pub(crate) fn symbols_with_prices<'a>(
        &'a self,
        source: &str,
        load: &'a LoadCoverage,
    ) -> Option<impl Iterator<Item = &'a Symbol>> {
        let last = self.last_priced.get(source).copied();
        let symbols = self.symbols.as_ref().filter(|_| !load.overflowed)?;
        let earlier = symbols.iter().filter(move |(_, number)| last.is_some_and(|last| **number <= last));
        Some(earlier.map(|(symbol, _)| symbol).chain(&load.priced))
    }

    /// Symbols of a load that are in no earlier run. `None` if the list of symbols of this load or of an earlier run is
    /// incomplete.
    pub(crate) fn new_symbols(&self, coverage: &LoadCoverage) -> Option<Vec<Symbol>> {
        let known = self.symbols.as_ref().filter(|_| !coverage.overflowed)?;
        Some(coverage.symbols.iter().filter(|symbol| !known.contains_key(*symbol)).cloned().collect())
    }
}

/// Symbols of a load, for its summary.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SymbolSummary {
    pub count: usize,
    /// True if counting stopped at a limit, so that the load has more than `count` symbols.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// First symbols in alphabetical order.
    pub first: Vec<Symbol>,
    /// Number of symbols that are in no earlier run. Absent if the list of symbols of this load or of an earlier run is
    /// incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<usize>,
    /// First new symbols in alphabetical order. A symbol is new if it is in no earlier run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_new: Vec<Symbol>,
}

/// First and last date of a load's rows.
#[derive(Debug, Clone, Serialize)]
pub struct DateSpan {
    pub first: NaiveDate,
    pub last: NaiveDate,
}

impl SymbolSummary {
    /// Summary of a load's symbols. `new` has the symbols that are in no earlier run; `None` if they are unknown.
    pub(crate) fn from_coverage(coverage: &LoadCoverage, new: Option<&[Symbol]>) -> Self {
        Self {
            count: coverage.symbols.len(),
            more: coverage.overflowed,
            first: coverage.symbols.iter().take(MAX_NAMED).cloned().collect(),
            new: new.map(<[Symbol]>::len),
            first_new: new.unwrap_or_default().iter().take(MAX_NAMED).cloned().collect(),
        }
    }

    /// Number of symbols and their names; `None` without symbols.
    pub(crate) fn describe(&self) -> Option<String> {
        let more = if self.more { "more than " } else { "" };
        let new = match self.new {
            None => String::new(),
            Some(0) => ", none of them new".to_owned(),
            Some(new) => format!(", {new} of them new ({})", list_names(&self.first_new, MAX_NAMED, new)),
        };
        let symbols = format!(
            "symbols: {more}{} ({}){new}",
            self.count,
            list_names(&self.first, MAX_NAMED, self.count)
        );
        (self.count > 0).then_some(symbols)
    }
}

impl DateSpan {
    /// First and last date of a load; `None` if no row has a date.
    pub(crate) fn from_coverage(coverage: &LoadCoverage) -> Option<Self> {
        let first = coverage.dates.values().map(|(first, _)| *first).min()?;
        let last = coverage.dates.values().map(|(_, last)| *last).max()?;
        Some(Self { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(symbols: std::ops::Range<usize>) -> LoadCoverage {
        let mut coverage = LoadCoverage::default();
        symbols.for_each(|n| coverage.add_symbol(&Symbol::parse(&format!("S{n:06}")).unwrap()));
        coverage
    }

    #[test]
    fn ten_symbols_are_named_and_all_are_counted() {
        let twelve = coverage(0..12);
        let before = EarlierCoverage::from_manifests([]);
        let new = before.new_symbols(&twelve);
        let text = SymbolSummary::from_coverage(&twelve, new.as_deref()).describe().unwrap();
        assert!(text.starts_with("symbols: 12 (S000000, "), "{text}");
        assert!(text.contains("S000009, …), 12 of them new ("), "{text}");
    }

    #[test]
    fn a_source_has_prices_of_what_was_known_when_it_loaded_some() {
        let run = |source: &str, symbol: &str, kind: Kind| {
            let [id, source, format] = ["r", source, "canonical"].map(str::to_owned);
            let begun = RunManifest::started(id, source, format, chrono::DateTime::UNIX_EPOCH);
            let newest = BTreeMap::from([(kind, NaiveDate::default())]);
            let new_symbols = Some(vec![Symbol::parse(symbol).unwrap()]);
            RunManifest { state: RunState::Completed, newest, new_symbols, ..begun }
        };
        let runs = [
            run("a", "KO", Kind::Price),
            run("b", "PEP", Kind::Price),
            run("a", "MO", Kind::Price),
            run("b", "T", Kind::Dividend),
        ];
        let (before, mut load) = (EarlierCoverage::from_manifests(&runs), LoadCoverage::default());
        load.add_priced_symbol(&Symbol::parse("VZ").unwrap());
        load.add_symbol(&Symbol::parse("XOM").unwrap());
        let priced = |source: &str| -> BTreeSet<&str> {
            before.symbols_with_prices(source, &load).unwrap().map(Symbol::as_str).collect()
        };
        assert_eq!(priced("a"), BTreeSet::from(["KO", "MO", "PEP", "VZ"]));
        assert_eq!(priced("b"), BTreeSet::from(["KO", "PEP", "VZ"]));
        assert_eq!(priced("c"), BTreeSet::from(["VZ"]));
    }

    #[test]
    fn symbols_beyond_all_measure_are_not_remembered() {
        let mut many = coverage(0..MAX_SYMBOLS);
        many.merge(&coverage(MAX_SYMBOLS..MAX_SYMBOLS + 5));
        assert_eq!(many.symbols.len(), MAX_SYMBOLS);
        assert_eq!(EarlierCoverage::from_manifests([]).new_symbols(&many), None);
        let text = SymbolSummary::from_coverage(&many, None).describe().unwrap();
        assert!(text.starts_with("symbols: more than 200000 ("), "{text}");
    }
}
