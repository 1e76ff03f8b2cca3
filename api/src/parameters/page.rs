//! `limit`, `cursor` and `sort`: pagination and order of a list. A page of rows in memory has the sorted rows after the
//! cursor's row (keyset pagination).
//!
//! Invariants: nulls come last in both directions. A unique key orders rows with equal sort keys.

use std::array;
use std::borrow::Cow;
use std::cmp::Ordering;

use chrono::NaiveDate;
use market::text_enum;
use rust_decimal::Decimal;
use serde_json::json;

use super::cursor::ResponseSigner;
use super::{MinVersion, ParameterReader};

/// Maximum number of keys in `sort`.
const MAX_SORT_KEYS: usize = 3;
/// Prefix of the filters in a cursor's signature. It makes release 0.1.0 refuse cursors that it would misread.
const CURSOR_FORMAT: &str = "2 ";
/// Maximum length of a cursor, in characters.
const MAX_CURSOR_LENGTH: usize = 512;

text_enum! {
    /// Sort direction.
    pub(crate) enum Direction { Ascending = "asc", Descending = "desc" }
}

/// Pagination options of a list endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageOptions {
    pub(crate) default_limit: i64,
    pub(crate) most: i64,
    /// Keys by which the list can be sorted; empty for a fixed order.
    pub(crate) keys: &'static [&'static str],
    /// Default order.
    pub(crate) order: &'static [(&'static str, Direction)],
}

/// Requested page of a list.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Maximum number of rows.
    pub(crate) limit: i64,
    /// Sort keys, most significant first.
    pub(crate) order: Vec<(&'static str, Direction)>,
    /// Last row of the previous page: the values of its sort keys, and its unique tie-breaker. `None` on the first
    /// page.
    pub(crate) after: Option<Vec<Option<String>>>,
    /// Journal place (`sync_from`) of the first page, which all later pages repeat. `None` if the list has no change
    /// feed.
    pub(crate) sync_from: Option<String>,
    filters: String,
}

impl ParameterReader<'_> {
    /// Reads `limit`, `sort` and `cursor`.
    pub(crate) fn read_page(&mut self, paging: &PageOptions) -> Page {
        let limit = self.read_integer("limit", 1..=paging.most, paging.default_limit);
        self.describe("limit", "Maximum number of rows on a page.");
        self.properties.rows = limit;
        let order = self.read_sort(paging).unwrap_or_else(|| paging.order.to_vec());
        let filters = self.filters();
        let signed_filters = format!("{CURSOR_FORMAT}{filters}");
        let (cursor, signer) = (self.read_value("cursor", cursor_schema), self.signer);
        self.describe(
            "cursor",
            "`next_cursor` of the previous page. Filters and order must be the same as in that request.",
        );
        let open = |filters: &str| {
            let cursor = cursor.as_deref().filter(|cursor| cursor.len() <= MAX_CURSOR_LENGTH)?;
            signer.open(cursor, filters)
        };
        let mut after = open(&signed_filters);
        if let Some(version) = after.as_mut().and_then(Vec::pop).flatten() {
            self.properties.min_version.raise(MinVersion::parse(&version).unwrap_or_default());
        }
        // Cursors of release 0.1.0 have no data version, and their signed text is the filters without the prefix.
        after = after.or_else(|| open(&filters));
        self.bad_cursor |= cursor.is_some() && after.is_none();
        let sync_from = after.as_mut().and_then(Vec::pop).flatten();
        Page { limit, order, after, sync_from, filters: signed_filters }
    }

    fn read_sort(&mut self, paging: &PageOptions) -> Option<Vec<(&'static str, Direction)>> {
        if paging.keys.is_empty() {
            return None;
        }
        let allowed: Vec<String> =
            paging.keys.iter().flat_map(|key| [format!("{key}.asc"), format!("{key}.desc")]).collect();
        let default: Vec<String> =
            paging.order.iter().map(|(key, direction)| format!("{key}.{direction}")).collect();
        let text = self.read_value("sort", || {
            json!({ "type": "array", "minItems": 1, "maxItems": MAX_SORT_KEYS, "uniqueItems": true, "default": default,
                    "items": { "type": "string", "enum": allowed } })
        });
        self.describe(
            "sort",
            "Sort keys with direction, comma-separated, most significant first, each key once. Nulls come last.",
        );
        let text = text?;
        let mut order = Vec::new();
        for item in text.split(',') {
            let (name, direction) = item.trim().rsplit_once('.').unwrap_or((item.trim(), "asc"));
            let key = paging.keys.iter().copied().find(|key| *key == name);
            match key.zip(direction.parse().ok()) {
                Some((key, _)) if order.iter().any(|(known, _)| *known == key) => {
                    self.add_error("sort", format!("names {key} twice"), None);
                }
                Some(pair) => order.push(pair),
                None => {
                    let error = format!("must be made of: {}", allowed.join(", "));
                    self.add_error("sort", error, Some(json!(allowed)));
                }
            }
        }
        self.require(order.len() <= MAX_SORT_KEYS, "sort", "has more than 3 keys");
        Some(order)
    }
}

