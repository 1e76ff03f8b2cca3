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

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::NaiveDate;
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

    fn day_rate(&mut self, row: &Observation<FxRate>) -> DayRate {
        let known = self.sources.iter().position(|source| *source == row.source);
        let source = known.unwrap_or_else(|| {
            self.sources.push(row.source.clone());
            self.sources.len() - 1
        });
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
        let own = self.on_day(from, to, day, last).map(|own| Leg {
            numerator: own.rate,
            denominator: Decimal::ONE,
            day: own.day,
            source: &self.sources[own.source],
        });
        let inverse = self.on_day(to, from, day, last).map(|inverse| Leg {
            numerator: Decimal::ONE,
            denominator: inverse.rate,
            day: inverse.day,
            source: &self.sources[inverse.source],
        });
        own.into_iter().chain(inverse).min_by_key(|leg| Reverse(leg.day))
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::history::PolicyRule;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn row(source: &str, second: i64, pair: [&str; 2], day: &str, rate: Decimal) -> Observation<FxRate> {
        Observation {
            source: source.into(),
            id: None,
            security_ref: None,
            revision: 0,
            action: Action::Put,
            observed_at: DateTime::from_timestamp(second, 0).unwrap(),
            line: 1,
            frame: [0; 16],
            record: FxRate::new(pair[0], pair[1], date(day), rate),
        }
    }

    fn ecb(rows: &[(&str, &str, Decimal)]) -> ExchangeRates {
        let rows: Vec<_> =
            rows.iter().map(|(quote, day, rate)| row("ecb", 1, ["EUR", quote], day, *rate)).collect();
        ExchangeRates::new(&rows, &SourcePolicy::default())
    }

    fn text(rates: &ExchangeRates, from: &str, to: &str, day: &str) -> Option<String> {
        let rate = rates.rate(from, to, date(day), date("2030-01-01"))?;
        let through = rate.through.map(|hub| format!(" through {hub}")).unwrap_or_default();
        Some(format!("{} of {}{through}", rate.value, rate.date))
    }

    #[test]
    fn a_rate_is_its_own_the_inverse_or_a_cross_rate() {
        let rates = ecb(&[("USD", "2024-06-26", dec!(1.25)), ("GBP", "2024-06-26", dec!(0.8))]);
        assert_eq!(text(&rates, "EUR", "USD", "2024-06-26").as_deref(), Some("1.25 of 2024-06-26"));
        assert_eq!(text(&rates, "USD", "EUR", "2024-06-26").as_deref(), Some("0.8 of 2024-06-26"));
        assert_eq!(
            text(&rates, "USD", "GBP", "2024-06-26").as_deref(),
            Some("0.64 of 2024-06-26 through EUR")
        );
        assert_eq!(text(&rates, "USD", "USD", "2024-06-26"), None);
        assert_eq!(text(&rates, "USD", "JPY", "2024-06-26"), None);
        // 1 / 1.0973 to 15 significant digits.
        let thirds = ecb(&[("USD", "2024-06-26", dec!(1.0973))]);
        let inverse = thirds.rate("USD", "EUR", date("2024-06-26"), date("2024-06-26")).unwrap();
        assert_eq!(inverse.value.to_string(), "0.911327804611319");
    }

    #[test]
    fn a_rate_is_at_most_seven_days_old_and_never_from_the_future() {
        let rates = ecb(&[("USD", "2024-06-14", dec!(1.07)), ("USD", "2024-06-21", dec!(1.08))]);
        assert_eq!(text(&rates, "EUR", "USD", "2024-06-13"), None);
        assert_eq!(text(&rates, "EUR", "USD", "2024-06-20").as_deref(), Some("1.07 of 2024-06-14"));
        assert_eq!(text(&rates, "EUR", "USD", "2024-06-28").as_deref(), Some("1.08 of 2024-06-21"));
        assert_eq!(text(&rates, "EUR", "USD", "2024-06-29"), None);
        let known = rates.rate("EUR", "USD", date("2024-06-28"), date("2024-06-20")).unwrap();
        assert_eq!((known.value, known.date), (dec!(1.07), date("2024-06-14")));
    }

    #[test]
    fn a_rate_that_contradicts_both_neighbours_is_held() {
        let days = |middle: Decimal| {
            ecb(&[
                ("USD", "2024-06-19", dec!(1)),
                ("USD", "2024-06-20", middle),
                ("USD", "2024-06-21", dec!(1)),
            ])
        };
        let used = |middle: Decimal| text(&days(middle), "EUR", "USD", "2024-06-20").unwrap();
        assert_eq!(used(dec!(3)), "3 of 2024-06-20");
        assert_eq!(used(dec!(3.01)), "1 of 2024-06-19");
        assert_eq!(used(dec!(0.33)), "1 of 2024-06-19");
        // Before the next rate is known, nothing contradicts it.
        let known = days(dec!(100));
        let rate = known.rate("EUR", "USD", date("2024-06-20"), date("2024-06-20")).unwrap();
        assert_eq!(rate.value, dec!(100));
    }

    #[test]
    fn a_series_has_one_rate_for_each_day_on_which_it_is_known() {
        let days = |rates: &ExchangeRates, pair: [&str; 2], from: &str| {
            let series = rates.series(pair[0], pair[1], date(from), date("2024-06-30"));
            series.map(|rate| format!("{} of {}", rate.value, rate.date)).collect::<Vec<_>>()
        };
        let held = ecb(&[
            ("USD", "2024-06-18", dec!(1)),
            ("USD", "2024-06-19", dec!(2)),
            ("USD", "2024-06-20", dec!(100)),
            ("USD", "2024-06-21", dec!(2)),
        ]);
        let expected = ["1 of 2024-06-18", "2 of 2024-06-19", "2 of 2024-06-21"];
        assert_eq!(days(&held, ["EUR", "USD"], "2024-06-01"), expected);
        assert_eq!(days(&held, ["EUR", "USD"], "2024-06-19"), expected[1..]);
        let cross = ecb(&[
            ("USD", "2024-06-18", dec!(2)),
            ("GBP", "2024-06-18", dec!(1)),
            ("USD", "2024-06-19", dec!(4)),
            ("GBP", "2024-06-20", dec!(1)),
            ("USD", "2024-06-20", dec!(5)),
        ]);
        assert_eq!(days(&cross, ["GBP", "USD"], "2024-06-01"), ["2 of 2024-06-18", "5 of 2024-06-20"]);
    }

    #[test]
    fn corrections_retractions_and_the_source_policy_decide_by_day() {
        let pair = ["EUR", "USD"];
        let first = row("ecb", 1, pair, "2024-06-20", dec!(1.07));
        let corrected = row("ecb", 2, pair, "2024-06-20", dec!(1.09));
        let other = row("bank", 3, pair, "2024-06-20", dec!(1.2));
        let rate = |rows: &[&Observation<FxRate>], policy: &SourcePolicy| {
            let rows: Vec<_> = rows.iter().map(|row| (*row).clone()).collect();
            let rates = ExchangeRates::new(&rows, policy);
            rates
                .rate("EUR", "USD", date("2024-06-20"), date("2024-06-20"))
                .map(|rate| (rate.value, rate.source()))
        };
        let none = SourcePolicy::default();
        assert_eq!(rate(&[&corrected, &first], &none), Some((dec!(1.09), "ecb".into())));
        assert_eq!(rate(&[&first, &other], &none), Some((dec!(1.2), "bank".into())));
        let rule = PolicyRule { kind: Kind::Fx, source: "ecb".into(), from: None, to: None, rank: 1 };
        let ranked = SourcePolicy { rules: vec![rule] };
        assert_eq!(rate(&[&first, &other], &ranked), Some((dec!(1.07), "ecb".into())));
        let withdrawn = Observation { action: Action::Retract, ..row("ecb", 3, pair, "2024-06-20", dec!(1)) };
        assert_eq!(rate(&[&first, &withdrawn], &none), None);
        assert_eq!(rate(&[&first, &withdrawn, &other], &ranked), Some((dec!(1.2), "bank".into())));
    }
}
