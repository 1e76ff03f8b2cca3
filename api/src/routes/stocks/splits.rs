//! `GET /v1/stocks/{symbol}/splits`: split records of one security.

use std::borrow::Cow;

use axum::response::Response;
use chrono::NaiveDate;
use market::row::{SplitRow, SplitType, TableRow};
use utoipa::IntoParams;

use crate::answer::{Access, Free};
use crate::parameters::{
    Described, Direction, Listed, Output, Page, Paging, Parameters, PathSymbol, Reader, Since, SortValue,
    Window,
};
use crate::read::lookup;
use crate::render::envelope::{Depth, List, Warning};
use crate::routes::Failures;
use crate::routes::changes::{Asked, changed};

const SPLITS: &str = include_str!("../../../queries/stocks/splits.sql");
const PAGING: Paging =
    Paging { default_limit: 50, most: 200, keys: &["ex_date"], order: &[("ex_date", Direction::Descending)] };

/// What the splits of one symbol take.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SplitsParameters {
    #[param(ignore)]
    symbol: PathSymbol,
    /// First ex-date. Default: as far as the tier reaches; earlier is a 403.
    start_date: Option<NaiveDate>,
    /// Last ex-date. Default: none, announced future ones included.
    end_date: Option<NaiveDate>,
    /// Directions, comma-separated.
    #[param(value_type = Option<String>)]
    r#type: Option<Vec<SplitType>>,
    /// `meta.sync_from` of an earlier answer, or an instant: the rows that changed since, in the order of their changes;
    /// vanished ones are cancelled. Conflicts with filters and `sort`.
    #[param(value_type = Option<String>)]
    updated_since: Option<Since>,
    #[param(ignore)]
    page: Page,
    #[param(ignore)]
    output: Output,
}

impl Parameters for SplitsParameters {
    const TIER_MATTERS: bool = true;

    fn read(reader: &mut Reader<'_>) -> Self {
        let symbol = reader.symbol();
        let Window { start, end } = reader.window();
        let r#type = reader.some_of("type", SplitType::ALL);
        let updated_since = reader.updated_since(&["start_date", "end_date", "type", "sort"]);
        let page = reader.page(&PAGING);
        let output = reader.output(SplitRow::COLUMNS);
        Self { symbol, start_date: start, end_date: end, r#type, updated_since, page, output }
    }

    fn oldest(&self) -> Option<NaiveDate> {
        self.start_date
    }
}

impl Listed for SplitRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.ex_date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

/// Split history
///
/// Newest first. Splits multiply share counts by `ratio` and earlier prices by `price_factor`.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/splits", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(Described<SplitsParameters>),
    responses((status = 200, description = "A page of split records", body = List<SplitRow>), Failures)
)]
pub(crate) async fn splits(access: Access<Free, SplitsParameters>) -> Response {
    access
        .answer(async |context| {
            let asked = &context.parameters;
            if let Some(since) = &asked.updated_since {
                let (page, output) = (&asked.page, &asked.output);
                lookup::known(&context.generation, &asked.symbol).await?;
                let symbols = Some(&asked.symbol.listed());
                return changed::<SplitRow, _>(&context, Asked { since, symbols, page, output }).await;
            }
            let start = asked.start_date.unwrap_or_else(|| context.floor());
            let found = lookup::many::<SplitRow>(
                &context.generation,
                SPLITS,
                &asked.symbol,
                &[&start, &asked.end_date, &asked.r#type],
            )
            .await?;
            let today = context.today;
            let depth = asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier });
            let page = asked.page.carrying(found.sync_from);
            context.page(&asked.output, &page, found.version, &found.rows, |meta| {
                meta.sync_from = page.sync_from.clone();
                meta.reach(depth, today);
                meta.warnings.extend(Warning::held(found.held));
            })
        })
        .await
}
