//! Download of the pinned servers in advance, for a machine that will be offline, or that has other releases of the
//! servers.

#![expect(clippy::print_stdout, reason = "a shell evaluates the output")]

use anyhow::Result;

use crate::{nats, postgres};

/// Downloads the pinned builds that the cache lacks, and prints the variables that select them.
pub async fn print_pinned_servers() -> Result<()> {
    let reason = "`stack fetch`";
    let (postgres, nats) = tokio::try_join!(postgres::pinned(reason), nats::pinned(reason))?;
    println!("PG_BIN='{}'", postgres.display());
    println!("NATS_SERVER='{}'", nats.display());
    Ok(())
}
