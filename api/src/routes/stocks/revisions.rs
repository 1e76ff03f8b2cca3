//! `GET /v1/stocks/{symbol}/revisions`: changes of served dividends, splits and headline figures.

use std::borrow::Cow;

use chrono::NaiveDate;
use chrono_tz::America::New_York;
use market::row::{RevisedKind, Revision, TableRow};

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Output, Page, PageOptions, RequestedSymbol, SortValue, Sortable, parameters,
};
use crate::read::past_version::find_current_version;
use crate::render::envelope::{Depth, List, Warning};
use crate::routes::endpoint;
use crate::routes::past::revisions::find_revisions;

const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 200,
    keys: &["known_at"],
    order: &[("known_at", Direction::Descending)],
};

parameters! {
    /// Parameters of a symbol's revisions.
    pub(crate) struct RevisionsParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// Kinds of revised values, comma-separated: dividend, split, figure (a metric). Default: all.
        kind: Option<Vec<RevisedKind>> = reader.read_words("kind", RevisedKind::ALL),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(Revision::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;
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

endpoint! {
    /// Revisions
    ///
    /// Changes of values in responses, newest first. Each row has the time and the reason of a change, and the value
    /// before and after the change. It also has the first and the latest value of the changed field. The values before
    /// and after a change are computed for the same market date. The passage of time alone therefore causes no
    /// revision. A revision is left out if its time or its ex-date, now or earlier, is before the tier's history.
    get "/v1/stocks/{symbol}/revisions", tag "Stocks", returns "A page of revisions",
    revisions(Access<Free, RevisionsParameters>) -> List<Revision> { respond(render) }
}

async fn render(context: HandlerContext<RevisionsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let current = find_current_version(&context.generation).await?;
    let found = find_revisions(&context.generation, &current, &asked.symbol).await?;
    let start = context.first_day_of_tier_history();
    // A record that a correction moved into the history was outside it before.
    let is_moved = |revision: &Revision| {
        let earlier = [&revision.before, &revision.first_reported].into_iter().flatten();
        revision.field == "ex_date" && earlier.flat_map(|day| day.parse()).any(|day: NaiveDate| day < start)
    };
    let is_asked = |revision: &&Revision| {
        start <= revision.date
            && !is_moved(revision)
            && start <= revision.known_at.with_timezone(&New_York).date_naive()
            && asked.kind.as_ref().is_none_or(|kinds| kinds.contains(&revision.kind))
    };
    let rows = found.revisions.iter().filter(is_asked);
    let (today, depth) = (context.today, Depth { from: start, tier: context.tier });
    context.render_page(&asked.output, &asked.page, current.version(), rows, |meta| {
        meta.set_depth(Some(depth), today);
        meta.warnings.extend(found.is_incomplete.then(Warning::older_revisions));
    })
}
