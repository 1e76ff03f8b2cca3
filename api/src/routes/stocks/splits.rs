//! `GET /v1/stocks/{symbol}/splits`: split records of one security.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::Response;
use chrono::NaiveDate;
use market::row::{SplitRow, SplitStatus, SplitType, TableRow};
use utoipa::IntoParams;

use crate::answer::{Access, Free};
use crate::error::ApiError;
use crate::parameters::{
    DateRange, Direction, DocumentedParameters, Knowledge, Output, Page, PageOptions, ParameterReader,
    Parameters, PathSymbol, SortValue, Sortable, SyncPoint,
};
use crate::read::lookup::{self, SymbolRows};
use crate::read::past_version::PastVersion;
use crate::render::envelope::{Depth, List, Warning};
use crate::routes::ErrorResponses;
use crate::routes::changes::change_feed::{ChangeQuery, render_changes};

const SPLITS: &str = include_str!("../../../queries/stocks/splits.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 200,
    keys: &["ex_date"],
    order: &[("ex_date", Direction::Descending)],
};

/// Parameters of a symbol's splits.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SplitsParameters {
    #[param(ignore)]
    symbol: PathSymbol,
    /// First ex-date. Default: start of the tier's history. For an earlier day the response is a 403.
    start_date: Option<NaiveDate>,
    /// Last ex-date. Default: no limit, so that announced future splits are included.
    end_date: Option<NaiveDate>,
    /// Types of splits, comma-separated.
    #[param(value_type = Option<String>)]
    r#type: Option<Vec<SplitType>>,
    /// `meta.sync_from` of an earlier response, or an instant. Returns the rows that changed since then, in commit
    /// order. Deleted rows are returned as cancelled. Conflicts with filters and `sort`.
    #[param(value_type = Option<String>)]
    updated_since: Option<SyncPoint>,
    #[param(ignore)]
    knowledge: Option<Knowledge>,
    #[param(ignore)]
    page: Page,
    #[param(ignore)]
    output: Output,
}

impl Parameters for SplitsParameters {
    const TIER_MATTERS: bool = true;

    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let symbol = reader.read_symbol();
        let DateRange { start, end } = reader.read_date_range();
        let r#type = reader.read_words("type", SplitType::ALL);
        let updated_since = reader.read_updated_since(&["start_date", "end_date", "type", "sort"]);
        let knowledge = reader.read_knowledge();
        let page = reader.read_page(&PAGING);
        let output = reader.read_output(SplitRow::COLUMNS);
        Self { symbol, start_date: start, end_date: end, r#type, updated_since, knowledge, page, output }
    }

    fn oldest(&self) -> Option<NaiveDate> {
        self.start_date
    }
}

impl Sortable for SplitRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.ex_date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

/// Split history
///
/// Newest first. A split multiplies share counts by `ratio` and earlier prices by `price_factor`. Price-only types
/// (spin-offs, rights, class distributions) multiply only prices.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/splits", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<SplitsParameters>),
    responses((status = 200, description = "A page of split records", body = List<SplitRow>), ErrorResponses)
)]
pub(crate) async fn splits(access: Access<Free, SplitsParameters>) -> Response {
    access
        .respond(async |context| {
            let asked = &context.parameters;
            if let Some(since) = &asked.updated_since {
                let (page, output) = (&asked.page, &asked.output);
                lookup::require_known_symbol(&context.generation, &asked.symbol).await?;
                let symbols = Some(&asked.symbol.to_list());
                return render_changes::<SplitRow, _>(&context, ChangeQuery { since, symbols, page, output })
                    .await;
            }
            let start = asked.start_date.unwrap_or_else(|| context.first_day_of_tier_history());
            let live = async {
                let found = lookup::find_rows::<SplitRow>(
                    &context.generation,
                    SPLITS,
                    &asked.symbol,
                    &[&start, &asked.end_date, &asked.r#type],
                )
                .await?;
                Ok::<_, ApiError>((found.version, found))
            };
            let past = async |past: Arc<PastVersion>| {
                let security = context.past_security(&past, &asked.symbol).await?;
                let is_asked = |row: &SplitRow| {
                    start <= row.ex_date
                        && asked.end_date.is_none_or(|end| row.ex_date <= end)
                        && asked.r#type.as_ref().is_none_or(|types| types.contains(&row.r#type))
                        && row.status != SplitStatus::Cancelled
                };
                let held = security.count_quarantined("split");
                let rows = security.rows.splits.iter().filter(|row| is_asked(row)).cloned().collect();
                Ok::<_, ApiError>(SymbolRows {
                    version: past.version(),
                    rows,
                    quarantined_count: held,
                    sync_from: Some(past.sync_from.clone()),
                })
            };
            let (_, found) = context.read_as_known(asked.knowledge.as_ref(), live, past).await?;
            let today = context.today;
            let depth = asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier });
            let page = asked.page.with_sync_from(found.sync_from);
            context.render_page(&asked.output, &page, found.version, &found.rows, |meta| {
                meta.sync_from = page.sync_from.clone();
                meta.set_depth(depth, today);
                meta.warnings.extend(Warning::quarantined(found.quarantined_count));
            })
        })
        .await
}
