//! Change stream of one client.
//!
//! A stream first reads pages of the journal from the database, until it has all changes. Then it reads from the ring
//! buffer that all streams of the instance share.
//!
//! Invariants: the stream's place in the journal separates the changes that are delivered or filtered out from the
//! changes that are not delivered yet. The id of an event contains this place. A client can therefore continue after
//! any event. A batch is charged (counted as a request) before it is delivered. A stream has at most one batch in
//! memory.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::response::sse::Event;
use chrono::NaiveDate;
use futures::Stream;
use rand::RngExt;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::change_feed::JournalStart;
use super::stream_filter::{Delivery, MARKET, StreamFilter};
use crate::admission::decision::{AdmissionRequest, AdmissionVerdict};
use crate::admission::open_streams::{StreamEnd, StreamPermit};
use crate::answer::quota_exceeded;
use crate::app::App;
use crate::auth::{AccountId, Tier, years_before};
use crate::error::ApiError;
use crate::parameters::{JournalPlace, MinVersion};
use crate::read::changes::{ChangePage, ChangeSelection, Lagged, RingSubscription};
use crate::render::rows::RenderError;

/// Maximum number of changes per batch. Each batch is charged as one request.
const BATCH: u16 = 100;
/// Maximum wait until the ring buffer contains the changes after the stream's place. Then the stream reads a page from
/// the database.
const JOIN_WAIT: Duration = Duration::from_secs(1);
/// Pause after an admission check that ended with an error. `UNDECIDED` is the maximum number of such pauses in a row.
const UNDECIDED_PAUSE: Duration = Duration::from_secs(1);
const UNDECIDED: u32 = 10;
/// Range of the client's reconnection delay, in milliseconds. The delay is random, so that the clients of a stopping
/// instance do not reconnect at the same time.
const RECONNECT_MS: std::ops::Range<u64> = 500..2_500;

/// Data of the request that opened a stream.
pub(super) struct StreamCall {
    /// Admission request for a batch. The same request is made for each batch.
    pub(super) request: AdmissionRequest,
    pub(super) account_id: AccountId,
    /// Route of the stream. The usage statistics count each batch of changes as one call of this route.
    pub(super) path: MatchedPath,
    pub(super) tier: Tier,
    pub(super) has_text_decimals: bool,
    /// True if the stream continues with new changes after it has read all pages. False if it ends there.
    pub(super) follows: bool,
}

/// Change stream of one client.
pub(super) struct ChangeStream {
    app: App,
    permit: StreamPermit,
    call: StreamCall,
    filter: StreamFilter,
    follower: RingSubscription,
    journal: String,
    /// Place in the journal between the changes that are delivered or filtered out and the changes that are not
    /// delivered yet.
    place: JournalPlace,
    phase: StreamPhase,
    batch: VecDeque<Delivery>,
    is_batch_charged: bool,
    /// Place in the journal after all changes that were read for the batch, including changes that the filter removed.
    /// `None` if the place is unknown.
    batch_end: Option<JournalPlace>,
    undecided: u32,
    next_heartbeat: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPhase {
    /// The first event is not sent yet. Its id will be the start of the stream.
    Opening {
        is_current: bool,
    },
    /// Pages are read from the database.
    CatchUp,
    /// All pages are read. The stream looks up its place in the shared ring buffer.
    Join,
    /// Changes are read from the ring, beginning at this index.
    Follow(usize),
    Ended,
}

impl ChangeStream {
    pub(super) fn new(
        app: App,
        permit: StreamPermit,
        call: StreamCall,
        filter: StreamFilter,
        start: JournalStart,
    ) -> Self {
        let JournalStart { journal, place, now } = start;
        let is_current = place.row.is_none() && place.position >= now;
        Self {
            follower: app.journal_reader.follow(),
            next_heartbeat: Instant::now() + app.settings.stream_heartbeat,
            app,
            permit,
            call,
            filter,
            journal,
            place,
            phase: StreamPhase::Opening { is_current },
            batch: VecDeque::new(),
            is_batch_charged: false,
            batch_end: None,
            undecided: 0,
        }
    }

    /// Events of the stream.
    pub(super) fn into_events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures::stream::unfold(self, |mut stream| async move {
            let event = match stream.next_event().await {
                Ok(event) => event?,
                Err(error) => stream.end_with_error(&error),
            };
            stream.next_heartbeat = Instant::now() + stream.app.settings.stream_heartbeat;
            Some((Ok(event), stream))
        })
    }

