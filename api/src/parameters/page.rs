//! `limit`, `cursor` and `sort`: pagination and order of a list.

use market::text_enum;
use serde_json::json;

use super::{MinVersion, ParameterReader};
use crate::parameters::cursor::ResponseSigner;

/// Maximum number of keys in `sort`.
pub(super) const MAX_SORT_KEYS: usize = 3;
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

    #[cfg(test)]
    pub(super) fn for_test(
        limit: i64,
        key: &'static str,
        direction: Direction,
        after: Option<Vec<Option<String>>>,
    ) -> Self {
        let after = after.map(|mut after: Vec<Option<String>>| {
            after.truncate(after.len() - 2);
            after
        });
        Self { limit, order: vec![(key, direction)], after, sync_from: None, filters: String::new() }
    }
}
