//! Opening of regular files. A FIFO, a socket or a device is refused before it is read. Small text files, such as
//! manifests, have a maximum size.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Maximum size of a column map, a connector manifest or a list of symbols, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Treatment of a path whose last component is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    Refused,
}

/// Opens a regular file by its path.
pub(crate) fn open_regular_file(path: &Path, links: Links) -> io::Result<File> {
    let mut flags = read_flags();
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    require_regular(File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(describe_link)?))
}

/// Reads a small text file. Fails if it is larger than [`MAX_TEXT`] bytes or not a regular file.
pub(crate) fn read_small_text(path: &Path, links: Links) -> io::Result<String> {
    let (file, mut text) = (open_regular_file(path, links)?, String::new());
    if file.take(MAX_TEXT + 1).read_to_string(&mut text)? as u64 > MAX_TEXT {
        return Err(io::Error::other(format!("has more than {MAX_TEXT} bytes")));
    }
    Ok(text)
}

/// Flags for opening a file to read. With these flags, opening a FIFO or a device does not block.
pub(super) fn read_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Fails if the open file is not a regular file.
pub(super) fn require_regular(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(io::Error::other(describe_kind(kind))) }
}

/// Error for a file that could not be opened, for example because it is a link.
pub(super) fn describe_link(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP => io::Error::other(LINK),
        error => error.into(),
    }
}

/// Reason for refusing a link.
pub(crate) const LINK: &str = "is a link, which is not followed: name the file that it leads to, or copy it";

fn describe_kind(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "is a folder, not a file"
    } else if kind.is_fifo() {
        "is a FIFO, not a regular file: read a pipe with `ingest load -`"
    } else if kind.is_socket() {
        "is a socket, not a regular file"
    } else {
        "is a device, not a regular file"
    }
}
