//! Exchange rates (R41): the rates of all currency pairs, and the conversion between any two currencies.
//!
//! A rate is the number of units of the quote currency for one unit of the base currency. The rate of a day is the newest
//! one on or before the day, at most seven days old. A pair without own rates is computed: from the inverse pair, or
//! else through the euro, or else through the US dollar. The result is rounded once, to 15 significant digits.
//!
//! A rate that is more than 3 times, or less than a third, of both its neighbours is held: it is never used.
//!
//! For each day, the rate comes from the source that the source policy prefers, as for prices. Source: rates of central
//! banks are published once per working day.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};
use compact_str::CompactString;
use rust_decimal::{Decimal, RoundingStrategy};

use super::arithmetic::exact;
use super::source_preference::{SourceCandidate, preference};
use crate::day::{date_of, day_number};
use crate::event::{Action, FxRate, Kind};
use crate::history::{Observation, SourcePolicy};

/// Maximum age of a rate on the day of its use, in days.
const MAX_AGE: i32 = 7;
const SIGNIFICANT_DIGITS: u32 = 15;
/// A rate is held if it differs from both its neighbours by more than this factor.
const HELD_FACTOR: Decimal = exact("3");
/// Currencies through which the rate of two other currencies is computed.
const HUBS: [&str; 2] = ["EUR", "USD"];

type Pair = (CompactString, CompactString);

/// Rates of all currency pairs. For each pair and day, at most one rate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExchangeRates {
    /// Rates of each pair (base and quote), in the order of days.
    pairs: BTreeMap<Pair, Vec<DayRate>>,
    sources: Vec<CompactString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DayRate {
    day: i32,
    rate: Decimal,
    /// Index in [`ExchangeRates::sources`].
    source: usize,
}

/// Rate from one currency to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate<'a> {
    /// Units of the target currency for one unit of the original currency.
    pub value: Decimal,
    /// Day of the rate. If the rate is computed from two rates, the earlier of their days.
    pub date: NaiveDate,
    /// Sources of the rates from which this rate is computed. They are equal if one rate is used.
    pub sources: [&'a str; 2],
    /// Currency through which the rate is computed; `None` if it is the rate of a pair or of its inverse.
    pub through: Option<&'static str>,
}

impl Rate<'_> {
    /// Converts an amount. `None` if the result is too large for a decimal.
    pub fn convert(&self, amount: Decimal) -> Option<Decimal> {
        amount.checked_mul(self.value)
    }

    /// Names of the sources.
    pub fn source(&self) -> String {
        match self.sources {
            [first, second] if first != second => format!("{first} and {second}"),
            [source, _] => source.to_owned(),
        }
    }
}

/// Quotient of two decimals. A rate and its inverse are divided only once, at the end.
#[derive(Clone, Copy)]
struct Leg<'a> {
    numerator: Decimal,
    denominator: Decimal,
    day: i32,
    source: &'a str,
}

impl ExchangeRates {
    /// No rates.
    pub const NONE: Self = Self { pairs: BTreeMap::new(), sources: Vec::new() };

    /// Chooses the rate of each pair and day from all observations.
    pub fn new(observations: &[Observation<FxRate>], policy: &SourcePolicy) -> Self {
        let mut newest: Vec<&Observation<FxRate>> = observations.iter().collect();
        newest
            .sort_unstable_by(|a, b| key_of(a).cmp(&key_of(b)).then_with(|| b.version(0).cmp(&a.version(0))));
        newest.dedup_by(|later, first| key_of(later) == key_of(first));
        newest.retain(|row| row.action == Action::Put);
        let mut rates = Self::NONE;
        for pair in newest.chunk_by(|a, b| pair_of(a) == pair_of(b)) {
            let preferred = pair.chunk_by(|a, b| a.record.date == b.record.date).filter_map(|day| {
                day.iter().min_by_key(|row| {
                    let candidate = SourceCandidate { source: &row.source, observed_at: row.observed_at };
                    preference(policy, Kind::Fx, candidate, row.record.date)
                })
            });
            let days: Vec<DayRate> = preferred.map(|row| rates.day_rate(row)).collect();
            let key = pair.first().map(|row| (row.record.base.clone(), row.record.quote.clone()));
            rates.pairs.extend(key.map(|key| (key, days)));
        }
        rates
    }

    /// Replaces the rates of some keys, each a pair and a year, by `newer`.
    pub fn replace(&mut self, keys: &[&str], newer: Self) {
        for key in keys {
            let Some((base, quote, year)) = FxRate::parse_key(key) else { continue };
            if let Some(days) = self.pairs.get_mut(&(base.into(), quote.into())) {
                days.retain(|rate| date_of(rate.day).year() != year);
            }
        }
        for (pair, rates) in newer.pairs {
            let added: Vec<DayRate> = rates
                .iter()
                .map(|rate| DayRate { source: self.source_index(&newer.sources[rate.source]), ..*rate })
                .collect();
            let days = self.pairs.entry(pair).or_default();
            days.extend(added);
            days.sort_unstable_by_key(|rate| rate.day);
        }
        self.pairs.retain(|_, days| !days.is_empty());
    }

    fn source_index(&mut self, source: &CompactString) -> usize {
        let known = self.sources.iter().position(|known| known == source);
        known.unwrap_or_else(|| {
            self.sources.push(source.clone());
            self.sources.len() - 1
        })
    }

