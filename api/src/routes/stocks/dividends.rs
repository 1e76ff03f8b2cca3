//! `GET /v1/stocks/{symbol}/dividends`: dividend records of one security.

use std::borrow::Cow;

use chrono::NaiveDate;
use market::event::DividendType;
use market::row::{DividendRow, DividendStatus, TableRow};

use super::records::{RecordsQuery, render_records};
use crate::answer::{HandlerContext, RenderedBody, Starter};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, OtherDateRanges, Output, Page, PageOptions, PathSymbol, SortValue, Sortable,
    SyncPoint, parameters,
};
use crate::render::envelope::List;
use crate::routes::endpoint;

const DIVIDENDS: &str = include_str!("../../../queries/stocks/dividends.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 20,
    most: 100,
    keys: &["ex_date", "payment_date", "amount"],
    order: &[("ex_date", Direction::Descending)],
};
/// Parameters that conflict with `updated_since`.
pub(crate) const FILTERS: [&str; 6] =
    ["start_date", "end_date", "type", "status", "include_projected", "sort"];
/// Accepted values of the parameter `status`. Projected rows are selected with the parameter `include_projected`
/// instead.
pub(crate) const STATUSES: &[DividendStatus] =
    &[DividendStatus::Declared, DividendStatus::Paid, DividendStatus::Cancelled];

/// Statuses of the rows to return, from the parameters `status` and `include_projected`.
pub(crate) fn selected_statuses(
    asked: Option<&Vec<DividendStatus>>,
    include_projected: bool,
) -> Vec<DividendStatus> {
    let live = || vec![DividendStatus::Declared, DividendStatus::Paid];
    let mut statuses = asked.cloned().unwrap_or_else(live);
    statuses.extend(include_projected.then_some(DividendStatus::Projected));
    statuses
}

/// Filters of dividend records.
#[derive(Debug)]
pub(crate) struct DividendFilters<'a> {
    /// First ex-date.
    pub(crate) start: NaiveDate,
    /// Last ex-date; `None` for no limit.
    pub(crate) end: Option<NaiveDate>,
    /// Types; `None` for all types.
    pub(crate) types: Option<&'a Vec<DividendType>>,
    pub(crate) statuses: Vec<DividendStatus>,
    pub(crate) other_days: OtherDateRanges,
}

impl DividendFilters<'_> {
    pub(crate) fn accept(&self, row: &DividendRow) -> bool {
        self.start <= row.ex_date
            && self.end.is_none_or(|end| row.ex_date <= end)
            && self.types.is_none_or(|types| types.contains(&row.r#type))
            && self.statuses.contains(&row.status)
            && self.other_days.include(row.declaration_date, row.record_date)
    }
}

parameters! {
    /// Parameters of a symbol's dividends.
    pub(crate) struct DividendsParameters by reader {
        symbol: PathSymbol = reader.read_symbol(),
        /// First ex-date. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last ex-date. Default: no limit, so that declared future ex-dates are included.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Dividend types as declared, comma-separated.
        r#type: Option<Vec<DividendType>> = reader.read_words("type", DividendType::ALL),
        /// Statuses, comma-separated: declared, paid, cancelled. Default: declared and paid.
        status: Option<Vec<DividendStatus>> = reader.read_words("status", STATUSES),
        /// Includes dividends that are expected in the next 12 months but not declared. Their amounts and payment
        /// dates are estimates.
        include_projected: bool = reader.read_bool_or("include_projected", false),
        /// Returns only the rows that changed after this point, in the order of the changes. The point is either the
        /// `meta.sync_from` of an earlier response or a time in UTC (RFC 3339). Deleted rows have the status
        /// `cancelled`. Conflicts with `start_date`, `end_date`, `type`, `status`, `include_projected` and `sort`.
        updated_since: Option<SyncPoint> = reader.read_updated_since(&FILTERS),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(DividendRow::COLUMNS),
    }

    const FEATURE: &'static str = "dividend_history";
    const TIER_MATTERS: bool = true;
}

impl Sortable for DividendRow {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        match key {
            "ex_date" => Some(SortValue::Day(self.ex_date)),
            "payment_date" => self.payment_date.map(SortValue::Day),
            "amount" => Some(SortValue::Number(self.amount.0)),
            _ => None,
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        format!(
            "{}\0{}\0{}\0{}",
            self.symbol,
            self.ex_date,
            self.r#type,
            self.id.as_deref().unwrap_or_default()
        )
        .into()
    }
}

endpoint! {
    /// Dividend records (Starter and higher)
    ///
    /// Newest first. Each record has two amounts: the declared amount, and the amount adjusted for later splits.
    /// Cancelled records are returned only with `status=cancelled`.
    get "/v1/stocks/{symbol}/dividends", tag "Stocks", returns "A page of dividend records",
    dividends(Access<Starter, DividendsParameters>) -> List<DividendRow> { respond(render) }
}

async fn render(context: HandlerContext<DividendsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let query = RecordsQuery {
        statement: DIVIDENDS,
        derived: |rows| &rows.dividends,
        kind: "dividend",
        symbol: &asked.symbol,
        start_date: asked.start_date,
        updated_since: asked.updated_since.as_ref(),
        knowledge: asked.knowledge.as_ref(),
        page: &asked.page,
        output: &asked.output,
    };
    let filters = DividendFilters {
        start: context.first_day(asked.start_date),
        end: asked.end_date,
        types: asked.r#type.as_ref(),
        statuses: selected_statuses(asked.status.as_ref(), asked.include_projected),
        other_days: OtherDateRanges::default(),
    };
    render_records(&context, query, |row| filters.accept(row)).await
}
