//! `GET /v1/stocks/{symbol}/revisions`: changes of served dividends, splits and headline figures.

use std::borrow::Cow;

use axum::response::Response;
use chrono_tz::America::New_York;
use market::row::{RevisedKind, Revision, TableRow};

use crate::answer::{Access, Free};
use crate::parameters::{
    Direction, DocumentedParameters, Output, Page, PageOptions, ParameterReader, Parameters, PathSymbol,
    SortValue, Sortable, parameters,
};
use crate::read::past_version::find_current_version;
use crate::render::envelope::{Depth, List, Warning};
use crate::routes::ErrorResponses;
use crate::routes::past::revisions::find_revisions;

const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 200,
    keys: &["known_at"],
    order: &[("known_at", Direction::Descending)],
};

parameters! {
    /// Parameters of a symbol's revisions.
    pub(crate) struct RevisionsParameters {
        symbol: PathSymbol,
        /// Kinds of revised values, comma-separated: dividend, split, figure. Default: all.
        kind: Option<Vec<RevisedKind>>,
        page: Page,
        output: Output,
    }
}

impl Parameters for RevisionsParameters {
    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;

    fn read(reader: &mut ParameterReader<'_>) -> Self {
        Self {
            symbol: reader.read_symbol(),
            kind: reader.read_words("kind", RevisedKind::ALL),
            page: reader.read_page(&PAGING),
            output: reader.read_output(Revision::COLUMNS),
        }
    }
}

impl Sortable for Revision {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Number(self.known_at.timestamp_micros().into()))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        let id = self.id.as_deref().unwrap_or_default();
        Cow::Owned(format!("{}\0{}\0{id}\0{}", self.data_version, self.kind, self.field))
    }
}

/// Revisions
///
/// Served values that later facts changed, newest first. Each row has the time of the change, the value before and
/// after, the reason, and the first and the latest served value. Both values of a change are computed for the same
/// market date. The passage of time alone therefore causes no revision. The tier's history limits the time and the
/// ex-date of revisions.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/revisions", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<RevisionsParameters>),
    responses((status = 200, description = "A page of revisions", body = List<Revision>), ErrorResponses)
)]
pub(crate) async fn revisions(access: Access<Free, RevisionsParameters>) -> Response {
    access
        .respond(async |context| {
            let asked = &context.parameters;
            let current = find_current_version(&context.generation).await?;
            let found = find_revisions(&context.generation, &current, &asked.symbol).await?;
            let start = context.first_day_of_tier_history();
            let is_asked = |revision: &&Revision| {
                start <= revision.date
                    && start <= revision.known_at.with_timezone(&New_York).date_naive()
                    && asked.kind.as_ref().is_none_or(|kinds| kinds.contains(&revision.kind))
            };
            let rows = found.revisions.iter().filter(is_asked);
            let (today, depth) = (context.today, Depth { from: start, tier: context.tier });
            context.render_page(&asked.output, &asked.page, current.version(), rows, |meta| {
                meta.set_depth(Some(depth), today);
                meta.warnings.extend(found.is_incomplete.then(Warning::older_revisions));
            })
        })
        .await
}
