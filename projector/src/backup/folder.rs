//! Layout of a backup folder. Only the owner can read its files.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::BackupError;

pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join("log.export")
}

/// Path of the file with the rows of a table. `name` is the name of the table, qualified by its schema.
pub(super) fn table_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.copy", name.replace('"', "")))
}

/// Creates the folder. Fails if it is a link, or if it exists and is not empty.
pub(super) fn create_folder(folder: &Path) -> Result<(), BackupError> {
    let refuse = |reason: &str| {
        let folder = folder.display();
        Err(BackupError::Refused(format!("cannot create {folder}: {reason}; name a new folder")))
    };
    if fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink()) {
        return refuse("it is a link");
    }
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return refuse("the folder is not empty");
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| BackupError::File { path: folder.to_owned(), source })
}

/// Creates a file that only its owner can read.
pub(super) fn create_file(path: &Path) -> Result<File, BackupError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|source| BackupError::File { path: path.to_owned(), source })
}

/// BLAKE3 digest of a file, in hexadecimal.
pub(super) fn digest_file(path: &Path) -> Result<String, BackupError> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(path).and_then(|file| hasher.update_reader(file).map(drop));
    read.map_err(|source| BackupError::File { path: path.to_owned(), source })?;
    Ok(hasher.finalize().to_hex().to_string())
}
