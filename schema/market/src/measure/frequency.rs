//! How often a payer pays (R5), from the gaps between its regular ex-dates and the vendors' tags.
//!
//! Regular ex-dates, same-day merged, since the last gap over 550 days, the newest seven (six gaps):
//! 1. six gaps of 26–30 days that sum to 165–171 are every four weeks: months, and third Fridays, drift apart from it;
//! 2. else, with at least 3 gaps, at least 60 % of adjacent gap pairs summing to 330–400 days are semi-annual: interim and
//!    final dividends lie unevenly in the year, and their median gap looks quarterly;
//! 3. else the class of the median gap: weekly 5–10 days, monthly 20–45, quarterly 60–135, semi-annual 136–250, annual
//!    251–450, provided (with at least 3 gaps) that at least 60 % of the gaps lie in it;
//! 4. else irregular.
//!
//! The inference beats the vendor's tag with at least 4 gaps of which 75 % agree (`frequency_conflict` when they
//! differ); otherwise the latest tag; otherwise the weak inference. A rhythm the classes do not know (3, 6, 24 or 26
//! payments a year) stays as tagged while the median gap is within 15 % of it, since no gap can contradict it (R31); so
//! does a tag of every four weeks while fewer than six gaps all look like it.
//! Source: class bounds and thresholds are this service's own, chosen against reported misreadings of gaps; those above
//! are the defaults of the parameters `frequency.…`.

use chrono::NaiveDate;

use super::rules::{self, Rules};
use crate::event::Frequency;

/// A regular ex-date and the vendor's tag on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaggedDate {
    /// Ex-date of a regular payment.
    pub ex_date: NaiveDate,
    /// The vendor's word for its rhythm.
    pub tag: Option<Frequency>,
}

/// Where a frequency came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrequencySource {
    /// From the gaps between ex-dates.
    Inferred,
    /// The vendor's latest tag.
    Vendor,
}

impl FrequencySource {
    /// The word in explanations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inferred => "inferred",
            Self::Vendor => "vendor",
        }
    }
}

/// The rhythm of a payer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// How often it pays.
    pub frequency: Frequency,
    /// Where that is known from.
    pub source: Option<FrequencySource>,
    /// Whether the inference overruled a different tag.
    pub conflict: bool,
}

impl Rhythm {
    /// Payments a year; `None` when irregular, none or unknown.
    pub fn payments_per_year(&self) -> Option<i32> {
        self.frequency.payments_per_year()
    }
}

/// Finds the rhythm of ex-dates in ascending order; several on one day count once.
pub fn rhythm(dates: &[TaggedDate], rules: &Rules) -> Rhythm {
    let current = since_restart(dates, rules);
    if current.is_empty() {
        return Rhythm { frequency: Frequency::None, source: None, conflict: false };
    }
    let rules = &rules.frequency;
    let gaps = newest_gaps(current, rules);
    let tag = current
        .iter()
        .rev()
        .find_map(|date| date.tag.filter(|tag| !matches!(tag, Frequency::Unknown | Frequency::None)));
    let decided = |frequency, source, conflict| Rhythm { frequency, source: Some(source), conflict };
    match (infer(&gaps, rules), tag) {
        (Some(inferred), Some(tag))
            if inferred.is_strong(&gaps, rules) && !fits_unclassed(tag, &gaps, rules) =>
        {
            decided(inferred.frequency, FrequencySource::Inferred, inferred.frequency != tag)
        }
        (_, Some(tag)) => decided(tag, FrequencySource::Vendor, false),
        (Some(inferred), None) => decided(inferred.frequency, FrequencySource::Inferred, false),
        (None, None) => Rhythm { frequency: Frequency::Unknown, source: None, conflict: false },
    }
}

/// What the gaps say, and how many of them say so.
struct Inferred {
    frequency: Frequency,
    agreeing: i64,
    of: i64,
}

impl Inferred {
    fn is_strong(&self, gaps: &[i64], rules: &rules::Frequency) -> bool {
        length(gaps) >= rules.overruling_gaps
            && self.frequency != Frequency::Irregular
            && is_share(self.agreeing, self.of, rules.overruling_agreement)
    }
}

/// Whether payments started anew between two ex-dates.
pub(crate) fn is_restart(from: NaiveDate, to: NaiveDate, rules: &Rules) -> bool {
    (to - from).num_days() > rules.frequency.restart_days
}

fn since_restart<'d>(dates: &'d [TaggedDate], rules: &Rules) -> &'d [TaggedDate] {
    let restart = dates.windows(2).rposition(|pair| is_restart(pair[0].ex_date, pair[1].ex_date, rules));
    restart.map_or(dates, |position| &dates[position + 1..])
}

