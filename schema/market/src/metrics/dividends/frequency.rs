//! Payment frequency of a payer (R5), inferred from the gaps between regular ex-dates and from vendors' tags. A tag is
//! the frequency that a vendor states for a payment.
//!
//! The inference uses the newest seven regular ex-dates, and therefore at most six gaps. Ex-dates before a gap of more
//! than 550 days are ignored. Several payments on one day are one ex-date. The first matching rule decides:
//! 1. Four-weekly: there are six gaps of 26–30 days, and their sum is 165–171 days.
//! 2. Semi-annual: there are at least 3 gaps. At least 60 % of adjacent gap pairs sum to 330–400 days.
//! 3. Class of the median gap: weekly 5–10 days, monthly 20–45, quarterly 60–135, semi-annual 136–250, annual 251–450.
//!    If there are at least 3 gaps, at least 60 % of them must lie in the class.
//! 4. Irregular.
//!
//! Without a tag, the inferred frequency is used, even with fewer than 4 gaps. With a tag, the inferred frequency
//! overrules the latest tag if all these conditions are met:
//! - The inferred frequency is not irregular.
//! - There are at least 4 gaps.
//! - At least 75 % of the gaps match the inferred frequency. For rule 2, gap pairs are counted instead of gaps.
//! - The latest tag is not one of the protected tags below.
//!
//! Otherwise, the latest tag is used. If the inferred frequency overrules a different tag, the flag
//! `frequency_conflict` is set.
//!
//! These tags are protected, because the rules can miss their frequency:
//! - A tag of 3, 6, 24 or 26 payments a year (R31). The median gap must be within 15 % of the tag's period. Rule 3 has
//!   no class for these frequencies.
//! - A four-weekly tag. All gaps must be 26–30 days, and their mean must be 27.5–28.5 days.
//!
//! Source: this service chose the bounds and thresholds.

use std::ops::RangeInclusive;

use chrono::NaiveDate;

use crate::event::Frequency;
use crate::text_enum;

const RESTART_DAYS: i64 = 550;
/// Number of newest ex-dates from which the frequency is inferred.
pub(crate) const NEWEST_EX_DATES: usize = 7;
/// Sum of two adjacent gaps that are together about a year long.
pub(crate) const YEAR_DAYS: RangeInclusive<i64> = 330..=400;
/// Minimum share of gap pairs about a year long for a semi-annual payer, percent.
pub(crate) const YEARLY_PAIRS: i64 = 60;
/// Minimum share of gaps in the class of the median gap, percent.
const CLASS_AGREEMENT: i64 = 60;
/// Minimum number of gaps for an inferred frequency that overrules a tag.
pub(crate) const OVERRULING_GAPS: usize = 4;
/// Minimum share of gaps that agree with an inferred frequency that overrules a tag, percent.
const OVERRULING_AGREEMENT: i64 = 75;
/// Maximum deviation of the median gap from the period of a protected tag, percent.
const TAG_TOLERANCE: i64 = 15;
/// Shortest and longest gap of each class, days.
const CLASSES: [(Frequency, i64, i64); 5] = [
    (Frequency::Weekly, 5, 10),
    (Frequency::Monthly, 20, 45),
    (Frequency::Quarterly, 60, 135),
    (Frequency::SemiAnnual, 136, 250),
    (Frequency::Annual, 251, 450),
];

/// Regular ex-date with the vendor's frequency tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaggedDate {
    /// Ex-date of a regular payment.
    pub ex_date: NaiveDate,
    /// Frequency that the vendor states for the payment; `None` if the vendor states none.
    pub tag: Option<Frequency>,
}

text_enum! {
    /// Origin of a payment frequency.
    pub enum FrequencySource {
        /// Inferred from the gaps between ex-dates.
        Inferred = "inferred",
        /// Stated by the vendor for the newest regular payment that has a stated frequency.
        Vendor = "vendor",
    }
}

