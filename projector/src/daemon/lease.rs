//! Writer lease: one projector per fact set writes, and all other projectors are on standby.
//!
//! Every acquisition raises the epoch of the fact set, and every transaction checks the epoch. A process that has lost
//! its lease therefore cannot write.

use std::time::Duration;

use event_log::sequence::Sequence;
use store::db::{self, DbError};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Transaction};
use tokio_util::sync::CancellationToken;

use crate::error::RunError;

const ACQUIRE: &str = include_str!("../../queries/lease_acquire.sql");
const RENEW: &str = include_str!("../../queries/lease_renew.sql");
const RELEASE: &str = include_str!("../../queries/lease_release.sql");
const CONFIRM: &str = include_str!("../../queries/lease_confirm.sql");

/// Lease on a fact set.
#[derive(Debug, Clone)]
pub struct Lease {
    /// Fact set that the holder may write.
    pub fact_set: String,
    /// Epoch of the lease. Every acquisition raises the epoch of the fact set. A holder with an older epoch cannot
    /// write.
    pub epoch: i64,
    /// Sequence of the last message that was applied before the acquisition.
    pub checkpoint: Sequence,
    /// Id of the log message at the checkpoint; `None` if unknown.
    pub message: Option<String>,
    /// Identity of the stream from which the fact set was built; `None` before the first message.
    pub genesis_id: Option<String>,
}

/// Acquires the lease. Returns `None` if another instance has it.
pub async fn acquire_lease(
    client: &Client,
    fact_set: &str,
    holder: &str,
    length: Duration,
) -> Result<Option<Lease>, RunError> {
    let row = client.query_opt(ACQUIRE, &[&fact_set, &holder, &length.as_secs_f64()]).await?;
    row.map(|row| {
        Ok(Lease {
            fact_set: fact_set.to_owned(),
            epoch: row.try_get("epoch")?,
            checkpoint: Sequence::try_from(row.try_get::<_, i64>("checkpoint")?)?,
            message: row.try_get("checkpoint_message")?,
            genesis_id: row.try_get("genesis_id")?,
        })
    })
    .transpose()
}

/// Locks the fact set for the transaction. Fails with [`RunError::Lost`] if the epoch has changed.
pub async fn confirm_epoch(transaction: &Transaction<'_>, lease: &Lease) -> Result<(), RunError> {
    let row = transaction.query_one(CONFIRM, &[&lease.fact_set]).await?;
    let epoch: i64 = row.try_get(0)?;
    if epoch != lease.epoch {
        return Err(RunError::Lost { fact_set: lease.fact_set.clone() });
    }
    Ok(())
}

/// Renews the lease in a transaction that has locked the fact set, so that the lease is valid when the transaction ends.
pub async fn extend_lease(
    transaction: &Transaction<'_>,
    lease: &Lease,
    length: Duration,
) -> Result<(), DbError> {
    transaction.execute(RENEW, &[&lease.fact_set, &lease.epoch, &length.as_secs_f64()]).await?;
    Ok(())
}

/// Releases the lease. If `ends` is false, the process continues, and `projector status` still shows its name.
pub async fn release_lease(client: &Client, lease: &Lease, ends: bool) -> Result<(), DbError> {
    client.execute(RELEASE, &[&lease.fact_set, &lease.epoch, &ends]).await?;
    Ok(())
}

/// Renews the lease on a separate connection until `stop` is cancelled. Cancels `lost` if another projector has taken
/// the lease.
pub async fn renew_lease(
    mut config: Config,
    lease: Lease,
    length: Duration,
    stop: CancellationToken,
    lost: CancellationToken,
) {
    // With a shorter timeout, a wait for a lock differs from a server that does not reply.
    db::add_session_options(&mut config, &format!("-c lock_timeout={}ms", length.as_millis() / 2));
    let mut client: Option<Client> = None;
    let mut renewed = tokio::time::Instant::now();
    let mut pause = length / 3;
    loop {
        tokio::select! { () = stop.cancelled() => return, () = tokio::time::sleep(pause) => {} }
        pause = length / 3;
        if client.as_ref().is_none_or(Client::is_closed) {
            client = db::connect(&config).await.ok();
        }
        let Some(open) = &client else { continue };
        let (set, epoch, seconds) = (&lease.fact_set, &lease.epoch, length.as_secs_f64());
        let Ok(updated) = tokio::time::timeout(length, open.execute(RENEW, &[set, epoch, &seconds])).await
        else {
            // A frozen server never replies, so the renewal has a timeout.
            tracing::warn!(since = ?renewed.elapsed(), "cannot renew the lease: Postgres does not answer");
            client = None;
            continue;
        };
        match updated {
            Ok(1) => renewed = tokio::time::Instant::now(),
            Ok(_) => {
                tracing::warn!(fact_set = lease.fact_set, "lease lost; another projector acquired it");
                return lost.cancel();
            }
            // A transaction has locked the fact set, for example a derivation of this process. Without a pause, the next
            // renewal is first in the queue when the transaction ends.
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => pause = Duration::ZERO,
            Err(error) => {
                tracing::warn!(error = %db::error_chain(&error), since = ?renewed.elapsed(), "cannot renew the lease")
            }
        }
    }
}