fn newest_gaps(dates: &[TaggedDate], rules: &rules::Frequency) -> Vec<i64> {
    let gap = |pair: &[TaggedDate]| (pair[1].ex_date - pair[0].ex_date).num_days();
    let newest = dates.windows(2).rev().map(gap).filter(|days| *days > 0);
    let mut gaps: Vec<i64> = newest.zip(1..rules.newest_ex_dates).map(|(days, _)| days).collect();
    gaps.reverse();
    gaps
}

fn infer(gaps: &[i64], rules: &rules::Frequency) -> Option<Inferred> {
    if gaps.is_empty() {
        return None;
    }
    let of = length(gaps);
    if of == rules.newest_ex_dates - 1 && is_four_weekly(gaps) {
        return Some(Inferred { frequency: Frequency::FourWeekly, agreeing: of, of });
    }
    let year = rules.year_least_days..=rules.year_most_days;
    let yearly = counted(gaps.windows(2).filter(|pair| year.contains(&(pair[0] + pair[1]))));
    if of >= 3 && is_share(yearly, of - 1, rules.yearly_pairs) {
        return Some(Inferred { frequency: Frequency::SemiAnnual, agreeing: yearly, of: of - 1 });
    }
    let irregular = Inferred { frequency: Frequency::Irregular, agreeing: 0, of };
    let Some((frequency, from, to)) = class_of(twice_median(gaps), rules) else { return Some(irregular) };
    let agreeing = counted(gaps.iter().filter(|gap| (from..=to).contains(*gap)));
    let classed = of < 3 || is_share(agreeing, of, rules.class_agreement);
    Some(if classed { Inferred { frequency, agreeing, of } } else { irregular })
}

/// Whether `part` is at least so many percent of `whole`.
fn is_share(part: i64, whole: i64, percent: i64) -> bool {
    100 * part >= percent * whole
}

fn length(gaps: &[i64]) -> i64 {
    counted(gaps.iter())
}

fn counted<T>(items: impl Iterator<Item = T>) -> i64 {
    items.fold(0, |count, _| count + 1)
}

/// Whether gaps are four weeks each but for a holiday: 165 to 171 days in six.
fn is_four_weekly(gaps: &[i64]) -> bool {
    let (count, days) = gaps.iter().fold((0, 0), |(count, days), gap| (count + 1, days + gap));
    gaps.iter().all(|gap| (26..=30).contains(gap)) && (165 * count..=171 * count).contains(&(6 * days))
}

/// The first class that fits.
fn class_of(twice_days: i64, rules: &rules::Frequency) -> Option<(Frequency, i64, i64)> {
    [
        (Frequency::Weekly, rules.weekly_least_days, rules.weekly_most_days),
        (Frequency::Monthly, rules.monthly_least_days, rules.monthly_most_days),
        (Frequency::Quarterly, rules.quarterly_least_days, rules.quarterly_most_days),
        (Frequency::SemiAnnual, rules.semi_annual_least_days, rules.semi_annual_most_days),
        (Frequency::Annual, rules.annual_least_days, rules.annual_most_days),
    ]
    .into_iter()
    .find(|(_, from, to)| (2 * from..=2 * to).contains(&twice_days))
}

/// Twice the median, so that the mean of two middle gaps stays whole.
fn twice_median(gaps: &[i64]) -> i64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { 2 * sorted[middle] } else { sorted[middle - 1] + sorted[middle] }
}

/// Whether a tag names a rhythm that no class stands for, and the gaps are near it.
fn fits_unclassed(tag: Frequency, gaps: &[i64], rules: &rules::Frequency) -> bool {
    if tag == Frequency::FourWeekly {
        return is_four_weekly(gaps);
    }
    let payments = i64::from(tag.payments_per_year().unwrap_or_default());
    let unclassed = matches!(payments, 3 | 6 | 24 | 26);
    // |median - 365/n| <= a share of 365/n, multiplied out by 2 n.
    unclassed && 100 * (twice_median(gaps) * payments - 2 * 365).abs() <= rules.tag_tolerance * 2 * 365
}

#[cfg(test)]
mod tests {
    use chrono::Days;

    use super::*;

    fn dates(gaps: &[u64], tag: Option<Frequency>) -> Vec<TaggedDate> {
        let mut ex_date: NaiveDate = "2022-01-03".parse().unwrap();
        let mut dates = vec![TaggedDate { ex_date, tag }];
        for gap in gaps {
            ex_date = ex_date + Days::new(*gap);
            dates.push(TaggedDate { ex_date, tag });
        }
        dates
    }

