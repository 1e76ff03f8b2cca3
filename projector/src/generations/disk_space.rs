//! Check of the disk space that a new generation needs.
//!
//! Postgres does not report free space. If Postgres runs on this machine, the file system of its data directory is
//! checked. Otherwise only the estimated size is logged.

use anyhow::bail;
use rustix::fs::statvfs;
use store::db::generation_schema;
use store::ids::GenerationId;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

const ACTIVE: &str = "select generation from active";
const SCHEMA_BYTES: &str = include_str!("../../queries/schema_bytes.sql");
const DATA_DIRECTORY: &str = "select control.data_directory()";

/// Logs the estimated size of a new generation. Fails if less disk space is free. If the generation needs a new fact
/// set, `second_fact_set` is the current fact set.
pub(crate) async fn check_disk_space(
    client: &Client,
    config: &Config,
    second_fact_set: Option<&str>,
) -> anyhow::Result<()> {
    let active: GenerationId = client.query_one(ACTIVE, &[]).await?.try_get(0)?;
    let mut cost = load_schema_bytes(client, &generation_schema(active)).await?;
    if let Some(facts) = second_fact_set {
        cost += load_schema_bytes(client, facts).await?;
    }
    let needed_mb = cost.div_ceil(1_000_000);
    let directory: Option<String> = client.query_one(DATA_DIRECTORY, &[]).await?.try_get(0)?;
    let Some((directory, free)) = directory.filter(|_| is_local(config)).and_then(free_bytes_at) else {
        tracing::info!(needed_mb, "disk space of the new generation; free space is unknown");
        return Ok(());
    };
    let free_mb = free.div_ceil(1_000_000);
    if free < cost {
        bail!(
            "cannot build a generation: it needs about {needed_mb} MB, and {free_mb} MB are free at {directory}; remove an unused \
             generation (projector list, drop N), free space, or use --without-room"
        );
    }
    tracing::info!(needed_mb, free_mb, directory, "disk space of the new generation");
    Ok(())
}

/// Size of a schema's tables on disk including indexes, in bytes.
pub(crate) async fn load_schema_bytes(client: &Client, schema: &str) -> anyhow::Result<u64> {
    let bytes: i64 = client.query_one(SCHEMA_BYTES, &[&schema]).await?.try_get(0)?;
    Ok(bytes.unsigned_abs())
}

/// `true` if all server addresses are local.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
    })
}

/// Returns the folder and the free bytes of its file system that unprivileged processes may use. `None` if the folder
/// cannot be read.
fn free_bytes_at(folder: String) -> Option<(String, u64)> {
    let volume = statvfs(&folder).ok()?;
    Some((folder, volume.f_bavail.saturating_mul(volume.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_need_an_existing_folder() {
        let here = free_bytes_at(env!("CARGO_MANIFEST_DIR").to_owned()).expect("a volume");
        assert_eq!(here.0, env!("CARGO_MANIFEST_DIR"));
        assert!(here.1 > 0);
        assert_eq!(free_bytes_at("/no/such/folder".to_owned()), None);
    }
}
