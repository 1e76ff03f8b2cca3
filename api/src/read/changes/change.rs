//! Changes of rows and of values of securities, as change streams deliver them.
//!
//! Notices of served securities: reading and selection.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::NaiveDate;
use market::decimal::{ExactDecimal, with_decimals_as_text};
use market::metrics::AdjustmentFactor;
use market::metrics::dividends::grower_lists::DividendList;
use market::row::{
    DividendRow, DividendStatus, JsonColumn, Notice, NoticeCause, NoticeEvent, NoticeKind, NoticeRow,
    SecurityEvent, SplitRow, SplitStatus, StatusRow,
};
use market::text_enum;
use serde::Serialize;
use serde_json::value::RawValue;
use store::FromRow;
use store::ids::JournalPosition;
use tokio_postgres::Row;
use utoipa::ToSchema;

use crate::parameters::{ChangeKind, JournalPlace, RowKey};
use crate::read::QueryError;

text_enum! {
    /// Effect of a change on a client's copy of the data. An upsert adds the row, or replaces the row with the same id.
    /// A delete removes the row with the same id.
    pub(crate) enum ChangeAction { Upsert = "upsert", Delete = "delete" }
}

/// Change of a dividend, a split, or a value of a security, such as its dividend status.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) position: JournalPosition,
    pub(crate) key: RowKey,
    /// True for the last change of a commit.
    pub(crate) completes_commit: bool,
    /// Former symbols and other spellings of the security. Filled in if the changes of the whole market were read.
    /// Empty if the changes of selected symbols were read.
    pub(crate) other_symbols: Arc<[String]>,
    pub(crate) content: ChangeContent,
}

/// New content of a changed row or value.
#[derive(Debug)]
pub(crate) enum ChangeContent {
    /// Dividend or split. A removed row keeps its last content, with the status `cancelled`.
    Row { ex_date: NaiveDate, json: JsonForms },
    /// Ticker events of the security, in date order.
    Events(Vec<SecurityEvent>),
    /// Adjustment factors of the security, in ex-date order.
    Factors(Vec<Factor>),
    /// Notice, with its complete body.
    Notice { notice: Box<Notice>, json: JsonForms },
    /// Dividend status of the security, or the dividend lists that contain it. `None` if the security was removed or is
    /// in no list any more.
    Value(Option<JsonForms>),
}

/// JSON of a value in two forms. In the first form, decimals are numbers. In the second form, decimals are strings.
#[derive(Debug)]
pub(crate) struct JsonForms {
    numbers: Box<RawValue>,
    /// Second form, in which decimals are strings. `None` if the value has no decimals, because both forms are then
    /// equal.
    texts: Option<Box<RawValue>>,
}

/// Ticker events of a security.
#[derive(Debug, Serialize, ToSchema)]
struct SecurityEvents<'a> {
    /// Canonical ticker.
    symbol: &'a str,
    /// Renames, merger and delisting within the tier's history, in date order.
    #[schema(value_type = Vec<SecurityEvent>)]
    events: &'a [SecurityEvent],
}

/// Adjustment factors of a security.
#[derive(Debug, Serialize, ToSchema)]
struct SecurityFactors<'a> {
    /// Canonical ticker.
    symbol: &'a str,
    /// Factors within the tier's history, in ex-date order.
    #[schema(value_type = Vec<Factor>)]
    factors: &'a [Factor],
}

/// Adjustment factors of one ex-date. Prices before the ex-date are multiplied by these factors.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Factor {
    /// Ex-date: first session in which the security trades after the split or without the dividend.
    pub(super) ex_date: NaiveDate,
    /// Multiplier for splits, spin-offs, rights issues and distributions of shares of another class; 1 if there are
    /// none.
    split_factor: ExactDecimal,
    /// Multiplier that accounts for the dividends of this ex-date; 1 if there are no dividends.
    dividend_factor: ExactDecimal,
}

/// Dividend lists that contain a security.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecurityLists<'a> {
    /// Canonical ticker.
    pub(crate) symbol: &'a str,
    /// Names of the lists. A list contains the stocks that the screener of the same name returns without filters.
    pub(crate) lists: Vec<DividendList>,
}

