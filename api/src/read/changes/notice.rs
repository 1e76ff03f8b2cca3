//! Notices of served securities: reading and selection.

use market::row::{JsonColumn, Notice, NoticeCause, NoticeEvent, NoticeKind, NoticeRow};
use serde_json::value::RawValue;
use tokio_postgres::Row;

use crate::read::QueryError;

/// Selection of notices.
#[derive(Debug, Clone)]
pub(crate) struct NoticeSelection {
    pub(crate) events: Vec<NoticeEvent>,
    pub(crate) causes: Vec<NoticeCause>,
    /// True if backfilled events are selected too.
    pub(crate) backfill: bool,
}

impl NoticeSelection {
    /// Selection by the parameters of a request. By default, all events with the cause `data` are selected.
    pub(crate) fn new(
        events: Option<Vec<NoticeEvent>>,
        causes: Option<Vec<NoticeCause>>,
        backfill: bool,
    ) -> Self {
        Self {
            events: events.unwrap_or_else(|| NoticeEvent::ALL.to_vec()),
            causes: causes.unwrap_or_else(|| vec![NoticeCause::Data]),
            backfill,
        }
    }

    pub(crate) fn admits(&self, notice: &Notice) -> bool {
        self.events.contains(&notice.event)
            && self.causes.contains(&notice.cause)
            && (self.backfill || !notice.is_backfill)
    }
}

/// Reads a row of table `notices`.
pub(crate) fn read_notice(row: &Row) -> Result<Notice, QueryError> {
    let kind: NoticeKind = row.try_get("kind")?;
    let parse = |column: &str| {
        let json: Option<JsonColumn<Box<RawValue>>> = row.try_get(column)?;
        // A row that another release stored may lack a field. The notice is then served without the row.
        let parsed = json.map(|JsonColumn(json)| NoticeRow::parse(kind, json.get()));
        let parsed =
            parsed.transpose().inspect_err(|error| tracing::warn!(%error, "cannot read a notice's row"));
        Ok::<_, QueryError>(parsed.ok().flatten())
    };
    Ok(Notice {
        event: row.try_get("event")?,
        symbol: row.try_get("symbol")?,
        kind,
        id: row.try_get("record")?,
        date: row.try_get("date")?,
        cause: row.try_get("cause")?,
        known_at: row.try_get("at")?,
        is_backfill: row.try_get("is_backfill")?,
        before: parse("before")?,
        after: parse("after")?,
    })
}
