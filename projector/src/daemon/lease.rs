//! Who may write: one projector per fact set holds a lease; others stand by.
//!
//! Every take-over raises the epoch, and every transaction locks the row and compares it, so an instance that was
//! paused past its lease cannot write even when it does not know yet.

use std::time::Duration;

use event_log::sequence::Sequence;
use store::db::{self, DbError};
use tokio_postgres::{Client, Config, Transaction};
use tokio_util::sync::CancellationToken;

use crate::error::{LeaseLost, RunError};

const ACQUIRE: &str = include_str!("../../queries/lease_acquire.sql");
const RENEW: &str = include_str!("../../queries/lease_renew.sql");
const RELEASE: &str = include_str!("../../queries/lease_release.sql");
const CONFIRM: &str = include_str!("../../queries/lease_confirm.sql");

/// A held lease.
#[derive(Debug, Clone)]
pub struct Lease {
    /// The facts that the holder may write.
    pub fact_set: String,
    /// Count of take-overs; whoever has an older one than the fact set no longer writes.
    pub epoch: i64,
    /// Sequence up to which the log was applied when the lease was taken.
    pub checkpoint: Sequence,
    /// Id of the message there; `None` when it is not known.
    pub message: Option<String>,
    /// Identity of the stream the fact set was folded from; `None` before the first message.
    pub genesis_id: Option<String>,
}

/// Tries to take the lease; `None` while another instance holds it.
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

/// Locks the fact set for the transaction; [`RunError::Lost`] when the epoch is no longer the lease's.
pub async fn confirm_epoch(transaction: &Transaction<'_>, lease: &Lease) -> Result<(), RunError> {
    let row = transaction.query_one(CONFIRM, &[&lease.fact_set]).await?;
    let epoch: i64 = row.try_get(0)?;
    if epoch != lease.epoch {
        return Err(LeaseLost { fact_set: lease.fact_set.clone() }.into());
    }
    Ok(())
}

/// Gives the lease back, so that a stand-by need not wait for its end.
pub async fn release_lease(client: &Client, lease: &Lease) -> Result<(), DbError> {
    client.execute(RELEASE, &[&lease.fact_set, &lease.epoch]).await?;
    Ok(())
}

/// Renews the lease on its own connection until `stop`; cancels `lost` when it is gone.
pub async fn renew_lease(
    config: Config,
    lease: Lease,
    length: Duration,
    stop: CancellationToken,
    lost: CancellationToken,
) {
    let mut client: Option<Client> = None;
    let mut renewed = tokio::time::Instant::now();
    loop {
        tokio::select! { () = stop.cancelled() => return, () = tokio::time::sleep(length / 3) => {} }
        if client.as_ref().is_none_or(Client::is_closed) {
            client = db::connect(&config).await.ok();
        }
        let Some(open) = &client else { continue };
        match open.execute(RENEW, &[&lease.fact_set, &lease.epoch, &length.as_secs_f64()]).await {
            Ok(1) => renewed = tokio::time::Instant::now(),
            Ok(_) => {
                tracing::warn!(fact_set = lease.fact_set, "the lease is lost: another projector took over");
                return lost.cancel();
            }
            Err(error) => {
                tracing::warn!(error = %db::error_chain(&error), since = ?renewed.elapsed(), "the lease could not be renewed")
            }
        }
    }
}
