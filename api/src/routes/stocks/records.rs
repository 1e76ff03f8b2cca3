//! `GET /v1/stocks/{symbol}/dividends` and `/splits`: records of one security. A request asks for one of three kinds of
//! rows: rows of the current data version, rows of an earlier data version, or the rows that changed since an earlier
//! response.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use chrono::NaiveDate;
use market::event::DividendType;
use market::metrics::DerivedRows;
use market::row::{DividendRow, DividendStatus, SplitRow, SplitStatus, SplitType, TableRow};
use serde::Serialize;
use store::FromRow;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody, SelectedPage, Starter, render_page};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, OtherDateRanges, Output, Page, PageOptions, RequestedSymbol, SortValue, Sortable,
    SymbolList, SyncPoint, parameters,
};
use crate::read::ServedGeneration;
use crate::read::changes::TrackedRow;
use crate::read::lookup::{self, PastVersion, SymbolRows};
use crate::render::envelope::{List, Warning};
use crate::routes::changes::change_feed::{ChangeQuery, render_changes};
use crate::routes::conversion::{Conversion, Converted, ConvertibleColumns, payment_rate};
use crate::routes::endpoint;

const DIVIDENDS: &str = include_str!("../../../queries/stocks/dividends.sql");
const DIVIDENDS_PAGING: PageOptions = PageOptions {
    default_limit: 20,
    most: 100,
    keys: &["ex_date", "payment_date", "amount"],
    order: &[("ex_date", Direction::Descending)],
};
/// Parameters that conflict with `updated_since`.
pub(crate) const FILTERS: [&str; 7] =
    ["start_date", "end_date", "type", "status", "include_projected", "sort", "currency"];
/// Columns of dividend records.
pub(crate) static DIVIDEND_COLUMNS: LazyLock<ConvertibleColumns> =
    LazyLock::new(|| ConvertibleColumns::of(DividendRow::COLUMNS));
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
        symbol: RequestedSymbol = reader.read_symbol(),
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
        currency: Option<String> = reader.read_target_currency(),
        updated_since: Option<SyncPoint> = reader.read_updated_since(&FILTERS),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&DIVIDENDS_PAGING),
        output: Output = reader.read_convertible_output(&DIVIDEND_COLUMNS, currency.as_ref()),
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

/// Dividend record, with its amount in the requested currency.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConvertibleDividend {
    #[serde(flatten)]
    dividend: DividendRow,
    /// Amount in the requested currency; null without an exchange rate. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Converted>)]
    converted: Option<Option<Converted>>,
}

impl ConvertibleDividend {
    fn of(dividend: DividendRow, conversion: &Conversion) -> Self {
        let DividendRow { amount, currency, ex_date, .. } = &dividend;
        Self { converted: Some(conversion.convert_payment(amount.0, currency, *ex_date)), dividend }
    }
}

endpoint! {
    /// Dividend records (Starter and higher)
    ///
    /// Newest first. Each record has two amounts: the declared amount, and the amount adjusted for later splits.
    /// Cancelled records are returned only with `status=cancelled`.
    get "/v1/stocks/{symbol}/dividends", tag "Stocks", returns "A page of dividend records",
    dividends(Access<Starter, DividendsParameters>) -> List<ConvertibleDividend> { respond(render_dividends) }
}

async fn render_dividends(context: HandlerContext<DividendsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    if let Some(since) = &asked.updated_since {
        let query = ChangeQuery { since, symbols: None, page: &asked.page, output: &asked.output };
        return render_symbol_changes::<DividendRow, _>(&context, &asked.symbol, query).await;
    }
    let query = RecordsQuery {
        statement: DIVIDENDS,
        derived: |rows| &rows.dividends,
        kind: "dividend",
        symbol: &asked.symbol,
        start_date: asked.start_date,
        knowledge: asked.knowledge.as_ref(),
        page: &asked.page,
    };
    let filters = DividendFilters {
        start: context.first_day(asked.start_date),
        end: asked.end_date,
        types: asked.r#type.as_ref(),
        statuses: selected_statuses(asked.status.as_ref(), asked.include_projected),
        other_days: OtherDateRanges::default(),
    };
    let mut page = select_records(&context, query, |row| filters.accept(row)).await?;
    page.meta.sources = Some(page.rows.iter().map(|row| row.source.clone()).collect());
    render_dividend_page(&context.generation, asked.currency.as_deref(), &asked.output, page).await
}

/// Renders a page of dividends, with their amounts in `currency` if it is given.
pub(crate) async fn render_dividend_page(
    generation: &ServedGeneration,
    currency: Option<&str>,
    output: &Output,
    page: SelectedPage<DividendRow>,
) -> Result<RenderedBody, ApiError> {
    let SelectedPage { rows, mut meta, version } = page;
    let Some(currency) = currency else { return render_page(output, &rows, &meta, version) };
    let amounts: Vec<_> = rows.iter().map(|row| payment_rate(&row.currency, row.ex_date)).collect();
    let conversion = Conversion::load(generation, &version, Some(currency), &amounts).await?;
    if let Some(sources) = &mut meta.sources {
        sources.extend(conversion.sources(&amounts));
    }
    let rows: Vec<ConvertibleDividend> =
        rows.into_iter().map(|dividend| ConvertibleDividend::of(dividend, &conversion)).collect();
    meta.warnings.extend(conversion.warning(rows.iter().map(|row| &row.converted)));
    render_page(output, &rows, &meta, version)
}

