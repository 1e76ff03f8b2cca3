//! Open change streams (server-sent events) of one API instance. Each stream uses one slot of its account: a row in
//! Postgres with a lease. All instances share the slots.
//!
//! Invariant: a stream ends before the lease of its slot ends. If the lease is not renewed, another stream may then take
//! the slot.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::admission_queue::AdmissionQueue;
use super::admission_store::{LEASE, StreamSlot};
use super::decision::AdmissionError;
use crate::auth::credential::PresentedKey;
use crate::auth::{AccountId, Tier};

/// Interval between two renewals of the leases. A renewal also checks the keys and tiers of open streams.
const RENEWAL: Duration = Duration::from_secs(1);
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of open streams of an account, by tier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits(pub(crate) [usize; 4]);

/// Reason for a refused stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamRefusal {
    #[error("the account has {0} open streams, the limit of its tier")]
    TooMany(usize),
    #[error("cannot count the open streams of the account")]
    Undecided(#[source] AdmissionError),
}

/// Reason why a renewal ended an open stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The key is no longer valid.
    InvalidKey,
    /// The account now has this tier, which does not include the stream.
    NotInPlan(Tier),
    /// The account now has a tier with this lower limit of open streams.
    TooMany(usize),
}

/// Open streams of an instance.
#[derive(Debug)]
pub(crate) struct OpenStreams {
    limits: StreamLimits,
    admission: AdmissionQueue,
    state: Mutex<OpenState>,
    /// Cancelled when the instance stops.
    stopping: CancellationToken,
}

#[derive(Debug, Default)]
struct OpenState {
    slots: HashMap<StreamSlot, OpenStream>,
    /// Number of streams opened since the start of the instance.
    opened: u64,
}

#[derive(Debug)]
struct OpenStream {
    /// Sequence number of the stream on this instance, from 1.
    number: u64,
    key: PresentedKey,
    /// Lowest tier that includes the stream.
    required_tier: Tier,
    ended: CancellationToken,
    /// Reason for the end of the stream; `None` while it may stay open.
    checked: watch::Sender<Option<StreamEnd>>,
}

/// Permit for one open stream. Dropping it allows the account to open another stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<OpenStreams>,
    slot: StreamSlot,
    number: u64,
    /// Cancelled when the instance stops, or loses the lease of the stream's [`StreamSlot`].
    pub(crate) ended: CancellationToken,
    /// Reason for the end of the stream; `None` while it may stay open.
    pub(crate) checked: watch::Receiver<Option<StreamEnd>>,
}

impl OpenStreams {
    pub(crate) fn new(limits: StreamLimits, admission: AdmissionQueue) -> Arc<Self> {
        Arc::new(Self { limits, admission, state: Mutex::default(), stopping: CancellationToken::new() })
    }

    /// Opens a stream of an account. `required_tier` is the lowest tier that includes the stream.
    ///
    /// # Errors
    /// [`StreamRefusal::TooMany`] if the account already has as many open streams as its tier permits.
    /// [`StreamRefusal::Undecided`] if the database did not decide in time.
    pub(crate) async fn open(
        self: &Arc<Self>,
        account: AccountId,
        tier: Tier,
        key: PresentedKey,
        required_tier: Tier,
    ) -> Result<StreamPermit, StreamRefusal> {
        let limit = self.limits.of(tier);
        let slot = self.admission.take_slot(account, limit).await;
        let slot = slot.map_err(StreamRefusal::Undecided)?.ok_or(StreamRefusal::TooMany(limit))?;
        let (ended, (sender, checked)) = (self.stopping.child_token(), watch::channel(None));
        let mut state = self.state.lock();
        state.opened += 1;
        let number = state.opened;
        let stream = OpenStream { number, key, required_tier, ended: ended.clone(), checked: sender };
        if let Some(lost) = state.slots.insert(slot, stream) {
            lost.ended.cancel();
        }
        Ok(StreamPermit { streams: Arc::clone(self), slot, number, ended, checked })
    }

    /// Number of open streams of the instance.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().slots.len()
    }

    /// Ends all streams, because the instance stops.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Renews the leases of open streams until the process ends. A stream ends if its lease was lost or cannot be
    /// renewed in time, if its key is invalid, if the tier does not include it any more, or if its slot is above the
    /// limit of the tier.
    pub(crate) async fn renew_leases(self: Arc<Self>) {
        let mut renewed_at = Instant::now();
        loop {
            sleep(RENEWAL).await;
            let sent = Instant::now();
            let (slots, newest) = {
                let state = self.state.lock();
                (state.slots.iter().map(|(slot, open)| (*slot, open.key)).collect::<Vec<_>>(), state.opened)
            };
            if slots.is_empty() {
                renewed_at = sent;
                continue;
            }
            let renewing = timeout(RENEWAL_TIMEOUT, self.admission.renew_slots(slots));
            match renewing.await.unwrap_or(Err(AdmissionError::Timeout)) {
                Ok(tiers) => {
                    renewed_at = sent;
                    self.end_refused(&tiers, newest);
                }
                // The leases may end before the next renewal is finished, so the streams end now.
                Err(_) if renewed_at.elapsed() + RENEWAL + RENEWAL_TIMEOUT >= LEASE => {
                    self.end_refused(&HashMap::new(), newest);
                }
                // An invalid key gets no further changes, because admission decides again before each batch of
                // changes.
                Err(_) => {}
            }
        }
    }

    /// Ends the streams whose slot was not renewed, or whose key or tier does not permit them any more. `tiers` has the
    /// renewed slots. Streams with a number above `newest` stay open: they were opened after the renewal began.
    fn end_refused(&self, tiers: &HashMap<StreamSlot, Option<Tier>>, newest: u64) {
        let state = self.state.lock();
        for (slot, open) in state.slots.iter().filter(|(_, open)| open.number <= newest) {
            match tiers.get(slot) {
                None => open.ended.cancel(),
                Some(tier) => {
                    if let Some(end) = self.limits.find_end(*slot, open.required_tier, *tier) {
                        open.checked.send_replace(Some(end));
                    }
                }
            }
        }
    }
}

impl StreamLimits {
    fn of(&self, tier: Tier) -> usize {
        self.0[tier as usize]
    }

    /// Reason to end a stream; `None` if it may stay open. `tier` is the current tier of the account; `None` if the key
    /// is invalid.
    fn find_end(&self, slot: StreamSlot, required_tier: Tier, tier: Option<Tier>) -> Option<StreamEnd> {
        let Some(tier) = tier else { return Some(StreamEnd::InvalidKey) };
        if tier < required_tier {
            return Some(StreamEnd::NotInPlan(tier));
        }
        let limit = self.of(tier);
        let is_within = usize::try_from(slot.number).is_ok_and(|number| number <= limit);
        (!is_within).then_some(StreamEnd::TooMany(limit))
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut state = self.streams.state.lock();
        if state.slots.get(&self.slot).is_some_and(|open| open.number == self.number) {
            state.slots.remove(&self.slot);
            self.streams.admission.free_slot(self.slot);
        }
    }
}
