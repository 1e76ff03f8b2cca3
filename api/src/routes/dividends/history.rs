//! `GET /v1/dividends/history`: dividend records of up to 50 symbols, and the market's changes.

use axum::response::Response;
use chrono::NaiveDate;
use market::event::DividendType;
use market::row::{DividendRow, DividendStatus, TableRow};
use tokio_postgres::types::ToSql;
use utoipa::IntoParams;

use crate::answer::{Access, Free};
use crate::answer::{Context, Rendered};
use crate::auth::tier::Tier;
use crate::error::ApiError;
use crate::parameters::{
    Described, Direction, OTHER_DAYS, OtherDays, Output, Page, Paging, Parameters, Reader, Since, SymbolList,
    Window,
};
use crate::read::lookup::{self, Named};
use crate::read::projection::Version;
use crate::render::envelope::{Depth, List, ListMeta, Warning};
use crate::render::rows;
use crate::routes::Failures;
use crate::routes::changes::{Asked, changed};
use crate::routes::stocks::dividends::{FILTERS, STATUSES, statuses};

const HISTORY: &str = include_str!("../../../queries/dividends/history.sql");
const HISTORY_ASCENDING: &str = include_str!("../../../queries/dividends/history_ascending.sql");
const PAGING: Paging = Paging {
    default_limit: 100,
    most: 1_000,
    keys: &["ex_date"],
    order: &[("ex_date", Direction::Descending)],
};

/// What the history takes.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryParameters {
    /// Comma-separated symbols (at most 50); unknown ones are in `meta.missing`. Needed, except by Professional together with
    /// `updated_since`: then everything that changed.
    #[param(value_type = Option<String>)]
    symbols: Option<SymbolList>,
    /// First ex-date. Default: as far as the tier reaches; earlier is a 403.
    start_date: Option<NaiveDate>,
    /// Last ex-date. Default: none, declared future ones included.
    end_date: Option<NaiveDate>,
    /// Types as declared, comma-separated.
    #[param(value_type = Option<String>)]
    r#type: Option<Vec<DividendType>>,
    /// declared, paid or cancelled, comma-separated. Default: declared and paid.
    #[param(value_type = Option<String>)]
    status: Option<Vec<DividendStatus>>,
    /// With dividends expected in the next 12 months but not declared; amount and payment date are estimates.
    #[param(value_type = Option<bool>, default = false)]
    include_projected: bool,
    #[param(ignore)]
    other_days: OtherDays,
    /// `meta.sync_from` of an earlier answer, or an instant: the rows that changed since, in the order of their changes;
    /// vanished ones are cancelled. Conflicts with filters and `sort`.
    #[param(value_type = Option<String>)]
    updated_since: Option<Since>,
    #[param(ignore)]
    page: Page,
    #[param(ignore)]
    output: Output,
}

impl Parameters for HistoryParameters {
    const TIER_MATTERS: bool = true;

    fn needs(&self) -> Option<(Tier, &'static str)> {
        (self.symbols.is_none() && self.updated_since.is_some())
            .then_some((Tier::Professional, "market_changes"))
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let symbols = reader.symbols(50);
        let updated_since = reader.updated_since(&[FILTERS.as_slice(), &OTHER_DAYS].concat());
        reader.require_either("symbols", "updated_since");
        let Window { start, end } = reader.window();
        Self {
            symbols,
            start_date: start,
            end_date: end,
            r#type: reader.some_of("type", DividendType::ALL),
            status: reader.some_of("status", STATUSES),
            include_projected: reader.flag("include_projected").unwrap_or(false),
            other_days: reader.other_days(),
            updated_since,
            page: reader.page(&PAGING),
            output: reader.output(DividendRow::COLUMNS),
        }
    }

    fn oldest(&self) -> Option<NaiveDate> {
        self.start_date
    }
}

/// Dividend history of up to 50 symbols
///
/// Newest first; declared future records included. Cancelled ones only with `status=cancelled`.
#[utoipa::path(
    get, path = "/v1/dividends/history", tag = "Dividends", security(("bearer" = []), ("api_key" = [])),
    params(Described<HistoryParameters>),
    responses((status = 200, description = "A page of dividend records", body = List<DividendRow>), Failures)
)]
pub(crate) async fn history(access: Access<Free, HistoryParameters>) -> Response {
    access.answer(page).await
}

async fn page(context: Context<HistoryParameters>) -> Result<Rendered, ApiError> {
    let asked = &context.parameters;
    if let Some(since) = &asked.updated_since {
        let (symbols, page, output) = (asked.symbols.as_ref(), &asked.page, &asked.output);
        return changed::<DividendRow, _>(&context, Asked { since, symbols, page, output }).await;
    }
    let Named { known, missing } = lookup::named(&context.generation, asked.symbols.as_ref()).await?;
    let OtherDays { declared, record } = asked.other_days;
    let start = asked.start_date.unwrap_or_else(|| context.floor());
    let statuses = statuses(asked.status.as_ref(), asked.include_projected);
    let after: Option<NaiveDate> = asked.page.after(0).and_then(|day| day.parse().ok());
    let (symbol, kind, id) = (asked.page.after(1), asked.page.after(2), asked.page.after(3));
    let probe = asked.page.limit + 1;
    let statement = if asked.page.direction() == Direction::Ascending { HISTORY_ASCENDING } else { HISTORY };
    let parameters: [&(dyn ToSql + Sync); 14] = [
        &known,
        &start,
        &asked.end_date,
        &asked.r#type,
        &statuses,
        &after,
        &symbol,
        &kind,
        &id,
        &probe,
        &declared.start,
        &declared.end,
        &record.start,
        &record.end,
    ];
    let rows = lookup::query(&context.generation, statement, &parameters).await?;
    let first = rows.first().ok_or_else(|| lookup::unversioned(&context.generation))?;
    let (version, page) = (Version::of(first)?, asked.page.carrying(first.try_get("sync_from")?));
    let held = lookup::held(&rows)?;
    let mut rows: Vec<DividendRow> = lookup::present(&rows)?;
    let next_cursor = page.cut(&mut rows, &context.app.signer, key);
    let mut meta = ListMeta::new(&version, rows.len(), asked.page.limit, next_cursor.clone());
    meta.sync_from = page.sync_from;
    meta.miss(missing);
    meta.warnings.extend(Warning::held(held));
    meta.reach(
        asked.start_date.is_none().then_some(Depth { from: start, tier: context.tier }),
        context.today,
    );
    Ok(Rendered { body: rows::list(&asked.output, &rows, &meta)?, version, next_cursor })
}

fn key(row: &DividendRow) -> Vec<Option<String>> {
    let id = row.id.clone().unwrap_or_default();
    [row.ex_date.to_string(), row.symbol.clone(), row.r#type.to_string(), id].into_iter().map(Some).collect()
}
