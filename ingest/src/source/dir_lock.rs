//! Folders that one process uses at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// Holds a lock file while the result lives; none when another process holds it. The kernel lets go of it however the
/// process ends.
pub(crate) fn hold(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
