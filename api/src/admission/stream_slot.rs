//! Slots of open streams: rows in Postgres that all instances share. An account has one slot per permitted stream.
//!
//! Invariant: if the lease is not renewed, another stream may take the slot after [`LEASE`].

use std::time::Duration;

use crate::admission::admission_store::AdmissionStore;
use crate::admission::decision::AdmissionError;
use crate::auth::ids::AccountId;

const OPEN: &str = include_str!("../../queries/access/open_stream.sql");
const RENEW: &str = include_str!("../../queries/access/renew_streams.sql");
const CLOSE: &str = include_str!("../../queries/access/close_stream.sql");
/// Length of a lease.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// Maximum number of attempts to take a slot. An attempt fails if another instance takes the same free slot first.
const ATTEMPTS: usize = 10;

/// Random id of a running instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstanceId(pub(super) i64);

/// Slot of an open stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StreamSlot {
    pub(crate) account: AccountId,
    /// Number of the slot, from 1 to the plan's limit of open streams.
    pub(crate) number: i32,
}

impl AdmissionStore {
    /// Takes a slot of an account that has at most `limit` slots; `None` if all are in use.
    pub(super) async fn take_slot(
        &self,
        instance: InstanceId,
        account: AccountId,
        limit: usize,
    ) -> Result<Option<StreamSlot>, AdmissionError> {
        // No instance has 2^31 streams, so a larger limit limits nothing.
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        for _ in 0..ATTEMPTS {
            let lease = LEASE.as_secs_f64();
            let row = self.client.query_one(OPEN, &[&account, &instance.0, &limit, &lease]).await?;
            if let Some(number) = row.try_get("slot")? {
                return Ok(Some(StreamSlot { account, number }));
            }
            if !row.try_get::<_, bool>("was_free")? {
                return Ok(None);
            }
        }
        Err(AdmissionError::Contended)
    }

    /// Renews the leases of slots that this instance has. Returns the renewed slots.
    pub(super) async fn renew_slots(
        &self,
        instance: InstanceId,
        slots: &[StreamSlot],
    ) -> Result<Vec<StreamSlot>, AdmissionError> {
        let (accounts, numbers): (Vec<AccountId>, Vec<i32>) =
            slots.iter().map(|slot| (slot.account, slot.number)).unzip();
        let lease = LEASE.as_secs_f64();
        let rows = self.client.query(RENEW, &[&instance.0, &accounts, &numbers, &lease]).await?;
        let slot = |row: &tokio_postgres::Row| {
            Ok(StreamSlot { account: row.try_get("account_id")?, number: row.try_get("slot")? })
        };
        rows.iter().map(slot).collect()
    }

    pub(super) async fn free_slot(
        &self,
        instance: InstanceId,
        slot: StreamSlot,
    ) -> Result<(), AdmissionError> {
        self.client.execute(CLOSE, &[&slot.account, &slot.number, &instance.0]).await?;
        Ok(())
    }
}
