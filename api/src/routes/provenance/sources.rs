//! `GET /v1/sources`: sources of the data with their licences, of all securities or of some.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;
use store::{FromRow, sql_row};
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Direction, Output, Page, PageOptions, SortValue, Sortable, SymbolList, parameters};
use crate::read::lookup::{self, ResolvedSymbols};
use crate::read::{DataVersion, QueryError};
use crate::render::envelope::List;
use crate::routes::endpoint;

const SOURCES: &str = include_str!("../../../queries/sources/list.sql");
const COLUMNS: &[&str] = &["source", "kinds", "licence", "url", "attribution", "redistribution", "stated_at"];
const MOST_SYMBOLS: usize = 50;
const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["source"],
    order: &[("source", Direction::Ascending)],
};

sql_row! {
    /// Source of the data, with its licence.
    #[derive(Debug, Clone, Serialize, ToSchema)]
    pub(crate) struct SourceRow {
        /// Name of the source, as in `source` of the rows.
        source: String,
        /// Kinds of its loaded rows: security, price, dividend, split, fundamentals, etf, holding or fx.
        kinds: Vec<String>,
        /// Name of the licence; null if the operator stated none.
        licence: Option<String>,
        /// Address of the licence.
        url: Option<String>,
        /// Text that names the source wherever its data is shown.
        attribution: Option<String>,
        /// False if the data must not be redistributed: bulk responses, exports and pages without a key leave out the
        /// securities that rest on the source.
        redistribution: Option<bool>,
        /// Time at which the licence was stated, in UTC.
        stated_at: Option<DateTime<Utc>>,
    }
}

parameters! {
    /// Parameters of the sources.
    pub(crate) struct SourcesParameters by reader {
        /// Comma-separated symbols (at most 50). Only the sources on which these securities rest are listed. Default:
        /// all sources.
        symbols: Option<SymbolList> = reader.read_symbols(MOST_SYMBOLS),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(COLUMNS),
    }
}

impl Sortable for SourceRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Text(Cow::Borrowed(&self.source)))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.source)
    }
}

endpoint! {
    /// Sources and licences
    ///
    /// A security rests on each source with a row of it, also if another source's row is used, because the rules
    /// compare the rows of all sources.
    get "/v1/sources", tag "System", returns "A page of sources",
    sources(Access<Free, SourcesParameters>) -> List<SourceRow> { respond(render) }
}

async fn render(context: HandlerContext<SourcesParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols.as_ref()).await?;
    let rows = lookup::run_query(&context.generation, SOURCES, &[&known]).await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let sources = lookup::rows_with(&rows, "source").map(SourceRow::from_row);
    let sources = sources.collect::<Result<Vec<_>, _>>().map_err(QueryError::from)?;
    context.render_page(&asked.output, &asked.page, version, &sources, |meta| {
        if asked.symbols.is_some() {
            meta.set_missing(missing);
        }
    })
}
