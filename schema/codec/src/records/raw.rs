//! Observation with an encoded record, as the facts tables store it.

use std::cmp::Ordering;

use super::encoded::EncodedRecord;
use market::event::Kind;

/// Row of a feed: an encoded record with its provenance and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawObservation {
    /// Vendor's id of the record; `None` if the vendor gives none.
    pub id: Option<String>,
    /// Vendor's permanent id of the security, which stays the same when the symbol changes; `None` if unknown.
    pub security_ref: Option<String>,
    /// Vendor's revision number of the record; a higher one is newer.
    pub revision: i64,
    /// True if the row retracts the record, false if it adds or corrects the record.
    pub retracted: bool,
    /// Time of observation, in microseconds since 1970, UTC.
    pub observed_at: i64,
    /// Line number of the row in the feed's file.
    pub line: u64,
    /// Id of the record batch that contains the row.
    pub frame: [u8; 16],
    /// Encoded record.
    pub record: EncodedRecord,
}

impl RawObservation {
    /// Compares the content of two rows: id, revision, retraction and record. A `Security` without an id is also
    /// compared by `security_ref`, because vendors reuse tickers. Rows with equal content are one observation.
    pub(super) fn compare_content(&self, other: &Self, kind: Kind) -> Ordering {
        let reference = |o: &Self| match kind {
            Kind::Security if o.id.is_none() => o.security_ref.clone(),
            _ => None,
        };
        let said = |o: &Self| (o.revision, o.retracted);
        self.id
            .cmp(&other.id)
            .then_with(|| said(self).cmp(&said(other)))
            .then_with(|| self.record.cmp(&other.record))
            .then_with(|| reference(self).cmp(&reference(other)))
    }

    /// Sort order for building a set. Rows are sorted by content. Among rows with equal content, the newest row (see
    /// `provenance`) comes first.
    pub(super) fn compare_newest_first(&self, other: &Self, kind: Kind) -> Ordering {
        self.compare_content(other, kind)
            .then_with(|| other.provenance().cmp(&self.provenance()))
            .then_with(|| other.security_ref.cmp(&self.security_ref))
    }

    /// Provenance of the row: observation time, line and record batch. The newest row is the row with the greatest
    /// provenance.
    pub(super) fn provenance(&self) -> (i64, u64, [u8; 16]) {
        (self.observed_at, self.line, self.frame)
    }
}
