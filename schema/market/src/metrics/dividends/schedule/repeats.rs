//! Near duplicates (repeats): two rows of one payment whose ex-dates are a few days apart (R34.1).
//!
//! If the payer's schedule has slots, the two rows must fill one slot, and be at most a quarter of a payment period
//! apart. A supplement of a monthly payer, a fortnight after the regular payment, is therefore a payment. Irregular payers, and payers with 13 or more
//! payments a year (more than monthly), have no slots. Their rows are one payment only if the amounts are equal and the
//! payer's median gap is at least twice `schedule.duplicate_days` (default 20). Weekly payers have shorter gaps, so by
//! default they have no repeats.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::extras::shares_slot;
use super::frequency::{PeriodThousandths, local_frequencies};
use super::reading::ScheduleRow;
use crate::metrics::rules::ScheduleRules;

/// Maximum distance of two rows of one payment, in thousandths of a payment period.
const QUARTER_PERIOD: i64 = 250;
/// Maximum deviation of equal amounts, percent.
const EQUAL_TOLERANCE: Decimal = Decimal::TWO;

/// Payment that may be a near duplicate: the only regular row of its ex-date.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatedPayment<'a> {
    pub row: ScheduleRow,
    /// Source of the row, and the row's id at this source. Ids of different sources are not compared. `None` if the row
    /// has no id.
    pub id: Option<(&'a str, &'a str)>,
    /// Ex-date computed from the row's record date (R1); `None` without a record date.
    pub implied: Option<NaiveDate>,
    /// True if the security's market is open on the ex-date.
    pub is_business_day: bool,
    /// True if a feed's adjusted closes show the payment on this ex-date (R40).
    pub is_in_price: bool,
}

/// Two rows that are one payment, as indexes into the `payments` of [`find_repeats`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatPair {
    /// Index of the row to drop.
    pub dropped: usize,
    /// Index of the row to keep.
    pub kept: usize,
}

/// Pairs of rows that are one payment. `payments` are sorted by ex-date.
pub(crate) fn find_repeats(payments: &[RepeatedPayment<'_>], rules: &ScheduleRules) -> Vec<RepeatPair> {
    let may_repeat = |pair: &[RepeatedPayment<'_>]| is_repeat(&pair[0], &pair[1], rules);
    if !payments.windows(2).any(may_repeat) {
        return Vec::new();
    }
    let rows: Vec<ScheduleRow> = payments.iter().map(|payment| payment.row).collect();
    let frequencies = local_frequencies(&rows, rules);
    let usual_gap = median_gap(&rows);
    let mut repeats = Vec::new();
    let mut kept: Vec<usize> = (0..payments.len()).collect();
    let mut position = 0;
    while position + 1 < kept.len() {
        let (first, second) = (kept[position], kept[position + 1]);
        let date = |position: usize| kept.get(position).map(|index| rows[*index].ex_date);
        let dates =
            [position.checked_sub(1).and_then(date), date(position), date(position + 1), date(position + 2)];
        let days = (rows[second].ex_date - rows[first].ex_date).num_days();
        let is_confirmed = || match frequencies[first].or(frequencies[second]) {
            Some(per_year) => {
                PeriodThousandths::in_days(days, per_year).0 <= QUARTER_PERIOD
                    && shares_slot(dates, per_year, rules)
            }
            None => {
                let (a, b) = (rows[first].amount, rows[second].amount);
                2 * rules.duplicate_days <= usual_gap && is_equal(a.max(b), a.min(b))
            }
        };
        if is_repeat(&payments[first], &payments[second], rules) && is_confirmed() {
            let keeps_first = is_better(&payments[first], &payments[second]);
            let (dropped, better) = if keeps_first { (second, first) } else { (first, second) };
            kept.retain(|index| *index != dropped);
            repeats.push(RepeatPair { dropped, kept: better });
            position = position.saturating_sub(1);
        } else {
            position += 1;
        }
    }
    repeats
}

/// True if two rows may be one payment. Their ex-dates are at most `schedule.duplicate_days` apart, and their amounts
/// are equal or differ by a factor of two. Two rows of one source with different ids are always two payments.
fn is_repeat(a: &RepeatedPayment<'_>, b: &RepeatedPayment<'_>, rules: &ScheduleRules) -> bool {
    let ids_differ = a.id.zip(b.id).is_some_and(|(a, b)| a.0 == b.0 && a.1 != b.1);
    let days = (b.row.ex_date - a.row.ex_date).num_days();
    let (large, small) = (a.row.amount.max(b.row.amount), a.row.amount.min(b.row.amount));
    !ids_differ
        && days <= rules.duplicate_days
        && (is_equal(large, small) || is_equal(large, small.saturating_mul(Decimal::TWO)))
}

/// True if `amount` differs from `expected` by at most [`EQUAL_TOLERANCE`].
fn is_equal(amount: Decimal, expected: Decimal) -> bool {
    let difference = (amount - expected).abs().saturating_mul(Decimal::ONE_HUNDRED);
    difference <= expected.saturating_mul(EQUAL_TOLERANCE)
}

/// Median gap between neighbouring rows, days.
fn median_gap(rows: &[ScheduleRow]) -> i64 {
    let mut gaps: Vec<i64> =
        rows.windows(2).map(|pair| (pair[1].ex_date - pair[0].ex_date).num_days()).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied().unwrap_or_default()
}

/// True if the first row is more reliable. Criteria in order: the ex-date is a business day, adjusted closes change on it,
/// the record date implies it.
fn is_better(first: &RepeatedPayment<'_>, second: &RepeatedPayment<'_>) -> bool {
    let quality = |payment: &RepeatedPayment<'_>| {
        (payment.is_business_day, payment.is_in_price, payment.implied == Some(payment.row.ex_date))
    };
    quality(first) > quality(second)
}
