//! Base backup: a copy of the files of a running database cluster. The file `backup_label` of the copy contains the
//! position in the write-ahead log from which recovery starts
//! (<https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP>).

use std::fs::{self, DirBuilder};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result};
use tokio_postgres::Client;

/// Folders whose contents are valid only for the running server. They are empty in a copy.
const EMPTY: [&str; 8] = [
    "pg_dynshmem",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_wal",
];
const LEFT_OUT: [&str; 2] = ["postmaster.pid", "postmaster.opts"];

/// Copies the database cluster in the folder `from` to the folder `to` while its server runs. Returns the text of
/// `backup_label`. The write-ahead log is not copied, because a replica fetches it from the server.
pub(super) async fn base_backup(client: &Client, from: &Path, to: &Path) -> Result<String> {
    client.execute("select pg_backup_start('replica', true)", &[]).await.context("starting a base backup")?;
    let (source, target) = (from.to_owned(), to.to_owned());
    let copied = tokio::task::spawn_blocking(move || copy_cluster(&source, &target)).await?;
    let stopped = client.query_one("select labelfile from pg_backup_stop(false)", &[]).await;
    copied.with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(stopped.context("ending the base backup")?.try_get(0)?)
}

fn copy_cluster(from: &Path, to: &Path) -> Result<(), Error> {
    copy_folder(from, to)?;
    for folder in EMPTY {
        fs::remove_dir_all(to.join(folder)).or_else(accept_missing)?;
        create_folder(&to.join(folder))?;
    }
    LEFT_OUT.iter().try_for_each(|file| fs::remove_file(to.join(file)).or_else(accept_missing))
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    create_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // The server may remove files during the copy. Recovery finds the removal in the write-ahead log.
        let copied = if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), &target).map(drop)
        };
        copied.or_else(accept_missing)?;
    }
    Ok(())
}

/// Creates a folder that only this user can enter. Postgres refuses a data folder that every user can enter.
fn create_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn accept_missing(error: Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
