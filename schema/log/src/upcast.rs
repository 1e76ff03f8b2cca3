//! Older bodies as the newest version says them.

use market::same_day::SameDay;

use crate::body::Body;

/// Brings a body of a version to the newest one of its kind.
///
/// Dividends of version 1 do not name the other payments of their day: those of one frame come from one file, so they are
/// named as far as the frame shows them.
pub(crate) fn upcast(body: &mut Body, version: u32) {
    if let Body::Dividends(rows) = body
        && version < 2
    {
        let mut same_day = SameDay::default();
        rows.iter_mut().for_each(|row| same_day.name(row, ""));
    }
}
