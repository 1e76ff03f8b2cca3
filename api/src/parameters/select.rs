//! Keyset pages of rows in memory: sort, go on after the cursor's row, cut.
//!
//! Invariants: nulls come last in both directions; ties are broken by a unique key, ascending, so that pages neither
//! skip nor repeat.

use std::borrow::Cow;
use std::cmp::Ordering;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::{Direction, Page};
use crate::cursor::Signer;

/// A value rows are sorted by.
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

/// A row of a list.
pub(crate) trait Listed {
    /// The value of a sort key.
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>>;
    /// What no other row of the list has.
    fn tie_breaker(&self) -> Cow<'_, str>;
}

/// A row's place: the values of the sort keys, then the tie-breaker.
struct Place<'a>(Vec<Option<SortValue<'a>>>, Cow<'a, str>);

impl<'a> Place<'a> {
    fn of(row: &'a impl Listed, page: &Page) -> Self {
        Self(page.order.iter().map(|(key, _)| row.sort_value(key)).collect(), row.tie_breaker())
    }

    fn seal(self) -> Vec<Option<String>> {
        let values = self.0.iter().map(|value| value.as_ref().map(SortValue::seal));
        values.chain([Some(self.1.to_string())]).collect()
    }

    fn open(sealed: &[Option<String>]) -> Option<Self> {
        let (tie, values) = sealed.split_last()?;
        let values = values.iter().map(|value| value.as_deref().and_then(SortValue::open)).collect();
        Some(Self(values, Cow::Owned(tie.clone()?)))
    }

    fn compare(&self, other: &Place<'_>, page: &Page) -> Ordering {
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
    /// The page's rows and the cursor of the next page.
    pub(crate) fn select<'a, T: Listed>(
        &self,
        rows: impl IntoIterator<Item = &'a T>,
        signer: &Signer,
    ) -> (Vec<&'a T>, Option<String>) {
        let after = self.after.as_deref().and_then(Place::open);
        let placed = rows.into_iter().map(|row| (Place::of(row, self), row));
        let later = |(place, _): &(Place<'_>, &T)| {
            after.as_ref().is_none_or(|after| place.compare(after, self).is_gt())
        };
        let mut placed: Vec<(Place<'_>, &T)> = placed.filter(later).collect();
        let limit = self.rows();
        let more = placed.len() > limit;
        if more {
            // Only the page has to be in order.
            placed.select_nth_unstable_by(limit, |(a, _), (b, _)| a.compare(b, self));
            placed.truncate(limit);
        }
        placed.sort_by(|(a, _), (b, _)| a.compare(b, self));
        let last = placed.last().filter(|_| more).map(|(_, row)| Place::of(*row, self));
        let cursor = last.map(|place| self.cursor(&place.seal(), signer));
        (placed.into_iter().map(|(_, row)| row).collect(), cursor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Row(Option<i64>, u16);

    impl Listed for Row {
        fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
            self.0.map(|number| SortValue::Number(number.into()))
        }
        fn tie_breaker(&self) -> Cow<'_, str> {
            format!("{:05}", self.1).into()
        }
    }

    fn walk(rows: &[Row], limit: i64, direction: Direction) -> Vec<Row> {
        let signer = Signer::new(None, None).expect("a random key");
        let (mut all, mut after) = (vec![], None);
        loop {
            let page = Page::for_test(limit, "key", direction, after);
            let (rows, cursor) = page.select(rows, &signer);
            all.extend(rows.into_iter().cloned());
            match cursor {
                Some(cursor) => after = signer.open(&cursor, ""),
                None => return all,
            }
        }
    }

    proptest! {
        /// Fails when the order of rows with equal keys is left open.
        #[test]
        fn pages_neither_skip_nor_repeat(values in proptest::collection::vec(proptest::option::of(-3i64..3), 0..40), limit in 1i64..7, descending: bool) {
            let rows: Vec<Row> = values.into_iter().zip(0u16..).map(|(value, id)| Row(value, id)).collect();
            let direction = if descending { Direction::Descending } else { Direction::Ascending };
            let walked = walk(&rows, limit, direction);
            let mut expected = rows;
            expected.sort_by_key(|row| (row.0.is_none(), row.0.map(|value| if descending { -value } else { value }), row.1));
            prop_assert_eq!(walked, expected);
        }
    }
}