    #[test]
    fn classes() {
        for (gaps, expected) in [
            (vec![92, 91, 77], Frequency::Quarterly),
            (vec![91, 91, 182, 91, 91], Frequency::Quarterly),
            (vec![91, 30, 61, 91, 91, 91], Frequency::Quarterly),
            (vec![125, 240, 125, 243, 121], Frequency::SemiAnnual),
            (vec![182, 181, 92, 91, 91, 91], Frequency::Quarterly),
            (vec![364, 366, 371], Frequency::Annual),
            (vec![31, 28, 31, 30], Frequency::Monthly),
            (vec![7, 7, 7, 7], Frequency::Weekly),
            (vec![20, 300, 55, 140, 90], Frequency::Irregular),
            (vec![15], Frequency::Irregular),
            (vec![], Frequency::Unknown),
            (vec![91, 91, 91, 600, 182], Frequency::SemiAnnual),
        ] {
            assert_eq!(rhythm(&dates(&gaps, None), &Rules::DEFAULT).frequency, expected, "{gaps:?}");
        }
        assert_eq!(rhythm(&[], &Rules::DEFAULT).frequency, Frequency::None);
    }

    #[test]
    fn tags_hold_unless_the_gaps_are_sure() {
        let check = |gaps: &[u64], tag, expected, conflict| {
            let found = rhythm(&dates(gaps, Some(tag)), &Rules::DEFAULT);
            assert_eq!((found.frequency, found.conflict), (expected, conflict), "{gaps:?} {tag}");
        };
        check(&[91, 91, 91, 91], Frequency::Annual, Frequency::Quarterly, true);
        check(&[91, 91, 91, 91], Frequency::Quarterly, Frequency::Quarterly, false);
        check(&[91, 91, 91], Frequency::Annual, Frequency::Annual, false);
        check(&[], Frequency::Monthly, Frequency::Monthly, false);
        check(&[61, 61, 62, 61, 61], Frequency::Bimonthly, Frequency::Bimonthly, false);
        check(&[121, 122, 122, 121], Frequency::Triannual, Frequency::Triannual, false);
        check(&[91, 91, 91, 91], Frequency::Bimonthly, Frequency::Quarterly, true);
        check(&[14, 14, 14, 14], Frequency::Biweekly, Frequency::Biweekly, false);
        check(&[28, 28, 28, 28], Frequency::FourWeekly, Frequency::FourWeekly, false);
        check(&[30, 31, 30, 31], Frequency::FourWeekly, Frequency::Monthly, true);
        check(&[28, 28, 28, 28, 28, 28], Frequency::Monthly, Frequency::FourWeekly, true);
    }

    #[test]
    fn every_four_weeks_is_not_every_month() {
        let check = |gaps: &[u64], expected| {
            assert_eq!(rhythm(&dates(gaps, None), &Rules::DEFAULT).frequency, expected, "{gaps:?}");
        };
        check(&[28, 28, 28, 28, 28, 28], Frequency::FourWeekly);
        check(&[27, 27, 28, 28, 28, 27], Frequency::FourWeekly);
        check(&[27, 27, 27, 28, 28, 27], Frequency::Monthly);
        check(&[29, 28, 29, 28, 28, 29], Frequency::FourWeekly);
        check(&[29, 29, 29, 28, 28, 29], Frequency::Monthly);
        check(&[26, 30, 28, 28, 28, 28], Frequency::FourWeekly);
        check(&[25, 31, 28, 28, 28, 28], Frequency::Monthly);
        // Third Fridays: four weeks, and five where the month has five of them.
        check(&[28, 28, 35, 28, 28, 35], Frequency::Monthly);
        check(&[28, 28, 28, 28, 28], Frequency::Monthly);
    }

    #[test]
    fn where_each_rhythm_begins_and_ends() {
        use Frequency::{Annual, Irregular, Monthly, Quarterly, SemiAnnual, Weekly};
        let bounds = [
            (Weekly, 5, 10),
            (Monthly, 20, 45),
            (Quarterly, 60, 135),
            (SemiAnnual, 136, 250),
            (Annual, 251, 450),
        ];
        for (expected, from, to) in bounds {
            for days in [from, to] {
                assert_eq!(rhythm(&dates(&[days], None), &Rules::DEFAULT).frequency, expected, "{days} days");
            }
        }
        for days in [4, 11, 19, 46, 59, 451] {
            assert_eq!(rhythm(&dates(&[days], None), &Rules::DEFAULT).frequency, Irregular, "{days} days");
        }
        // The mean of two middle gaps may lie between two bounds.
        for (gaps, expected) in
            [([45, 46], Irregular), ([135, 136], Irregular), ([130, 140], Quarterly), ([20, 20], Monthly)]
        {
            assert_eq!(rhythm(&dates(&gaps, None), &Rules::DEFAULT).frequency, expected, "{gaps:?}");
        }
    }