/// Changed row, by kind.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ChangedRow)]
#[expect(dead_code, reason = "documents ChangeBody::row")]
enum ChangedRowBody<'a> {
    /// Row of the kind `dividends`.
    Dividend(DividendRow),
    /// Row of the kind `splits`.
    Split(SplitRow),
    /// Row of the kind `events`.
    Events(SecurityEvents<'a>),
    /// Row of the kind `factors`.
    Factors(SecurityFactors<'a>),
    /// Row of the kind `statuses`.
    Status(StatusRow),
    /// Row of the kind `lists`.
    Lists(SecurityLists<'a>),
}

/// Data of a change event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangeEvent)]
pub(crate) struct ChangeBody<'a> {
    /// Effect on the client's copy.
    change: ChangeAction,
    /// Kind of the row.
    kind: ChangeKind,
    /// Canonical ticker.
    symbol: &'a str,
    /// Id of the row, unique within its kind. For `events`, `factors`, `statuses` and `lists`, the id is the symbol.
    id: &'a str,
    /// New row of an upsert. A delete has null, with one exception: if a dividend or split was removed from the data,
    /// the delete has the last version of its row, with the status `cancelled`.
    #[schema(value_type = Option<ChangedRowBody<'static>>)]
    row: Option<Cow<'a, RawValue>>,
}

/// Data of an event of the stream.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents Change::stream_event")]
pub(crate) enum StreamData {
    /// Data of the events `upsert` and `delete`.
    Change(ChangeBody<'static>),
    /// Data of a notice.
    Notice(Notice),
}

impl Change {
    /// Journal place directly after this change.
    pub(crate) fn place(&self) -> JournalPlace {
        let row = if self.completes_commit { None } else { Some(self.key.clone()) };
        JournalPlace { position: self.position, row }
    }

    /// Approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let content = match &self.content {
            ChangeContent::Row { json, .. }
            | ChangeContent::Notice { json, .. }
            | ChangeContent::Value(Some(json)) => json.size(),
            ChangeContent::Events(events) => size_of_val(events.as_slice()),
            ChangeContent::Factors(factors) => size_of_val(factors.as_slice()),
            ChangeContent::Value(None) => 0,
        };
        size_of::<Self>() + content
    }

    /// False for a dividend or split with an ex-date before `first_day`, the start of the client's history. True for
    /// every other change.
    pub(crate) fn is_visible_since(&self, first_day: NaiveDate) -> bool {
        !matches!(self.content, ChangeContent::Row { ex_date, .. } if ex_date < first_day)
    }

    /// Notice of the change; `None` if the change is none.
    pub(crate) fn notice(&self) -> Option<&Notice> {
        match &self.content {
            ChangeContent::Notice { notice, .. } => Some(notice),
            _ => None,
        }
    }

    /// Name and data of the stream event for a client whose history begins on `first_day`. `None` if the client gets no
    /// event.
    pub(crate) fn stream_event(
        &self,
        is_removal: bool,
        first_day: NaiveDate,
        text_decimals: bool,
    ) -> Result<Option<(&'static str, String)>, serde_json::Error> {
        if let ChangeContent::Notice { notice, json } = &self.content {
            return Ok(Some((notice.event.as_str(), json.form(text_decimals).get().to_owned())));
        }
        let body = if is_removal { Some(self.removal()) } else { self.body(first_day, text_decimals)? };
        body.map(|body| Ok((body.change.as_str(), serde_json::to_string(&body)?))).transpose()
    }

    /// Event data that removes the row from the client's copy.
    fn removal(&self) -> ChangeBody<'_> {
        let RowKey { kind, symbol, id, .. } = &self.key;
        let id = if id.is_empty() { symbol } else { id };
        ChangeBody { change: ChangeAction::Delete, kind: *kind, symbol, id, row: None }
    }

    /// Event data for a client whose history begins on `first_day`. `None` for a dividend or split with an earlier
    /// ex-date.
    fn body(
        &self,
        first_day: NaiveDate,
        text_decimals: bool,
    ) -> Result<Option<ChangeBody<'_>>, serde_json::Error> {
        if !self.is_visible_since(first_day) {
            return Ok(None);
        }
        let RowKey { live, kind, symbol, id } = &self.key;
        let mut is_upsert = *live;
        let row = match &self.content {
            ChangeContent::Row { json, .. } => Some(Cow::Borrowed(json.form(text_decimals))),
            ChangeContent::Value(json) => json.as_ref().map(|json| Cow::Borrowed(json.form(text_decimals))),
            ChangeContent::Notice { .. } => return Ok(None),
            ChangeContent::Events(events) => {
                let events = &events[events.partition_point(|event| event.date < first_day)..];
                render_unless(events.is_empty(), text_decimals, &SecurityEvents { symbol, events })?
            }
            ChangeContent::Factors(factors) => {
                let factors = &factors[factors.partition_point(|factor| factor.ex_date <= first_day)..];
                render_unless(factors.is_empty(), text_decimals, &SecurityFactors { symbol, factors })?
            }
        };
        is_upsert &= row.is_some();
        let change = if is_upsert { ChangeAction::Upsert } else { ChangeAction::Delete };
        let id = if id.is_empty() { symbol } else { id };
        Ok(Some(ChangeBody { change, kind: *kind, symbol, id, row }))
    }
}

