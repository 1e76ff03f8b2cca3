//! Keyset pagination of rows in memory: a page has the sorted rows after the cursor's row.
//!
//! Invariants: nulls come last in both directions. A unique key orders rows with equal sort keys.

use std::array;
use std::borrow::Cow;
use std::cmp::Ordering;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::page::MAX_SORT_KEYS;
use super::{Direction, Page};
use crate::parameters::cursor::ResponseSigner;

/// Value of a sort key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortValue<'a> {
    Day(NaiveDate),
    Number(Decimal),
    Text(Cow<'a, str>),
}

impl SortValue<'_> {
    fn seal(&self) -> String {
        match self {
            Self::Day(day) => format!("d{day}"),
            Self::Number(number) => format!("n{number}"),
            Self::Text(text) => format!("t{text}"),
        }
    }

    fn open(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        match kind {
            "d" => rest.parse().ok().map(Self::Day),
            "n" => rest.parse().ok().map(Self::Number),
            "t" => Some(Self::Text(Cow::Owned(rest.to_owned()))),
            _ => None,
        }
    }
}

/// Row of a sortable list: the values of its sort keys, and a unique tie-breaker.
pub(crate) trait Sortable {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>>;
    /// Value that is unique among the rows of the list.
    fn tie_breaker(&self) -> Cow<'_, str>;
}

/// Position of a row in the sort order: values of the sort keys, then the tie-breaker.
struct SortPosition<'a>([Option<SortValue<'a>>; MAX_SORT_KEYS], Cow<'a, str>);

impl<'a> SortPosition<'a> {
    fn of(row: &'a impl Sortable, page: &Page) -> Self {
        let value = |place: usize| page.order.get(place).and_then(|(key, _)| row.sort_value(key));
        Self(array::from_fn(value), row.tie_breaker())
    }

    fn seal(self, page: &Page) -> Vec<Option<String>> {
        let values = self.0.iter().take(page.order.len()).map(|value| value.as_ref().map(SortValue::seal));
        values.chain([Some(self.1.to_string())]).collect()
    }

    fn open(sealed: &[Option<String>]) -> Option<Self> {
        let (tie, values) = sealed.split_last()?;
        let value = |place| values.get(place).and_then(Option::as_deref).and_then(SortValue::open);
        Some(Self(array::from_fn(value), Cow::Owned(tie.clone()?)))
    }

    fn compare(&self, other: &SortPosition<'_>, page: &Page) -> Ordering {
        let pairs = self.0.iter().zip(&other.0).zip(&page.order);
        let by_keys = pairs.map(|((a, b), (_, direction))| compare(a.as_ref(), b.as_ref(), *direction));
        by_keys.fold(Ordering::Equal, Ordering::then).then_with(|| self.1.cmp(&other.1))
    }
}

fn compare(a: Option<&SortValue<'_>>, b: Option<&SortValue<'_>>, direction: Direction) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if direction == Direction::Descending => b.cmp(a),
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

impl Page {
    /// Selects and sorts the rows of the page. Returns them with the cursor of the next page.
    pub(crate) fn select_rows<'a, T: Sortable>(
        &self,
        rows: impl IntoIterator<Item = &'a T>,
        signer: &ResponseSigner<'_>,
    ) -> (Vec<&'a T>, Option<String>) {
        let after = self.after.as_deref().and_then(SortPosition::open);
        let placed = rows.into_iter().map(|row| (SortPosition::of(row, self), row));
        let later = |(place, _): &(SortPosition<'_>, &T)| {
            after.as_ref().is_none_or(|after| place.compare(after, self).is_gt())
        };
        let (mut placed, more) = self.take_first(placed.filter(later));
        placed.sort_by(|(a, _), (b, _)| a.compare(b, self));
        let last = placed.last().filter(|_| more).map(|(_, row)| SortPosition::of(*row, self));
        let cursor = last.map(|place| self.cursor(&place.seal(self), signer));
        (placed.into_iter().map(|(_, row)| row).collect(), cursor)
    }

    /// Selects the rows of the page, unsorted. The returned `bool` is true if further rows follow the page. The memory
    /// use depends on the page size, not on the length of the list.
    fn take_first<'a, T>(
        &self,
        rows: impl Iterator<Item = (SortPosition<'a>, T)>,
    ) -> (Vec<(SortPosition<'a>, T)>, bool) {
        let limit = self.row_limit();
        let compare = |(a, _): &(SortPosition<'_>, T), (b, _): &(SortPosition<'_>, T)| a.compare(b, self);
        let (mut first, mut more) = (Vec::new(), false);
        for row in rows {
            // After a truncation, `limit` rows sort before `first[limit]`. A row that sorts after `first[limit]` is
            // therefore not on this page.
            if more && compare(&row, &first[limit]).is_gt() {
                continue;
            }
            first.push(row);
            if first.len() == 2 * limit + 1 {
                first.select_nth_unstable_by(limit, compare);
                first.truncate(limit + 1);
                more = true;
            }
        }
        if first.len() > limit {
            first.select_nth_unstable_by(limit, compare);
            first.truncate(limit);
            more = true;
        }
        (first, more)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::cursor::CursorSigner;

    #[derive(Debug, Clone, PartialEq)]
    struct KeysetRow(Option<i64>, u16);

    impl Sortable for KeysetRow {
        fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
            self.0.map(|number| SortValue::Number(number.into()))
        }
        fn tie_breaker(&self) -> Cow<'_, str> {
            format!("{:05}", self.1).into()
        }
    }

    fn walk(rows: &[KeysetRow], limit: i64, direction: Direction) -> Vec<KeysetRow> {
        let signer = CursorSigner::new(None, None).expect("a random key");
        let (mut all, mut after) = (vec![], None);
        loop {
            let page = Page::for_test(limit, "key", direction, after);
            let (rows, cursor) = page.select_rows(rows, &signer.of_response("g1.1.1".to_owned()));
            all.extend(rows.into_iter().cloned());
            match cursor {
                Some(cursor) => after = signer.open(&cursor, ""),
                None => return all,
            }
        }
    }

    proptest! {
        /// This test fails if rows with equal sort keys have no fixed order.
        #[test]
        fn pages_neither_skip_nor_repeat(values in proptest::collection::vec(proptest::option::of(-3i64..3), 0..40), limit in 1i64..7, descending: bool) {
            let rows: Vec<KeysetRow> = values.into_iter().zip(0u16..).map(|(value, id)| KeysetRow(value, id)).collect();
            let direction = if descending { Direction::Descending } else { Direction::Ascending };
            let walked = walk(&rows, limit, direction);
            let mut expected = rows;
            expected.sort_by_key(|row| (row.0.is_none(), row.0.map(|value| if descending { -value } else { value }), row.1));
            prop_assert_eq!(walked, expected);
        }
    }
}
