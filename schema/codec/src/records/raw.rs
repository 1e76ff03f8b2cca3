//! Observation whose record is still encoded, as stored in facts.

use std::cmp::Ordering;

use super::encoded::EncodedRecord;
use market::event::Kind;

/// Row of a feed, with its record as encoded bytes.
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
    /// Number of the row's line in the feed's file.
    pub line: u64,
    /// Id of the record batch that contains the row.
    pub frame: [u8; 16],
    /// Encoded record.
    pub record: EncodedRecord,
}

impl RawObservation {
    /// Compares the content of two rows. Rows with equal content are the same observation.
    ///
    /// The content of a security record without an id includes `security_ref`. If a vendor reuses a ticker, the former
    /// and the new security of the ticker therefore stay distinct.
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

    /// Order of the rows in a set: by content, and for equal content by provenance, the latest first.
    pub(super) fn compare_newest_first(&self, other: &Self, kind: Kind) -> Ordering {
        self.compare_content(other, kind)
            .then_with(|| other.provenance().cmp(&self.provenance()))
            .then_with(|| other.security_ref.cmp(&self.security_ref))
    }

    /// Provenance of the row: observation time, line and record batch.
    pub(super) fn provenance(&self) -> (i64, u64, [u8; 16]) {
        (self.observed_at, self.line, self.frame)
    }
}