fn render_unless(
    is_empty: bool,
    text_decimals: bool,
    value: &impl Serialize,
) -> Result<Option<Cow<'static, RawValue>>, serde_json::Error> {
    if is_empty {
        return Ok(None);
    }
    let render = || serde_json::value::to_raw_value(value);
    let json = if text_decimals { with_decimals_as_text(render)? } else { render()? };
    Ok(Some(Cow::Owned(json)))
}

impl JsonForms {
    /// Renders both JSON forms: decimals as numbers, and decimals as strings.
    pub(crate) fn render(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let numbers = serde_json::value::to_raw_value(value)?;
        let texts = with_decimals_as_text(|| serde_json::value::to_raw_value(value))?;
        let texts = Some(texts).filter(|texts| texts.get() != numbers.get());
        Ok(Self { numbers, texts })
    }

    fn size(&self) -> usize {
        self.numbers.get().len() + self.texts.as_ref().map_or(0, |texts| texts.get().len())
    }

    fn form(&self, text_decimals: bool) -> &RawValue {
        self.texts.as_deref().filter(|_| text_decimals).unwrap_or(&self.numbers)
    }
}

impl From<&AdjustmentFactor> for Factor {
    fn from(factor: &AdjustmentFactor) -> Self {
        Self {
            ex_date: factor.ex_date,
            split_factor: ExactDecimal::factor(factor.price_ratio().factor()),
            dividend_factor: ExactDecimal::factor(factor.dividend_factor),
        }
    }
}

/// Type of a row that has its own journal entries: a dividend or a split. All other data has journal entries per
/// security.
pub(crate) trait TrackedRow: FromRow + Serialize {
    /// Statement that selects the changed rows.
    const CHANGES: &'static str;
    fn id(&self) -> Option<&str>;
    /// Sets the status of the row to `cancelled`. A client removes a cancelled row from its copy of the data.
    fn into_cancelled(self) -> Self;
}

impl TrackedRow for DividendRow {
    const CHANGES: &'static str = include_str!("../../../queries/changes/dividends.sql");
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn into_cancelled(self) -> Self {
        Self { status: DividendStatus::Cancelled, ..self }
    }
}

impl TrackedRow for SplitRow {
    const CHANGES: &'static str = include_str!("../../../queries/changes/splits.sql");
    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }
    fn into_cancelled(self) -> Self {
        Self { status: SplitStatus::Cancelled, ..self }
    }
}

/// Changed row with its journal position.
pub(crate) struct ChangedRow<T> {
    pub(crate) position: JournalPosition,
    /// `false` for a removed row.
    pub(crate) live: bool,
    pub(crate) symbol: String,
    pub(crate) row: T,
}

impl<T: TrackedRow> ChangedRow<T> {
    /// Parses the changed rows of a query result. Skips the row without a change, which contains only the data version.
    pub(crate) fn read_all(rows: &[Row]) -> Result<Vec<Self>, tokio_postgres::Error> {
        let is_change =
            |row: &&Row| matches!(row.try_get::<_, Option<JournalPosition>>("change_position"), Ok(Some(_)));
        rows.iter().filter(is_change).map(Self::read).collect()
    }

    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            position: row.try_get("change_position")?,
            live: row.try_get("change_live")?,
            symbol: row.try_get("change_symbol")?,
            row: T::from_row(row)?,
        })
    }
}

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
