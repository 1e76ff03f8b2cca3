//! `GET /v1/stocks/{symbol}/splits`: split records of one security.

use std::borrow::Cow;

use chrono::NaiveDate;
use market::row::{SplitRow, SplitStatus, SplitType, TableRow};

use super::records::{RecordsQuery, render_records};
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, Output, Page, PageOptions, PathSymbol, SortValue, Sortable, SyncPoint, parameters,
};
use crate::render::envelope::List;
use crate::routes::endpoint;

const SPLITS: &str = include_str!("../../../queries/stocks/splits.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 200,
    keys: &["ex_date"],
    order: &[("ex_date", Direction::Descending)],
};

parameters! {
    /// Parameters of a symbol's splits.
    pub(crate) struct SplitsParameters by reader {
        symbol: PathSymbol = reader.read_symbol(),
        /// First ex-date. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last ex-date. Default: no limit, so that announced future splits are included.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Types of splits, comma-separated.
        r#type: Option<Vec<SplitType>> = reader.read_words("type", SplitType::ALL),
        /// Returns only the rows that changed after this point, in the order of the changes. The point is either the
        /// `meta.sync_from` of an earlier response or a time in UTC (RFC 3339). Deleted rows have the status
        /// `cancelled`. Conflicts with `start_date`, `end_date`, `type` and `sort`.
        updated_since: Option<SyncPoint> =
            reader.read_updated_since(&["start_date", "end_date", "type", "sort"]),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(SplitRow::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
}

impl Sortable for SplitRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.ex_date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

endpoint! {
    /// Split history
    ///
    /// Newest first. A split multiplies share counts by `ratio` and earlier prices by `price_factor`. Price-only types
    /// (spin-offs, rights, class distributions) multiply only prices.
    get "/v1/stocks/{symbol}/splits", tag "Stocks", returns "A page of split records",
    splits(Access<Free, SplitsParameters>) -> List<SplitRow> { respond(render) }
}

async fn render(context: HandlerContext<SplitsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let query = RecordsQuery {
        statement: SPLITS,
        derived: |rows| &rows.splits,
        kind: "split",
        symbol: &asked.symbol,
        start_date: asked.start_date,
        updated_since: asked.updated_since.as_ref(),
        knowledge: asked.knowledge.as_ref(),
        page: &asked.page,
        output: &asked.output,
    };
    let start = context.first_day(asked.start_date);
    let accepts = |row: &SplitRow| {
        start <= row.ex_date
            && asked.end_date.is_none_or(|end| row.ex_date <= end)
            && asked.r#type.as_ref().is_none_or(|types| types.contains(&row.r#type))
            && row.status != SplitStatus::Cancelled
    };
    render_records(&context, query, accepts).await
}