/// Estimated payment frequency of a payer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrequencyEstimate {
    /// Payment frequency.
    pub frequency: Frequency,
    /// Origin of the frequency; `None` if the frequency is unknown or nothing was paid.
    pub source: Option<FrequencySource>,
    /// True if the inferred frequency replaced a vendor's tag of another frequency.
    pub conflict: bool,
}

impl FrequencyEstimate {
    /// Payments a year; `None` if irregular, none or unknown.
    pub fn payments_per_year(&self) -> Option<i32> {
        self.frequency.payments_per_year()
    }
}

/// Estimates the frequency from regular ex-dates in ascending order. Several payments on one day are one ex-date.
pub fn estimate_frequency(dates: &[TaggedDate]) -> FrequencyEstimate {
    let current = since_restart(dates);
    if current.is_empty() {
        return FrequencyEstimate { frequency: Frequency::None, source: None, conflict: false };
    }
    let gaps = newest_gaps(current);
    let tag = current
        .iter()
        .rev()
        .find_map(|date| date.tag.filter(|tag| !matches!(tag, Frequency::Unknown | Frequency::None)));
    let decided =
        |frequency, source, conflict| FrequencyEstimate { frequency, source: Some(source), conflict };
    match (infer(&gaps), tag) {
        (Some(inferred), Some(tag)) if inferred.is_strong(&gaps) && !fits_unclassed(tag, &gaps) => {
            decided(inferred.frequency, FrequencySource::Inferred, inferred.frequency != tag)
        }
        (_, Some(tag)) => decided(tag, FrequencySource::Vendor, false),
        (Some(inferred), None) => decided(inferred.frequency, FrequencySource::Inferred, false),
        (None, None) => FrequencyEstimate { frequency: Frequency::Unknown, source: None, conflict: false },
    }
}

/// Frequency inferred from gaps. `of` is the number of gaps (or of pairs of gaps). `agreeing` is the number of those
/// that match the frequency.
struct GapInference {
    frequency: Frequency,
    agreeing: i64,
    of: i64,
}

impl GapInference {
    fn is_strong(&self, gaps: &[i64]) -> bool {
        gaps.len() >= OVERRULING_GAPS
            && self.frequency != Frequency::Irregular
            && is_share(self.agreeing, self.of, OVERRULING_AGREEMENT)
    }
}

/// True if the gap between two regular ex-dates is so long that payments restarted after it.
pub(crate) fn is_restart(from: NaiveDate, to: NaiveDate) -> bool {
    (to - from).num_days() > RESTART_DAYS
}

fn since_restart(dates: &[TaggedDate]) -> &[TaggedDate] {
    let restart = dates.windows(2).rposition(|pair| is_restart(pair[0].ex_date, pair[1].ex_date));
    restart.map_or(dates, |position| &dates[position + 1..])
}

fn newest_gaps(dates: &[TaggedDate]) -> Vec<i64> {
    let gap = |pair: &[TaggedDate]| (pair[1].ex_date - pair[0].ex_date).num_days();
    let newest = dates.windows(2).rev().map(gap).filter(|days| *days > 0);
    let mut gaps: Vec<i64> = newest.take(NEWEST_EX_DATES - 1).collect();
    gaps.reverse();
    gaps
}

fn infer(gaps: &[i64]) -> Option<GapInference> {
    if gaps.is_empty() {
        return None;
    }
    let of = counted(gaps.iter());
    if gaps.len() == NEWEST_EX_DATES - 1 && is_four_weekly(gaps) {
        return Some(GapInference { frequency: Frequency::FourWeekly, agreeing: of, of });
    }
    // The gaps of interim and final dividends differ, but two adjacent gaps sum to a year.
    let yearly = counted(gaps.windows(2).filter(|pair| YEAR_DAYS.contains(&(pair[0] + pair[1]))));
    if of >= 3 && is_share(yearly, of - 1, YEARLY_PAIRS) {
        return Some(GapInference { frequency: Frequency::SemiAnnual, agreeing: yearly, of: of - 1 });
    }
    let irregular = GapInference { frequency: Frequency::Irregular, agreeing: 0, of };
    let Some((frequency, from, to)) = class_of(twice_median(gaps)) else { return Some(irregular) };
    let agreeing = counted(gaps.iter().filter(|gap| (from..=to).contains(*gap)));
    let classed = of < 3 || is_share(agreeing, of, CLASS_AGREEMENT);
    Some(if classed { GapInference { frequency, agreeing, of } } else { irregular })
}