fn cursor_schema() -> serde_json::Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_CURSOR_LENGTH, "pattern": "^[A-Za-z0-9_-]+$" })
}

impl Page {
    /// Direction of the most significant sort key.
    pub(crate) fn direction(&self) -> Direction {
        self.order.first().map_or(Direction::Ascending, |(_, direction)| *direction)
    }

    /// Maximum number of rows on the page, as a `usize`.
    #[expect(clippy::cast_possible_truncation, reason = "the limit is bounded far below")]
    pub(crate) fn row_limit(&self) -> usize {
        debug_assert!(self.limit > 0, "the least limit is 1");
        self.limit.unsigned_abs() as usize
    }

    /// Value of a sort key in the cursor; `None` for null or on the first page. `position` is the index of the key in
    /// `order`.
    pub(crate) fn after_value(&self, position: usize) -> Option<&str> {
        self.after.as_ref()?.get(position)?.as_deref()
    }

    /// Signed cursor for the page that begins after a row. `key` contains the row's sort values and tie-breaker.
    pub(crate) fn cursor(
        &self,
        key: &[Option<String>],
        ResponseSigner { signer, version }: &ResponseSigner<'_>,
    ) -> String {
        let added = [self.sync_from.clone(), Some(version.clone())];
        let sealed: Vec<Option<String>> = key.iter().cloned().chain(added).collect();
        signer.seal(&sealed, &self.filters)
    }

    /// Copy of the page with this journal place, unless the cursor already has the first page's place.
    pub(crate) fn with_sync_from(&self, sync_from: Option<String>) -> Self {
        Self { sync_from: self.sync_from.clone().or(sync_from), ..self.clone() }
    }

    /// Removes the row beyond the limit, which was read only to detect a next page. Returns the cursor of the next
    /// page; `None` on the last page.
    pub(crate) fn split_off_next_cursor<T>(
        &self,
        rows: &mut Vec<T>,
        signer: &ResponseSigner<'_>,
        key: impl Fn(&T) -> Vec<Option<String>>,
    ) -> Option<String> {
        let limit = self.row_limit();
        let more = rows.len() > limit;
        rows.truncate(limit);
        rows.last().filter(|_| more).map(|last| self.cursor(&key(last), signer))
    }
}

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
    use super::*;
    use proptest::prelude::*;

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
            let order = vec![("key", direction)];
            let page = Page { limit, order, after, sync_from: None, filters: String::new() };
            let (rows, cursor) = page.select_rows(rows, &signer.of_response("g1.1.1".to_owned()));
            all.extend(rows.into_iter().cloned());
            match cursor {
                // The last two texts are the version and the filters.
                Some(cursor) => {
                    after = signer.open(&cursor, "");
                    after.iter_mut().for_each(|after| after.truncate(after.len() - 2));
                }
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
