//! Choice of the records of a fund: fund details and snapshots of holdings (R32).
//!
//! Fund details come from the newest record up to the as-of date. If several sources have a record of that date, the
//! preferred one is used: that of the smallest rank in the source policy, or else the newest one. Missing fields are
//! filled from other sources' records of the date, then from earlier records. If a rank chose the first record, only
//! records of its source are used. A manual record of that date or later overrides the fields that it has.
//!
//! The holdings of one date come from one record and are never merged from several records. A manual record comes
//! first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::event::{Action, Etf, Kind};
use crate::history::Observation;
use crate::metrics::context::DerivationContext;
use crate::metrics::source_preference::{MANUAL, SourceCandidate, Standing, preference};
use crate::observation::newest_by_key;

/// Observations up to the as-of date, one per date. If several sources have an observation of a date, the manual one or
/// the preferred one is used. Retracted observations are left out.
pub(super) fn preferred_by_date<'a, T: 'a>(
    observations: impl IntoIterator<Item = &'a Observation<T>>,
    kind: Kind,
    context: &DerivationContext<'_>,
    date: impl Fn(&T) -> NaiveDate,
) -> BTreeMap<NaiveDate, &'a Observation<T>> {
    // Of the observations of a date, the map keeps the last one, which is the preferred one.
    by_preference(observations, kind, context, date).into_iter().rev().collect()
}

/// Observations up to the as-of date, each with its date: the newest date first, and of one date the preferred
/// observation first. Of one source and date, only the greatest version is included, unless it is a retraction.
fn by_preference<'a, T: 'a>(
    observations: impl IntoIterator<Item = &'a Observation<T>>,
    kind: Kind,
    context: &DerivationContext<'_>,
    date: impl Fn(&T) -> NaiveDate,
) -> Vec<(NaiveDate, &'a Observation<T>)> {
    let known = observations.into_iter().filter(|o| date(&o.record) <= context.as_of);
    let newest = newest_by_key(known.map(|o| ((o.source.as_str(), date(&o.record)), o)));
    let live = newest.into_iter().filter(|(_, o)| o.action == Action::Put);
    let mut live: Vec<(NaiveDate, &Observation<T>)> = live.map(|((_, day), o)| (day, o)).collect();
    live.sort_by_key(|(day, o)| {
        let candidate = SourceCandidate { source: &o.source, observed_at: o.observed_at };
        (Reverse(*day), preference(context.policy, kind, candidate, *day))
    });
    live
}

/// Fund details: the newest record of the vendors, with missing fields from their other records, and the fields of a
/// manual record that is not older.
pub(super) fn merged_record(
    observations: &[Observation<Etf>],
    context: &DerivationContext<'_>,
) -> Option<Etf> {
    let (manual, mut vendors): (Vec<_>, Vec<_>) =
        by_preference(observations, Kind::Etf, context, |etf| etf.as_of)
            .into_iter()
            .partition(|(_, o)| o.source == MANUAL);
    let newest = vendors.first().copied();
    let manual = manual.first().filter(|(day, _)| newest.is_none_or(|(newest, _)| newest <= *day));
    if let Some((day, newest)) = newest
        && Standing::new(context.policy, Kind::Etf, &newest.source, day).is_ranked()
    {
        vendors.retain(|(_, record)| record.source == newest.source);
    }
    let mut records = manual.into_iter().chain(&vendors).map(|(_, record)| with_nav_date(&record.record));
    let mut merged = records.next()?;
    records.for_each(|record| merged.fill_absent(&record));
    Some(merged)
}

/// Record with the date of its net asset value. The date is absent if the net asset value is.
fn with_nav_date(record: &Etf) -> Etf {
    let nav_date = record.nav.and(record.nav_date.or(Some(record.as_of)));
    Etf { nav_date, ..record.clone() }
}
