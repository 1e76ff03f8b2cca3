//! `GET /v1/changes`: changes of served rows as server-sent events.

pub(super) mod change_feed;
mod change_stream;
mod stream_filter;

use axum::extract::MatchedPath;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use market::row::{NoticeCause, NoticeEvent};

use super::ErrorResponses;
use crate::admission::decision::AdmissionRequest;
use crate::admission::open_streams::StreamRefusal;
use crate::answer::{Access, Free, RequiredTier};
use crate::auth::{Tier, credential};
use crate::error::ApiError;
use crate::parameters::{ChangeKind, DocumentedParameters, SymbolList, SyncPoint, parameters};
use crate::read::changes::{ListedSecurities, NoticeSelection, StreamData};
use crate::read::lookup;
use change_feed::JournalStart;
use change_stream::{ChangeStream, StreamCall};
use stream_filter::{MARKET, StreamFilter};

/// Header that asks proxies not to buffer the stream.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

parameters! {
    /// Parameters of the change stream.
    pub(crate) struct ChangesParameters by reader {
        /// Comma-separated symbols (at most 50). Without the list, the stream has the changes of the whole market
        /// (Professional only).
        symbols: Option<SymbolList> = reader.read_symbols(50),
        /// Kinds of changes, comma-separated. Default: all but `notices`. `events`, `cause` and `backfill` add `notices` to
        /// the given kinds; without given kinds, they select only `notices`.
        kinds: Option<Vec<ChangeKind>> = reader.read_words("kinds", ChangeKind::ALL),
        /// Events of the notices, comma-separated. Default: all.
        events: Option<Vec<NoticeEvent>> = reader.read_words("events", NoticeEvent::ALL),
        /// Causes of the notices, comma-separated. Default: `data`.
        cause: Option<Vec<NoticeCause>> = reader.read_words("cause", NoticeCause::ALL),
        /// If true, notices of events are included that were more than ten sessions old when they became known.
        backfill: Option<bool> = reader.read_bool("backfill"),
        /// Start of the stream: `meta.sync_from` of a response, the id of a stream event, an instant (RFC 3339) by the
        /// clock of the service, or a day, which means its start in New York. Only changes after this point are sent.
        /// Default: now. The header `Last-Event-ID` has precedence.
        since: Option<SyncPoint> = reader.read_stream_start(),
        /// If true, the stream waits for new changes. If false, the stream ends after the changes that already exist.
        /// Default: true.
        follow: bool = reader.read_bool_or("follow", true),
        /// Form of decimals: exact numbers (default) or strings.
        decimals: bool = reader.read_word("decimals", &["number", "string"]) == Some("string"),
    }

    fn needs(&self) -> Option<(Tier, &'static str)> {
        self.symbols.is_none().then_some(MARKET)
    }
}

/// Change stream
///
/// Server-sent events in the order of the changes. The event `upsert` adds or replaces a row; the event `delete`
/// removes a row. The data of each of these events is a `ChangeEvent`. A client that reconnects with the id of an event
/// in `Last-Event-ID` gets exactly the changes after this event. A client that applies all events has the same rows as
/// after a full download. Several changes of a row may arrive as one event.
///
/// A notice says what happened to a security. Its event has the name of what happened, for example `raised`, and its
/// data is a `Notice`. `events=raised,cut` selects notices; a copy of the data does not need them. Notices are kept
/// for 90 days.
///
/// The last event is `end`. Its data is an error body with a `code`: `STREAM_LAGGED` (the client reads too slowly),
/// `SERVICE_UNAVAILABLE` (the instance stops), `QUOTA_EXCEEDED`, `INVALID_API_KEY`, `FEATURE_NOT_AVAILABLE` or
/// `TOO_MANY_STREAMS` (both after a change to a lower plan), or `CAUGHT_UP` (with `follow=false`). After every 15 seconds without an event, a comment with a new id keeps the
/// connection open.
///
/// Opening a stream counts as one request. Each delivered batch of up to 100 changes counts as another request. If the
/// rate limit is reached, the next batch waits. An account may have 2, 5, 10 or 50 open streams on all instances
/// together. The number depends on the tier.
#[utoipa::path(
    get, path = "/v1/changes", tag = "Changes", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<ChangesParameters>),
    responses(
        (status = 200, description = "A stream of events", content_type = "text/event-stream", body = StreamData),
        ErrorResponses
    )
)]
pub(crate) async fn changes(
    access: Access<Free, ChangesParameters>,
    path: MatchedPath,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match Box::pin(open(access, path, &uri, &headers)).await {
        Ok(stream) => {
            let headers = [
                (BUFFERING, HeaderValue::from_static("no")),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            ];
            (headers, Sse::new(stream.into_events())).into_response()
        }
        Err(error) => error.into_response(),
    }
}

async fn open(
    access: Access<Free, ChangesParameters>,
    path: MatchedPath,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<ChangeStream, ApiError> {
    let Access { app, generation, account_id, tier, parameters, .. } = access;
    let key = credential::read_key(headers, uri).ok_or(ApiError::InvalidKey)?;
    let (required_tier, _) = parameters.symbols.as_ref().map_or(MARKET, |_| (Free::TIER, ""));
    let permit = app.streams.open(account_id, tier, key, required_tier).await;
    let permit = permit.map_err(|refusal| match refusal {
        StreamRefusal::TooMany(limit) => ApiError::TooManyStreams { limit },
        StreamRefusal::Undecided(error) => error.into(),
    })?;
    let generation = generation?;
    let since = parameters.since.as_ref();
    let start = generation.run_while_responsive(JournalStart::find(&generation, since, "since")).await?;
    let selects_notices =
        parameters.events.is_some() || parameters.cause.is_some() || parameters.backfill.is_some();
    let default = if selects_notices { &[][..] } else { ChangeKind::COPIED };
    let mut kinds = parameters.kinds.unwrap_or_else(|| default.to_vec());
    kinds.extend(selects_notices.then_some(ChangeKind::Notices));
    kinds.sort_unstable();
    kinds.dedup();
    let counted = app.settings.quota_check.is_counted(Free::TIER);
    let call = StreamCall {
        request: AdmissionRequest { key, required_rank: required_tier.rank(), counted },
        account_id,
        path,
        tier,
        has_text_decimals: parameters.decimals,
        follows: parameters.follow,
    };
    let notices =
        NoticeSelection::new(parameters.events, parameters.cause, parameters.backfill.unwrap_or_default());
    let mut filter = StreamFilter::new(kinds, notices, parameters.symbols);
    if let Some(list) = filter.symbols() {
        let find = async {
            lookup::resolve_symbols(&generation, list).await?;
            ListedSecurities::find(&generation, list).await
        };
        let securities = generation.run_while_responsive(find).await?;
        filter.follow(&securities);
    }
    Ok(ChangeStream::new(app, permit, call, filter, start))
}
