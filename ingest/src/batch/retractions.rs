//! Check for retractions without a matching row. A retraction is a row that withdraws an earlier row. A retraction that
//! matches no row in the log is probably a typing error.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use event_log::record_batch::Body;
use market::event::{Action, EventRecord, EventRow, Kind};
use market::symbol::Symbol;
use telemetry::Sample;

use crate::batch::coverage::{EarlierCoverage, LoadCoverage};
use crate::log::reader::{Log, LogError};

/// Maximum number of retractions recorded per load, which limits memory. Further retractions are not checked.
const MAX_RETRACTIONS: usize = 1000;

/// Key of a retraction row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Retraction {
    kind: Kind,
    id: Option<String>,
    symbol: Option<Symbol>,
    date: Option<NaiveDate>,
}

/// Retractions of a load.
#[derive(Debug, Default, Clone)]
pub(crate) struct Retractions(Vec<Retraction>);

/// Keys of the rows of one kind that a source has in the log.
#[derive(Debug, Default)]
struct KnownKeys {
    ids: BTreeSet<String>,
    /// Days of the rows of each symbol. A record without a date has the day `None`. An empty set means that the days
    /// are unknown. A retraction of any day then matches.
    days: BTreeMap<Option<Symbol>, BTreeSet<Option<NaiveDate>>>,
}

/// Retractions without a matching row, each with the nearest key in the log.
pub(crate) type UnmatchedRetractions = Sample<String>;

impl Retractions {
    /// Records a row if it is a retraction.
    pub(crate) fn record_row<T: EventRecord>(&mut self, row: &EventRow<T>) {
        if row.action == Action::Retract {
            let (symbol, date) = (row.record.symbol().cloned(), row.record.date());
            self.push(Retraction { kind: T::KIND, id: row.id.clone(), symbol, date });
        }
    }

    /// Records the retraction of a symbol's price on one day.
    pub(crate) fn record_price(&mut self, symbol: Symbol, date: NaiveDate) {
        self.push(Retraction { kind: Kind::Price, id: None, symbol: Some(symbol), date: Some(date) });
    }

    fn push(&mut self, retraction: Retraction) {
        if self.0.len() < MAX_RETRACTIONS {
            self.0.push(retraction);
        }
    }

    /// Adds the retractions of another file.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|retraction| self.push(retraction.clone()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds the retractions that match no row of their source in the log. Price rows are not read, because there are
    /// too many. A price retraction counts as matched if its source may have prices of the symbol.
    pub(crate) async fn find_unmatched(
        &self,
        log: &Log,
        source: &str,
        before: &EarlierCoverage,
        load: &LoadCoverage,
    ) -> Result<UnmatchedRetractions, LogError> {
        let mut known_keys: BTreeMap<Kind, KnownKeys> = BTreeMap::new();
        let kinds: BTreeSet<Kind> = self.0.iter().map(|retraction| retraction.kind).collect();
        for kind in kinds.iter().copied().filter(|kind| *kind != Kind::Price) {
            let of_kind = known_keys.entry(kind).or_default();
            log.each_batch(kind, |batch| {
                if batch.source == source {
                    of_kind.add_body(&batch.body);
                }
            })
            .await?;
        }
        if kinds.contains(&Kind::Price)
            && let Some(symbols) = before.symbols_with_prices(source, load)
        {
            known_keys.insert(Kind::Price, KnownKeys::with_unknown_days(symbols));
        }
        // Finding the nearest of many ids is slow, so it runs on a blocking thread.
        let retractions = self.clone();
        let compared = tokio::task::spawn_blocking(move || retractions.compare_with_keys(&known_keys));
        compared.await.map_err(LogError::Task)
    }

    /// Compares the retractions with the keys of the rows in the log. Each example in the result names the nearest key.
    fn compare_with_keys(&self, known_keys: &BTreeMap<Kind, KnownKeys>) -> UnmatchedRetractions {
        let mut unmatched = UnmatchedRetractions::default();
        for retraction in &self.0 {
            let Some(known_keys) =
                known_keys.get(&retraction.kind).filter(|known_keys| !known_keys.contains(retraction))
            else {
                continue;
            };
            unmatched.add(|| format!("{}: {}", retraction.describe(), known_keys.nearest_key(retraction)));
        }
        unmatched
    }
}