    async fn next_event(&mut self) -> Result<Option<Event>, ApiError> {
        while self.phase != StreamPhase::Ended {
            if self.permit.ended.is_cancelled() {
                return Err(stopping());
            }
            if let Some(end) = *self.permit.checked.borrow() {
                return Err(end.into());
            }
            let event = if self.batch.is_empty() {
                self.advance().await?
            } else if self.is_batch_charged {
                self.deliver()?
            } else {
                // Boxed, because a stream is seldom charged. Unboxed, this future would enlarge the future of every
                // stream.
                Box::pin(self.charge()).await?
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Takes the next change from the batch, and returns its event. Returns `None` if the client may not see the
    /// change.
    fn deliver(&mut self) -> Result<Option<Event>, ApiError> {
        let Some(Delivery { change, is_removal }) = self.batch.pop_front() else { return Ok(None) };
        self.place = change.place();
        let event = change.stream_event(is_removal, self.first_day(), self.call.has_text_decimals);
        let Some((name, data)) = event.map_err(RenderError::from)? else { return Ok(None) };
        Ok(Some(Event::default().event(name).id(self.event_id()?).data(data)))
    }

    /// Fills the empty batch, or waits for changes. Returns an event if the stream opens, ends or needs a heartbeat.
    async fn advance(&mut self) -> Result<Option<Event>, ApiError> {
        // For a batch from the ring, `batch_end` is the end of the last whole commit in the ring. If the batch also has
        // changes of the commit after it, `place` is already after `batch_end` and must not move back.
        if let Some(end) = self.batch_end.take().filter(|end| end.position >= self.place.position) {
            self.place = end;
        }
        match self.phase {
            StreamPhase::Opening { is_current } => {
                self.phase = if is_current { StreamPhase::Join } else { StreamPhase::CatchUp };
                Ok(Some(self.heartbeat("open")?.retry(reconnection_delay())))
            }
            // Boxed, because a stream seldom catches up. Unboxed, this future would enlarge the future of every stream.
            StreamPhase::CatchUp => Box::pin(self.read_page()).await.map(|()| None),
            StreamPhase::Join if !self.call.follows => Ok(Some(self.end(json!({ "code": "CAUGHT_UP" })))),
            StreamPhase::Join => self.join().await,
            StreamPhase::Follow(index) => self.read_ring(index).await,
            StreamPhase::Ended => Ok(None),
        }
    }

    /// Reads one page of the journal, with a permit for expensive requests.
    async fn read_page(&mut self) -> Result<(), ApiError> {
        let permit = self.app.expensive_limiter.acquire(self.call.account_id).await?;
        let min_version = MinVersion::of_position(self.place.position.0);
        let generation = self.app.projection.pin_version(&min_version).await?.expensive_generation();
        let selection = ChangeSelection {
            symbols: self.filter.symbols(),
            kinds: &self.filter.kinds,
            notices: Some(&self.filter.notices),
        };
        let limit = i64::from(BATCH);
        let reading = ChangePage::read(&generation, &self.place, selection, limit);
        let page = generation.run_while_responsive(reading).await?;
        drop(permit);
        if page.journal != self.journal {
            return Err(ApiError::StreamLagged);
        }
        generation.record_returned_version(page.version);
        let (first_day, securities) = (self.first_day(), page.securities.as_ref());
        if let Some(securities) = securities {
            self.filter.follow(securities);
        }
        let visible = page.changes.into_iter().filter(|change| change.is_visible_since(first_day));
        let batch = visible.filter_map(|change| self.filter.admit_of_page(change, securities)).collect();
        self.set_batch(batch, Some(page.end));
        if !page.has_more {
            self.phase = StreamPhase::Join;
        }
        Ok(())
    }

    /// Finds the next change in the ring, or waits until the journal reader has filled the ring.
    async fn join(&mut self) -> Result<Option<Event>, ApiError> {
        let position = self.place.position;
        if let Ok(index) = self.follower.index_after(position) {
            self.phase = StreamPhase::Follow(index);
            return Ok(None);
        }
        let appended = async {
            tokio::select! { () = self.follower.appended() => {}, () = sleep(JOIN_WAIT) => {} }
        };
        let is_due = wait(&self.permit, self.next_heartbeat, appended).await?;
        if self.follower.index_after(position).is_err() {
            self.phase = StreamPhase::CatchUp;
        }
        is_due.then(|| self.heartbeat("heartbeat")).transpose()
    }

    /// Reads the next changes from the ring, or waits for an append.
    async fn read_ring(&mut self, index: usize) -> Result<Option<Event>, ApiError> {
        let read = self.follower.read(index, usize::from(BATCH)).map_err(|Lagged| ApiError::StreamLagged)?;
        self.phase = StreamPhase::Follow(read.next);
        let end = read.complete.map(JournalPlace::after_commit);
        if !read.changes.is_empty() {
            let first_day = self.first_day();
            // The ring may lag behind the pages. Its changes up to the place of the stream are already delivered.
            let place = self.place.clone();
            let new = read.changes.into_iter().filter(|change| place.may_precede(change.position));
            let visible = new.filter(|change| change.is_visible_since(first_day));
            let batch = visible.filter_map(|change| self.filter.admit(change)).collect();
            self.set_batch(batch, end);
            return Ok(None);
        }
        if let Some(end) = end.filter(|end| end.position > self.place.position) {
            self.place = end;
        }
        let is_due = wait(&self.permit, self.next_heartbeat, self.follower.appended()).await?;
        is_due.then(|| self.heartbeat("heartbeat")).transpose()
    }

    fn set_batch(&mut self, batch: VecDeque<Delivery>, end: Option<JournalPlace>) {
        (self.batch, self.batch_end, self.is_batch_charged) = (batch, end, false);
    }

    /// Charges the batch as one request. If the rate limit is reached, waits, and the caller then charges the batch
    /// again.
    async fn charge(&mut self) -> Result<Option<Event>, ApiError> {
        let pause = match self.app.admission.decide(self.call.request).await {
            Err(error) if self.undecided >= UNDECIDED => return Err(error.into()),
            Err(_) => {
                self.undecided += 1;
                UNDECIDED_PAUSE
            }
            Ok(None) => return Err(ApiError::InvalidKey),
            Ok(Some(decision)) => match decision.verdict {
                AdmissionVerdict::Passed => {
                    self.app.admission.record_delivery(&decision, &self.call.path);
                    (self.call.tier, self.undecided, self.is_batch_charged) = (decision.tier, 0, true);
                    return Ok(None);
                }
                AdmissionVerdict::Tier => {
                    let (current, (_, feature)) = (decision.tier, MARKET);
                    return Err(ApiError::FeatureNotAvailable { current, feature, earliest: None });
                }
                AdmissionVerdict::Quota => return Err(quota_exceeded(&decision.usage)),
                AdmissionVerdict::Rate => Duration::from_secs(decision.usage.bucket.retry_after_seconds()),
            },
        };
        let is_due = wait(&self.permit, self.next_heartbeat, sleep(pause)).await?;
        is_due.then(|| self.heartbeat("heartbeat")).transpose()
    }

    /// First day of the history that the tier includes.
    fn first_day(&self) -> NaiveDate {
        years_before(self.app.today(), self.app.admission.tiers().depth_years(self.call.tier))
    }

    fn event_id(&self) -> Result<String, ApiError> {
        let place = self.place.to_text().map_err(RenderError::from)?;
        Ok(format!("{}.{place}", self.journal))
    }

    /// Event with a comment and an id, but without data. The id is the current place, so that the client can continue
    /// from it.
    fn heartbeat(&self, comment: &str) -> Result<Event, ApiError> {
        Ok(Event::default().comment(comment).id(self.event_id()?))
    }

    fn end_with_error(&mut self, error: &ApiError) -> Event {
        if let ApiError::Internal(cause) = error {
            tracing::error!("a change stream ended: {cause:#}");
        }
        self.end(error.body())
    }

    /// Event that ends the stream.
    fn end(&mut self, body: serde_json::Value) -> Event {
        self.phase = StreamPhase::Ended;
        self.batch.clear();
        let event = Event::default().event("end").retry(reconnection_delay()).data(body.to_string());
        match self.event_id() {
            Ok(id) => event.id(id),
            Err(_) => event,
        }
    }
}

/// Waits for `wake` or for the time of the next heartbeat. Returns `true` if the heartbeat is due first.
///
/// # Errors
/// [`ApiError::Unavailable`] if the instance stops, or if the account's permit for the stream is lost.
/// An error for a [`StreamEnd`] if a check ends the stream.
async fn wait(
    permit: &StreamPermit,
    next_heartbeat: Instant,
    wake: impl Future<Output = ()>,
) -> Result<bool, ApiError> {
    tokio::select! {
        biased;
        () = permit.ended.cancelled() => Err(stopping()),
        end = find_end(&permit.checked) => Err(end.into()),
        () = wake => Ok(false),
        () = sleep_until(next_heartbeat) => Ok(true),
    }
}

/// Waits until a check ends the stream.
async fn find_end(checked: &watch::Receiver<Option<StreamEnd>>) -> StreamEnd {
    let mut checked = checked.clone();
    match checked.wait_for(Option::is_some).await.ok().and_then(|end| *end) {
        Some(end) => end,
        // Without a sender, no check is possible any more.
        None => std::future::pending().await,
    }
}

impl From<StreamEnd> for ApiError {
    fn from(end: StreamEnd) -> Self {
        match end {
            StreamEnd::InvalidKey => Self::InvalidKey,
            StreamEnd::NotInPlan(current) => {
                Self::FeatureNotAvailable { current, feature: MARKET.1, earliest: None }
            }
            StreamEnd::TooMany(limit) => Self::TooManyStreams { limit },
        }
    }
}

fn stopping() -> ApiError {
    ApiError::Unavailable("the instance stops, or the stream has lost its slot".to_owned())
}

fn reconnection_delay() -> Duration {
    Duration::from_millis(rand::rng().random_range(RECONNECT_MS))
}
