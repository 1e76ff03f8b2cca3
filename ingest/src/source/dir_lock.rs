//! Lock file that gives one process exclusive use of a folder.

use std::fs::{File, TryLockError};
use std::io;

use crate::source::folder_handle::FolderHandle;

/// Locks the folder until the returned file is dropped; `None` if another process has the lock. The kernel releases the
/// lock at the end of the process, even after a kill.
pub(crate) fn try_lock(folder: &FolderHandle, name: &str) -> io::Result<Option<File>> {
    let file = folder.open_lock(name)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
