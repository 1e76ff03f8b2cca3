//! Lock file that gives one process exclusive use of a folder.

use std::fs::{File, TryLockError};
use std::io;

use crate::source::folder_handle::FolderHandle;

/// Takes the lock for the lifetime of the result; `None` if another process has it. The kernel releases the lock at
/// the end of the process, also after a kill.
pub(crate) fn try_lock(folder: &FolderHandle, name: &str) -> io::Result<Option<File>> {
    let file = folder.open_lock(name)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