fn is_share(part: i64, whole: i64, percent: i64) -> bool {
    100 * part >= percent * whole
}

fn counted<T>(items: impl Iterator<Item = T>) -> i64 {
    items.fold(0, |count, _| count + 1)
}

fn is_four_weekly(gaps: &[i64]) -> bool {
    let (count, days) = gaps.iter().fold((0, 0), |(count, days), gap| (count + 1, days + gap));
    gaps.iter().all(|gap| (26..=30).contains(gap)) && (165 * count..=171 * count).contains(&(6 * days))
}

fn class_of(twice_days: i64) -> Option<(Frequency, i64, i64)> {
    CLASSES.into_iter().find(|(_, from, to)| (2 * from..=2 * to).contains(&twice_days))
}

/// Twice the median gap, days. Doubling gives an integer even if the median is the mean of two gaps.
fn twice_median(gaps: &[i64]) -> i64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { 2 * sorted[middle] } else { sorted[middle - 1] + sorted[middle] }
}

/// True if `tag` is a frequency that the inference can miss (such as six payments a year), and the gaps fit it.
fn fits_unclassed(tag: Frequency, gaps: &[i64]) -> bool {
    if tag == Frequency::FourWeekly {
        return is_four_weekly(gaps);
    }
    let payments = i64::from(tag.payments_per_year().unwrap_or_default());
    let unclassed = matches!(payments, 3 | 6 | 24 | 26);
    // `|median - 365/n| <= tolerance * 365/n`, multiplied by `2 n`.
    unclassed && 100 * (twice_median(gaps) * payments - 2 * 365).abs() <= TAG_TOLERANCE * 2 * 365
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
            assert_eq!(estimate_frequency(&dates(&gaps, None)).frequency, expected, "{gaps:?}");
        }
        assert_eq!(estimate_frequency(&[]).frequency, Frequency::None);
    }

    #[test]
    fn tags_hold_unless_the_gaps_are_sure() {
        let check = |gaps: &[u64], tag, expected, conflict| {
            let found = estimate_frequency(&dates(gaps, Some(tag)));
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
            assert_eq!(estimate_frequency(&dates(gaps, None)).frequency, expected, "{gaps:?}");
        };
        check(&[28, 28, 28, 28, 28, 28], Frequency::FourWeekly);
        check(&[27, 27, 28, 28, 28, 27], Frequency::FourWeekly);
        check(&[27, 27, 27, 28, 28, 27], Frequency::Monthly);
        check(&[29, 28, 29, 28, 28, 29], Frequency::FourWeekly);
        check(&[29, 29, 29, 28, 28, 29], Frequency::Monthly);
        check(&[26, 30, 28, 28, 28, 28], Frequency::FourWeekly);
        check(&[25, 31, 28, 28, 28, 28], Frequency::Monthly);
        // Third Fridays: gaps of four weeks, or five weeks after a month with five Fridays.
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
                assert_eq!(estimate_frequency(&dates(&[days], None)).frequency, expected, "{days} days");
            }
        }
        for days in [4, 11, 19, 46, 59, 451] {
            assert_eq!(estimate_frequency(&dates(&[days], None)).frequency, Irregular, "{days} days");
        }
        // The mean of the two middle gaps may lie between two classes.
        for (gaps, expected) in
            [([45, 46], Irregular), ([135, 136], Irregular), ([130, 140], Quarterly), ([20, 20], Monthly)]
        {
            assert_eq!(estimate_frequency(&dates(&gaps, None)).frequency, expected, "{gaps:?}");
        }
    }

    #[test]
    fn most_gaps_or_pairs_of_gaps_have_to_agree() {
        let check = |gaps: &[u64], expected| {
            assert_eq!(estimate_frequency(&dates(gaps, None)).frequency, expected, "{gaps:?}");
        };
        // Two adjacent gaps that sum to 330 to 400 days are a year.
        check(&[100, 230, 100], Frequency::SemiAnnual);
        check(&[100, 229, 100], Frequency::Quarterly);
        check(&[130, 270, 130], Frequency::SemiAnnual);
        check(&[130, 271, 130], Frequency::Quarterly);
        // Three of four pairs are enough, and three of five gaps. Two of four pairs are not, and neither are two of
        // five gaps.
        check(&[100, 240, 100, 240, 20], Frequency::SemiAnnual);
        check(&[100, 240, 100, 100, 100], Frequency::Quarterly);
        check(&[100, 240, 100, 20], Frequency::SemiAnnual);
        check(&[91, 91, 91, 20, 300], Frequency::Quarterly);
        check(&[91, 91, 20, 50, 300], Frequency::Irregular);
        // Two gaps are too few to contradict each other.
        check(&[20, 100], Frequency::Quarterly);
        check(&[20, 20, 100], Frequency::Monthly);
        check(&[20, 100, 200], Frequency::Irregular);
        // Only the newest seven ex-dates are used. Several payments on one day are one ex-date.
        check(&[7, 7, 7, 7, 7, 7, 91, 91, 91, 91, 91, 91], Frequency::Quarterly);
        check(&[91, 0, 0, 91, 0, 0, 91], Frequency::Quarterly);
        check(&[31, 31, 31, 551], Frequency::Unknown);
        check(&[31, 31, 31, 550], Frequency::Monthly);
    }

    #[test]
    fn who_is_believed() {
        let check = |gaps: &[u64], tag, expected, source| {
            let found = estimate_frequency(&dates(gaps, tag));
            assert_eq!((found.frequency, found.source), (expected, source), "{gaps:?} {tag:?}");
        };
        let (inferred, vendor) = (Some(FrequencySource::Inferred), Some(FrequencySource::Vendor));
        assert_eq!([inferred, vendor].map(|source| source.unwrap().as_str()), ["inferred", "vendor"]);
        check(&[], None, Frequency::Unknown, None);
        check(&[91], None, Frequency::Quarterly, inferred);
        check(&[91, 91, 91, 20], Some(Frequency::Monthly), Frequency::Quarterly, inferred);
        check(&[91, 91, 91, 20, 20], Some(Frequency::Monthly), Frequency::Monthly, vendor);
        check(&[20, 300, 55, 140, 90], Some(Frequency::Monthly), Frequency::Monthly, vendor);
        // If three of four pairs of gaps sum to a year, the inferred frequency overrules the tag.
        check(&[100, 240, 100, 240, 20], Some(Frequency::Quarterly), Frequency::SemiAnnual, inferred);
        check(&[100, 240, 100, 20], Some(Frequency::Quarterly), Frequency::Quarterly, vendor);
        // Only a tag gives three or six payments a year. The tag decides if the median gap is within 15 % of its
        // period.
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
        // The latest tag with a frequency decides.
        let mut tagged = dates(&[91, 91], None);
        (tagged[0].tag, tagged[1].tag, tagged[2].tag) =
            (Some(Frequency::Annual), Some(Frequency::Monthly), Some(Frequency::Unknown));
        assert_eq!(estimate_frequency(&tagged).frequency, Frequency::Monthly);
        tagged[2].tag = Some(Frequency::None);
        assert_eq!(estimate_frequency(&tagged).frequency, Frequency::Monthly);
        assert!(is_restart("2022-01-01".parse().unwrap(), "2023-07-06".parse().unwrap()));
        assert!(!is_restart("2022-01-01".parse().unwrap(), "2023-07-05".parse().unwrap()));
    }
}
