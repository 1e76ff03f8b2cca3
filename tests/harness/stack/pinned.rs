//! Download of the pinned Postgres and NATS in advance, for example before the machine is offline.

#![expect(clippy::print_stdout, reason = "a shell evaluates the output")]

use anyhow::Result;

use crate::{nats, postgres};

/// Downloads the pinned builds that the cache lacks. Prints the environment variables `PG_BIN` and `NATS_SERVER` with
/// the paths of the builds.
pub async fn print_pinned_servers() -> Result<()> {
    let reason = "`stack fetch`";
    let (postgres, nats) = tokio::try_join!(postgres::pinned(reason), nats::pinned(reason))?;
    println!("PG_BIN='{}'", postgres.display());
    println!("NATS_SERVER='{}'", nats.display());
    Ok(())
}
