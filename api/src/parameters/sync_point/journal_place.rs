//! Place in the journal of data changes: after all changes of a commit, or after one of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use market::text_enum;
use store::ids::JournalPosition;

/// Maximum length of a place as text, in bytes. Symbols and ids are much shorter.
const LONGEST: usize = 512;

text_enum! {
    /// Kind of changed data. A change of the kind `dividends` or `splits` has one record. A change of another kind has
    /// the complete new value of one security, for example all its ticker events.
    pub(crate) enum ChangeKind {
        // The order of the variants is the order of delivery within a commit: a rename precedes the rows of the new
        // symbol.
        Events = "events", Dividends = "dividends", Splits = "splits", Factors = "factors", Statuses = "statuses",
        Lists = "lists",
    }
}

/// Place in the journal: directly after one change, or after a whole commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalPlace {
    /// Position of the commit in the journal.
    pub(crate) position: JournalPosition,
    /// Key of the last change before the place, for a place within the commit. `None` for the end of the commit.
    pub(crate) row: Option<RowKey>,
}

/// Key of a changed row within a commit. Rows are delivered in the order of these fields; removed rows are first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowKey {
    /// `false` for a removed row.
    pub(crate) live: bool,
    pub(crate) kind: ChangeKind,
    /// Canonical symbol.
    pub(crate) symbol: String,
    /// Id of the row; empty for kinds with one value per security.
    pub(crate) id: String,
}

impl JournalPlace {
    /// Place after all changes of a commit.
    pub(crate) fn after_commit(position: JournalPosition) -> Self {
        Self { position, row: None }
    }

    /// Parses `812` (the end of a commit) or `812.W3RydWUs…` (a place within the commit, with the row key in base64).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (digits, row) = match text.split_once('.') {
            Some((digits, row)) => (digits, Some(RowKey::parse(row)?)),
            None => (text, None),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let position = digits.parse().ok().filter(|_| is_number)?;
        Some(Self { position, row })
    }

    /// Position of the last commit that lies completely before this place. A reader that reads only whole commits
    /// continues after this commit.
    pub(crate) fn completed_position(&self) -> JournalPosition {
        match self.row {
            Some(_) => JournalPosition(self.position.0.saturating_sub(1)),
            None => self.position,
        }
    }

    /// True if the commit at `position` may have a change after this place.
    pub(crate) fn may_precede(&self, position: JournalPosition) -> bool {
        match self.row {
            Some(_) => self.position <= position,
            None => self.position < position,
        }
    }

    /// Text of the place, in the notation of [`JournalPlace::parse`].
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        match &self.row {
            Some(row) => Ok(format!("{}.{}", self.position, row.to_text()?)),
            None => Ok(self.position.to_string()),
        }
    }
}

impl RowKey {
    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (live, kind, symbol, id): (bool, ChangeKind, String, String) =
            serde_json::from_slice(&bytes).ok()?;
        // Postgres text cannot contain NUL.
        let is_text = !symbol.contains('\0') && !id.contains('\0');
        is_text.then_some(Self { live, kind, symbol, id })
    }

    fn to_text(&self) -> Result<String, serde_json::Error> {
        let key = (self.live, self.kind, &self.symbol, &self.id);
        Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&key)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> RowKey {
        RowKey { live: true, kind: ChangeKind::Splits, symbol: "BRK.B".to_owned(), id: "x/1".to_owned() }
    }

    #[test]
    fn a_place_is_the_same_after_its_text() {
        for row in [None, Some(key())] {
            let place = JournalPlace { position: JournalPosition(812), row };
            let text = place.to_text().expect("renders");
            assert_eq!(JournalPlace::parse(&text), Some(place), "{text}");
        }
        let nul =
            JournalPlace { position: JournalPosition(1), row: Some(RowKey { id: "\0".to_owned(), ..key() }) };
        let long =
            JournalPlace { position: JournalPosition(1), row: Some(RowKey { id: "x".repeat(500), ..key() }) };
        for place in [nul, long] {
            assert_eq!(JournalPlace::parse(&place.to_text().expect("renders")), None);
        }
        for text in ["", ".", "-1", "+1", "1.", "1.x", "99999999999999999999", "1.W10"] {
            assert_eq!(JournalPlace::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_change_follows_a_place_once() {
        let at = |position: i64| JournalPosition(position);
        let after = JournalPlace::after_commit(at(812));
        assert_eq!([811, 812, 813].map(|position| after.may_precede(at(position))), [false, false, true]);
        let within = JournalPlace { position: at(812), row: Some(key()) };
        assert_eq!([811, 812, 813].map(|position| within.may_precede(at(position))), [false, true, true]);
    }

    #[test]
    fn a_place_within_a_commit_has_not_completed_it() {
        let position = JournalPosition(812);
        assert_eq!(JournalPlace::after_commit(position).completed_position(), position);
        let within = JournalPlace { position, row: Some(key()) };
        assert_eq!(within.completed_position(), JournalPosition(811));
    }
}
