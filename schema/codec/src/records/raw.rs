//! Observation with an encoded record, as stored in facts.

use std::cmp::Ordering;

use super::encoded::EncodedRecord;
use market::event::Kind;

/// One row of a feed, with its record as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawObservation {
    /// Vendor's own record id.
    pub id: Option<String>,
    /// Vendor's permanent id of the security.
    pub security_ref: Option<String>,
    /// Vendor's revision.
    pub revision: i64,
    /// True if the row retracts the record.
    pub retracted: bool,
    /// Observation time, microseconds since 1970, UTC.
    pub observed_at: i64,
    /// Line in the feed's file.
    pub line: u64,
    /// Id of the record batch in the log.
    pub frame: [u8; 16],
    /// The encoded record.
    pub record: EncodedRecord,
}

impl RawObservation {
    /// Compares the content of two rows. Rows with equal content are one observation. The content of a security without
    /// an id includes the vendor's permanent reference, so that a reused ticker gives two securities.
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

    /// Order of a set: by content. Rows with equal content are ordered by provenance, the latest first.
    pub(super) fn compare_newest_first(&self, other: &Self, kind: Kind) -> Ordering {
        self.compare_content(other, kind)
            .then_with(|| other.provenance().cmp(&self.provenance()))
            .then_with(|| other.security_ref.cmp(&self.security_ref))
    }

    /// Observation time, line and record batch of the row.
    pub(super) fn provenance(&self) -> (i64, u64, [u8; 16]) {
        (self.observed_at, self.line, self.frame)
    }
}