const SPLITS: &str = include_str!("../../../queries/stocks/splits.sql");
const SPLITS_PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 200,
    keys: &["ex_date"],
    order: &[("ex_date", Direction::Descending)],
};

parameters! {
    /// Parameters of a symbol's splits.
    pub(crate) struct SplitsParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// First ex-date. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last ex-date. Default: no limit, so that announced future splits are included.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Types of splits, comma-separated.
        r#type: Option<Vec<SplitType>> = reader.read_words("type", SplitType::ALL),
        updated_since: Option<SyncPoint> =
            reader.read_updated_since(&["start_date", "end_date", "type", "sort"]),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&SPLITS_PAGING),
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
    splits(Access<Free, SplitsParameters>) -> List<SplitRow> { respond(render_splits) }
}

async fn render_splits(context: HandlerContext<SplitsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    if let Some(since) = &asked.updated_since {
        let query = ChangeQuery { since, symbols: None, page: &asked.page, output: &asked.output };
        return render_symbol_changes::<SplitRow, _>(&context, &asked.symbol, query).await;
    }
    let query = RecordsQuery {
        statement: SPLITS,
        derived: |rows| &rows.splits,
        kind: "split",
        symbol: &asked.symbol,
        start_date: asked.start_date,
        knowledge: asked.knowledge.as_ref(),
        page: &asked.page,
    };
    let start = context.first_day(asked.start_date);
    let accepts = |row: &SplitRow| {
        start <= row.ex_date
            && asked.end_date.is_none_or(|end| row.ex_date <= end)
            && asked.r#type.as_ref().is_none_or(|types| types.contains(&row.r#type))
            && row.status != SplitStatus::Cancelled
    };
    let SelectedPage { rows, meta, version } = select_records(&context, query, accepts).await?;
    render_page(&asked.output, &rows, &meta, version)
}

/// Query for the records of one security.
pub(super) struct RecordsQuery<'a, T> {
    /// SQL statement for all served rows of the security. Its parameter is the spellings of the symbol.
    pub(super) statement: &'static str,
    /// All derived rows of the security.
    pub(super) derived: fn(&DerivedRows) -> &[T],
    /// Kind of the records: `dividend` or `split`. The table `quarantine` uses the same names.
    pub(super) kind: &'static str,
    pub(super) symbol: &'a RequestedSymbol,
    /// First ex-date; `None` for the start of the tier's history.
    pub(super) start_date: Option<NaiveDate>,
    pub(super) knowledge: Option<&'a Knowledge>,
    pub(super) page: &'a Page,
}

/// Renders the changes of one security since an earlier response.
async fn render_symbol_changes<T: TrackedRow, P>(
    context: &HandlerContext<P>,
    symbol: &RequestedSymbol,
    query: ChangeQuery<'_>,
) -> Result<RenderedBody, ApiError> {
    let symbols = SymbolList(vec![symbol.clone()]);
    let found = lookup::resolve_symbols(&context.generation, &symbols).await?;
    if found.iter().all(Option::is_none) {
        return Err(lookup::unknown_symbol_error(symbol).into());
    }
    render_changes::<T, _>(context, ChangeQuery { symbols: Some(&symbols), ..query }).await
}

/// Selects a page of the records that `accepts` selects.
async fn select_records<T: FromRow + Sortable + Clone, P>(
    context: &HandlerContext<P>,
    query: RecordsQuery<'_, T>,
    accepts: impl Fn(&T) -> bool,
) -> Result<SelectedPage<T>, ApiError> {
    let RecordsQuery { symbol, page, .. } = query;
    let live = async {
        let found = lookup::find_rows(&context.generation, query.statement, symbol).await?;
        Ok::<_, ApiError>((found.version, found))
    };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, symbol).await?;
        Ok::<_, ApiError>(SymbolRows {
            version: past.version(),
            quarantined_count: security.count_quarantined(query.kind),
            rows: (query.derived)(&security.rows).to_vec(),
            sync_from: Some(past.sync_from.clone()),
        })
    };
    let (_, found) = context.read_as_known(query.knowledge, live, past).await?;
    let page = page.with_sync_from(found.sync_from);
    let rows = found.rows.iter().filter(|row| accepts(row));
    let SelectedPage { rows, mut meta, version } = context.select_page(&page, found.version, rows);
    meta.sync_from = page.sync_from.clone();
    meta.set_depth(context.depth_without(query.start_date), context.today);
    meta.warnings.extend(Warning::quarantined(found.quarantined_count));
    let rows = rows.into_iter().cloned().collect();
    Ok(SelectedPage { rows, meta, version })
}
