//! What a generation costs on Postgres's disk, and whether there is room for it.
//!
//! Postgres does not tell how much room it has. Its disk is looked at where it is this machine's; elsewhere a rebuild says
//! only what it takes.

use std::process::Command;

use anyhow::bail;
use store::db::generation_schema;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

const ACTIVE: &str = "select generation from active";
const SCHEMA_BYTES: &str = include_str!("../../queries/schema_bytes.sql");
const DATA_DIRECTORY: &str = "select control.data_directory()";

/// Says what a generation takes, and refuses to begin one that has no room. `folds` is
/// the fact set of which a second one is made.
pub(crate) async fn check_disk_space(
    client: &Client,
    config: &Config,
    second_fact_set: Option<&str>,
) -> anyhow::Result<()> {
    let active: i32 = client.query_one(ACTIVE, &[]).await?.try_get(0)?;
    let mut cost = load_schema_bytes(client, &generation_schema(active)).await?;
    if let Some(facts) = second_fact_set {
        cost += load_schema_bytes(client, facts).await?;
    }
    let needed_mb = megabytes(cost);
    let directory: Option<String> = client.query_one(DATA_DIRECTORY, &[]).await?.try_get(0)?;
    let Some((directory, free)) = directory.filter(|_| is_local(config)).and_then(free_bytes_at) else {
        tracing::info!(
            "the generation takes about {needed_mb} MB of Postgres's disk, which is not seen from here"
        );
        return Ok(());
    };
    let free_mb = megabytes(free);
    if free < cost {
        bail!(
            "the generation takes about {needed_mb} MB, and {free_mb} MB are free at {directory}: remove a generation that nobody \
             needs (projector list, drop N) or make room; --without-room builds it all the same"
        );
    }
    tracing::info!("the generation takes about {needed_mb} of the {free_mb} MB that are free at {directory}");
    Ok(())
}

/// What a schema's tables take, indexes included.
async fn load_schema_bytes(client: &Client, schema: &str) -> anyhow::Result<u64> {
    let bytes: i64 = client.query_one(SCHEMA_BYTES, &[&schema]).await?.try_get(0)?;
    Ok(bytes.unsigned_abs())
}

fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

/// Whether the server is on this machine, as far as its address tells.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
    })
}

/// The bytes that are free where a folder is; `None` where there is no such folder.
fn free_bytes_at(folder: String) -> Option<(String, u64)> {
    let output = Command::new("df")
        .args(["-Pk", "--", &folder])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let free = kilobytes_available(std::str::from_utf8(&output.stdout).ok()?)?;
    Some((folder, free * 1024))
}

/// The fourth column of the second line, as POSIX writes it.
fn kilobytes_available(output: &str) -> Option<u64> {
    output.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_kilobytes_are_read() {
        let output =
            "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 100 40 55 42% /var\n";
        assert_eq!(kilobytes_available(output), Some(55));
        assert_eq!(kilobytes_available("df: none"), None);
    }
}