    #[test]
    fn most_gaps_or_pairs_of_gaps_have_to_agree() {
        let check = |gaps: &[u64], expected| {
            assert_eq!(rhythm(&dates(gaps, None), &Rules::DEFAULT).frequency, expected, "{gaps:?}");
        };
        // Pairs of 330 to 400 days are a year.
        check(&[100, 230, 100], Frequency::SemiAnnual);
        check(&[100, 229, 100], Frequency::Quarterly);
        check(&[130, 270, 130], Frequency::SemiAnnual);
        check(&[130, 271, 130], Frequency::Quarterly);
        // Three of four pairs, and three of five gaps, are enough; two are not.
        check(&[100, 240, 100, 240, 20], Frequency::SemiAnnual);
        check(&[100, 240, 100, 100, 100], Frequency::Quarterly);
        check(&[100, 240, 100, 20], Frequency::SemiAnnual);
        check(&[91, 91, 91, 20, 300], Frequency::Quarterly);
        check(&[91, 91, 20, 50, 300], Frequency::Irregular);
        // Two gaps are too few to contradict each other.
        check(&[20, 100], Frequency::Quarterly);
        check(&[20, 20, 100], Frequency::Monthly);
        check(&[20, 100, 200], Frequency::Irregular);
        // The newest seven ex-dates tell, and several on one day are one.
        check(&[7, 7, 7, 7, 7, 7, 91, 91, 91, 91, 91, 91], Frequency::Quarterly);
        check(&[91, 0, 0, 91, 0, 0, 91], Frequency::Quarterly);
        check(&[31, 31, 31, 551], Frequency::Unknown);
        check(&[31, 31, 31, 550], Frequency::Monthly);
    }

    #[test]
    fn who_is_believed() {
        let check = |gaps: &[u64], tag, expected, source| {
            let found = rhythm(&dates(gaps, tag), &Rules::DEFAULT);
            assert_eq!((found.frequency, found.source), (expected, source), "{gaps:?} {tag:?}");
        };
        let (inferred, vendor) = (Some(FrequencySource::Inferred), Some(FrequencySource::Vendor));
        assert_eq!([inferred, vendor].map(|source| source.unwrap().as_str()), ["inferred", "vendor"]);
        check(&[], None, Frequency::Unknown, None);
        check(&[91], None, Frequency::Quarterly, inferred);
        check(&[91, 91, 91, 20], Some(Frequency::Monthly), Frequency::Quarterly, inferred);
        check(&[91, 91, 91, 20, 20], Some(Frequency::Monthly), Frequency::Monthly, vendor);
        check(&[20, 300, 55, 140, 90], Some(Frequency::Monthly), Frequency::Monthly, vendor);
        // Three of four pairs that make a year overrule it.
        check(&[100, 240, 100, 240, 20], Some(Frequency::Quarterly), Frequency::SemiAnnual, inferred);
        check(&[100, 240, 100, 20], Some(Frequency::Quarterly), Frequency::Quarterly, vendor);
        // Three, six and 24 a year are known from tags alone, as long as the gaps are within 15 %.
        for (tag, fitting, others) in [
            (Frequency::Triannual, [104, 139], [(103, Frequency::Quarterly), (140, Frequency::SemiAnnual)]),
            (Frequency::Bimonthly, [60, 69], [(70, Frequency::Quarterly), (45, Frequency::Monthly)]),
        ] {
            for days in fitting {
                check(&[days; 4], Some(tag), tag, vendor);
            }
            for (days, expected) in others {
                check(&[days; 4], Some(tag), expected, inferred);
            }
        }
        // The latest tag that says something.
        let mut tagged = dates(&[91, 91], None);
        (tagged[0].tag, tagged[1].tag, tagged[2].tag) =
            (Some(Frequency::Annual), Some(Frequency::Monthly), Some(Frequency::Unknown));
        assert_eq!(rhythm(&tagged, &Rules::DEFAULT).frequency, Frequency::Monthly);
        tagged[2].tag = Some(Frequency::None);
        assert_eq!(rhythm(&tagged, &Rules::DEFAULT).frequency, Frequency::Monthly);
        assert!(is_restart("2022-01-01".parse().unwrap(), "2023-07-06".parse().unwrap(), &Rules::DEFAULT));
        assert!(!is_restart("2022-01-01".parse().unwrap(), "2023-07-05".parse().unwrap(), &Rules::DEFAULT));
    }
}
