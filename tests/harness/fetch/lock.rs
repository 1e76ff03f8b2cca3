//! File lock that at most one process has at a time. The kernel releases the lock when the process ends, even after a
//! crash.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::announce;

#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for the lock. If another process has the lock, prints a message before the wait. `object` is the name of
    /// the build in the message.
    pub(super) async fn acquire(path: PathBuf, object: &str) -> Result<FileLock> {
        let failure = format!("cannot lock {}", path.display());
        let file = File::options().create(true).write(true).truncate(false).open(&path);
        let file = file.with_context(|| failure.clone())?;
        match file.try_lock() {
            Ok(()) => return Ok(FileLock { _file: file }),
            Err(TryLockError::WouldBlock) => {
                announce(format_args!("waiting for another process that fetches {object}"));
            }
            Err(TryLockError::Error(error)) => return Err(error).context(failure),
        }
        let locked = move || file.lock().map(|()| FileLock { _file: file });
        tokio::task::spawn_blocking(locked).await?.context(failure)
    }
}
