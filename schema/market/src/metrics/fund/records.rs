//! Choice of the records of a fund: fund details and snapshots of holdings.
//!
//! Fund details come from the newest record up to the as-of date. If several sources have a record of one date, the
//! preferred one is used: that of the smallest rank in the source policy, or else the newest one. Missing fields are
//! filled from earlier records; if a rank chose the newest record, only from records of its source. A manual record of
//! that date or later overrides the fields that it has.
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
/// that of the preferred source is used. Retracted observations are left out.
pub(super) fn preferred_by_date<'a, T: 'a>(
    observations: impl IntoIterator<Item = &'a Observation<T>>,
    kind: Kind,
    context: &DerivationContext<'_>,
    date: impl Fn(&T) -> NaiveDate,
) -> BTreeMap<NaiveDate, &'a Observation<T>> {
    let known = observations.into_iter().filter(|o| date(&o.record) <= context.as_of);
    let newest = newest_by_key(known.map(|o| ((o.source.as_str(), date(&o.record)), o)));
    let live = newest.into_iter().filter(|(_, o)| o.action == Action::Put);
    let mut live: Vec<(NaiveDate, &Observation<T>)> = live.map(|((_, day), o)| (day, o)).collect();
    live.sort_by_cached_key(|(day, o)| {
        let candidate = SourceCandidate { source: &o.source, observed_at: o.observed_at };
        Reverse(preference(context.policy, kind, candidate, *day))
    });
    live.into_iter().collect()
}

/// Fund details: the newest record of the vendors, with missing fields from earlier records, and the fields of a manual
/// record that is not older.
pub(super) fn merged_record(
    observations: &[Observation<Etf>],
    context: &DerivationContext<'_>,
) -> Option<Etf> {
    let records = |is_manual: bool| {
        let chosen = observations.iter().filter(|o| (o.source == MANUAL) == is_manual);
        preferred_by_date(chosen, Kind::Etf, context, |etf| etf.as_of)
    };
    let (vendors, manual) = (records(false), records(true));
    let newest = vendors.last_key_value();
    let manual = manual.into_values().next_back();
    let manual = manual.filter(|manual| newest.is_none_or(|(day, _)| *day <= manual.record.as_of));
    let ranked = newest
        .filter(|(day, record)| Standing::new(context.policy, Kind::Etf, &record.source, **day).is_ranked());
    let of_vendor = vendors
        .values()
        .rev()
        .filter(|record| ranked.is_none_or(|(_, newest)| newest.source == record.source));
    let mut records =
        manual.into_iter().chain(of_vendor.copied()).map(|record| with_nav_date(&record.record));
    let mut merged = records.next()?;
    records.for_each(|record| merged.fill_absent(&record));
    Some(merged)
}

/// Record with the date of its net asset value. The date is absent if the net asset value is.
fn with_nav_date(record: &Etf) -> Etf {
    let nav_date = record.nav.and(record.nav_date.or(Some(record.as_of)));
    Etf { nav_date, ..record.clone() }
}