    fn day_rate(&mut self, row: &Observation<FxRate>) -> DayRate {
        let source = self.source_index(&row.source);
        DayRate { day: day_number(row.record.date), rate: row.record.rate, source }
    }

    /// True if no rate is known.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Rate from one currency to another on a day, as known on `as_of`. `None` if no rate is known, or if the currencies
    /// are equal.
    pub fn rate(&self, from: &str, to: &str, day: NaiveDate, as_of: NaiveDate) -> Option<Rate<'_>> {
        if self.pairs.is_empty() || from == to {
            return None;
        }
        let (day, last) = (day_number(day.min(as_of)), day_number(as_of));
        let leg = |from: &str, to: &str| self.leg(from, to, day, last);
        if let Some(leg) = leg(from, to) {
            return rate_of(leg, None);
        }
        let hubs = HUBS.into_iter().filter(|hub| *hub != from && *hub != to);
        hubs.filter_map(|hub| Some((leg(from, hub)?, leg(hub, to)?, hub)))
            .find_map(|(first, second, hub)| rate_of(first, Some((second, hub))))
    }

    /// Rate of a pair or of its inverse. The newer one is used, and the pair itself if both have the same day.
    fn leg(&self, from: &str, to: &str, day: i32, last: i32) -> Option<Leg<'_>> {
        let own = self.on_day(from, to, day, last).map(|own| (own, own.rate, Decimal::ONE));
        let inverse = self.on_day(to, from, day, last).map(|other| (other, Decimal::ONE, other.rate));
        let newest = own.into_iter().chain(inverse).min_by_key(|(rate, ..)| Reverse(rate.day));
        let (DayRate { day, source, .. }, numerator, denominator) = newest?;
        Some(Leg { numerator, denominator, day, source: &self.sources[source] })
    }

    fn on_day(&self, base: &str, quote: &str, day: i32, last: i32) -> Option<DayRate> {
        let rates = self.pairs.get(&(base.into(), quote.into()))?;
        let known = &rates[..rates.partition_point(|rate| rate.day <= last)];
        let until = known.partition_point(|rate| rate.day <= day);
        let recent = (0..until).rev().take_while(|index| known[*index].day >= day - MAX_AGE);
        recent.into_iter().find(|index| !is_held(known, *index)).map(|index| known[index])
    }

    /// Rates of a pair between two days, in order: one for each day on which the rate changes. Held rates are left out,
    /// and days on which only one of the two rates of a cross rate is known.
    pub fn series(
        &self,
        base: &str,
        quote: &str,
        from: NaiveDate,
        to: NaiveDate,
    ) -> impl Iterator<Item = Rate<'_>> {
        let days = self.pair_days(base, quote).into_iter().filter(move |day| (from..=to).contains(day));
        let (base, quote) = (base.to_owned(), quote.to_owned());
        days.filter_map(move |day| {
            self.rate(&base, &quote, day, NaiveDate::MAX).filter(|rate| rate.date == day)
        })
    }

    /// Days with a rate from which a rate of two currencies can be computed.
    fn pair_days(&self, base: &str, quote: &str) -> Vec<NaiveDate> {
        let mut days: Vec<i32> = [(base, quote), (quote, base)]
            .into_iter()
            .chain(HUBS.into_iter().flat_map(|hub| [(base, hub), (hub, base), (quote, hub), (hub, quote)]))
            .filter_map(|(base, quote)| self.pairs.get(&(base.into(), quote.into())))
            .flatten()
            .map(|rate| rate.day)
            .collect();
        days.sort_unstable();
        days.dedup();
        days.into_iter().map(date_of).collect()
    }
}

fn pair_of(row: &Observation<FxRate>) -> (&str, &str) {
    (&row.record.base, &row.record.quote)
}

fn key_of(row: &Observation<FxRate>) -> ((&str, &str), NaiveDate, &str) {
    (pair_of(row), row.record.date, &row.source)
}

/// True if a rate contradicts both its neighbours.
fn is_held(rates: &[DayRate], index: usize) -> bool {
    let neighbour = |index: Option<usize>| index.and_then(|index| rates.get(index)).map(|rate| rate.rate);
    let (Some(before), Some(after)) = (neighbour(index.checked_sub(1)), neighbour(index.checked_add(1)))
    else {
        return false;
    };
    let rate = rates[index].rate;
    let above = |other: Decimal| rate > other.saturating_mul(HELD_FACTOR);
    let below = |other: Decimal| rate.saturating_mul(HELD_FACTOR) < other;
    (above(before) && above(after)) || (below(before) && below(after))
}

fn rate_of<'a>(first: Leg<'a>, then: Option<(Leg<'a>, &'static str)>) -> Option<Rate<'a>> {
    let (second, through) = then.unzip();
    let second = second.unwrap_or(Leg { numerator: Decimal::ONE, denominator: Decimal::ONE, ..first });
    let numerator = first.numerator.checked_mul(second.numerator)?;
    let denominator = first.denominator.checked_mul(second.denominator)?;
    let value = numerator.checked_div(denominator)?;
    let value = value.round_sf_with_strategy(SIGNIFICANT_DIGITS, RoundingStrategy::MidpointAwayFromZero)?;
    let date = date_of(first.day.min(second.day));
    (!value.is_zero()).then_some(Rate {
        value: value.normalize(),
        date,
        sources: [first.source, second.source],
        through,
    })
}