impl Retraction {
    fn describe(&self) -> String {
        let id = self.id.as_ref().map(|id| format!("id {id}"));
        let symbol = self.symbol.as_ref().map(ToString::to_string);
        let date = self.date.map(|date| date.to_string());
        let parts = [Some(self.kind.to_string()), symbol, date, id];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl KnownKeys {
    fn add_body(&mut self, body: &Body) {
        match body {
            Body::Securities(rows) => self.add_rows(rows),
            Body::Dividends(rows) => self.add_rows(rows),
            Body::Splits(rows) => self.add_rows(rows),
            Body::Fundamentals(rows) => self.add_rows(rows),
            Body::Etfs(rows) => self.add_rows(rows),
            Body::Holdings(rows) => self.add_rows(rows),
            Body::FxRates(rows) => self.add_rows(rows),
            Body::Sessions(rows) => self.add_rows(rows),
            Body::Prices(_) | Body::Evidence(_) | Body::Decisions(_) | Body::Rejects(_) | Body::Run(_) => {}
        }
    }

    fn add_rows<T: EventRecord>(&mut self, rows: &[EventRow<T>]) {
        for row in rows.iter().filter(|row| row.action == Action::Put) {
            self.ids.extend(row.id.clone());
            self.days.entry(row.record.symbol().cloned()).or_default().insert(row.record.date());
        }
    }

    /// Keys of prices by symbol only, because the days are unknown. A retraction for any day of the symbol matches.
    fn with_unknown_days<'a>(symbols: impl IntoIterator<Item = &'a Symbol>) -> Self {
        let days = symbols.into_iter().map(|symbol| (Some(symbol.clone()), BTreeSet::new())).collect();
        Self { days, ..Self::default() }
    }

    /// True if a row matches the retraction.
    fn contains(&self, retraction: &Retraction) -> bool {
        if let Some(id) = &retraction.id {
            return self.ids.contains(id);
        }
        let days = self.days.get(&retraction.symbol);
        days.is_some_and(|days| {
            days.is_empty() || retraction.date.is_none() || days.contains(&retraction.date)
        })
    }

    /// Message that names the key in the log nearest to the retraction's key. If no key is similar, the message says
    /// so.
    fn nearest_key(&self, retraction: &Retraction) -> String {
        if let Some(id) = &retraction.id {
            let known = find_nearest_name(id, self.ids.iter().map(String::as_str));
            return known
                .map_or("no row has that id".to_owned(), |id| format!("the nearest known id is {id}"));
        }
        let Some(days) = self.days.get(&retraction.symbol) else {
            let symbol = retraction.symbol.as_ref().map_or("", Symbol::as_str);
            let known = find_nearest_name(symbol, self.days.keys().flatten().map(Symbol::as_str));
            return known.map_or("no similar symbol is known".to_owned(), |symbol| {
                format!("the nearest known symbol is {symbol}")
            });
        };
        let far = |day: &NaiveDate| retraction.date.map(|wanted| (*day - wanted).num_days().abs());
        let day = days.iter().flatten().min_by_key(|day| far(day));
        day.map_or("no date is known".to_owned(), |day| format!("the nearest known date is {day}"))
    }
}

/// Known name with the smallest Levenshtein distance to `mistyped`. `None` if this distance is greater than 1 and
/// greater than a third of the length of `mistyped`.
fn find_nearest_name<'a>(mistyped: &str, known_names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = mistyped.chars().count();
    let most = (length / 3).max(1);
    // The distance is at least the difference in length. Comparing the lengths first excludes most names cheaply.
    let alike = known_names.into_iter().filter(|name| name.chars().count().abs_diff(length) <= most);
    let near = alike.map(|name| (strsim::levenshtein(mistyped, name), name));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retraction(symbol: &str, date: &str, id: Option<&str>) -> Retraction {
        let (symbol, date) = (Symbol::parse(symbol).ok(), date.parse().ok());
        Retraction { kind: Kind::Dividend, id: id.map(str::to_owned), symbol, date }
    }

    #[test]
    fn a_retraction_of_nothing_names_the_nearest_known_row() {
        let mut known_keys = KnownKeys::default();
        known_keys.ids.insert("d-17".to_owned());
        known_keys.days.entry(Symbol::parse("KO").ok()).or_default().insert("2024-03-14".parse().ok());
        let known_keys = BTreeMap::from([(Kind::Dividend, known_keys)]);
        let hint = |symbol, date, id| {
            Retractions(vec![retraction(symbol, date, id)]).compare_with_keys(&known_keys).first.pop()
        };
        let hint = |symbol, date, id| Some(hint(symbol, date, id)?.split_once(": ")?.1.to_owned());
        assert_eq!(hint("KO", "2024-03-14", None), None);
        assert_eq!(hint("KO", "2024-03-13", None).as_deref(), Some("the nearest known date is 2024-03-14"));
        assert_eq!(hint("KOO", "2024-03-14", None).as_deref(), Some("the nearest known symbol is KO"));
        assert_eq!(hint("KO", "2024-03-13", Some("d-17")), None);
        assert_eq!(hint("KO", "2024-03-14", Some("d-71")).as_deref(), Some("no row has that id"));
        let many =
            Retractions(vec![retraction("KOO", "2024-03-14", None); 11]).compare_with_keys(&known_keys);
        assert_eq!((many.count, many.first.len()), (11, 10));
        let prices = KnownKeys::with_unknown_days(&[Symbol::parse("KO").unwrap()]);
        let price = |symbol| prices.contains(&retraction(symbol, "2024-03-14", None));
        assert!(price("KO") && !price("PEP"));
        let text = retraction("KO", "2024-03-13", Some("d-1")).describe();
        assert_eq!(text, "dividend KO 2024-03-13 id d-1");
    }
}

#[cfg(test)]
mod name_tests {
    use super::find_nearest_name;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_none() {
        assert_eq!(find_nearest_name("qaaaj", ["qaaj", "eod", "qaaab"]), Some("qaaab"));
        assert_eq!(find_nearest_name("KOO", ["PEP", "KO", "AAPL"]), Some("KO"));
        assert_eq!(find_nearest_name("KO", ["PEP", "MSFT"]), None);
        assert_eq!(find_nearest_name("tiingo", []), None);
    }
}
