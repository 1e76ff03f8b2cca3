//! Pinned server builds from public registries, installed into the user's cache.
//!
//! Invariants: an archive is unpacked only if its SHA-256 is the pinned one; a build appears in the cache whole or not
//! at all; runs that need the same build at once download it once.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use indicatif::{HumanBytes, MultiProgress};
use sha2::{Digest, Sha256};

use crate::environment;
use crate::server_user;
use lock::FileLock;

mod download;
mod lock;
mod unpack;

pub use download::{Archive, Source};
pub use unpack::{unpack_tar_gz, unpack_zip_member};

/// Characters of a checksum that messages show.
const SHOWN_DIGITS: usize = 16;

/// Server build that the cache can have.
#[derive(Debug, Clone)]
pub struct Build {
    /// Server, as messages name it.
    pub name: &'static str,
    /// Version of the package.
    pub version: String,
    /// Folder inside the cache.
    pub folder: String,
    /// Archive to unpack.
    pub archive: Archive,
    /// Unpacks an archive into an empty folder.
    pub unpack: fn(&Path, &Path) -> Result<()>,
    /// Check of an installed folder; one that fails it is installed anew.
    pub is_intact: fn(&Path) -> bool,
    /// Ways around the download, for the end of an error message.
    pub alternative: &'static str,
}

/// The cache: `$XDG_CACHE_HOME` or `~/.cache`. Root's goes to /var/cache where another user has to execute the build,
/// because root's home is closed to other users.
pub(crate) fn cache(for_server_user: bool) -> Result<PathBuf> {
    let root = match environment::read_variable("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None if for_server_user && server_user::is_root() => PathBuf::from("/var/cache"),
        None => PathBuf::from(environment::read_variable("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(root.join("dividend-data-service"))
}

/// Installs a build into `cache` unless it is there. Returns its folder.
pub async fn install(build: &Build, reason: &str, cache: &Path) -> Result<PathBuf> {
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let folder = cache.join(&build.folder);
    if (build.is_intact)(&folder) {
        return Ok(folder);
    }
    let lock = cache.join(format!("{}.lock", build.folder));
    let _lock = FileLock::acquire(lock, &format!("{} {}", build.name, build.version)).await?;
    if (build.is_intact)(&folder) {
        return Ok(folder);
    }
    announce_download(build, reason, &folder);
    install_locked(build, cache, &folder).await.map_err(|error| {
        anyhow!(
            "cannot fetch {} {}: {error:#}\n  hint: {}, or bring {} into {}",
            build.name,
            build.version,
            build.alternative,
            build.archive.file,
            cache.display()
        )
    })?;
    Ok(folder)
}

async fn install_locked(build: &Build, cache: &Path, folder: &Path) -> Result<()> {
    let started = Instant::now();
    let archive = download::download(&build.archive, cache).await?;
    let staging = cache.join(format!("{}.new", build.folder));
    let unpack = build.unpack;
    let (from, to) = (archive.clone(), staging.clone());
    tokio::task::spawn_blocking(move || {
        // An interrupted run leaves a part of the folder.
        let _ = fs::remove_dir_all(&to);
        fs::create_dir_all(&to)?;
        unpack(&from, &to).with_context(|| format!("cannot unpack {}", from.display()))
    })
    .await??;
    ensure!((build.is_intact)(&staging), "{} does not contain the pinned program", build.archive.file);
    let _ = fs::remove_dir_all(folder);
    fs::rename(&staging, folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))?;
    announce(format_args!(
        "fetched {} {} in {:.1} s; its SHA-256 is the pinned one",
        build.name,
        build.version,
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn announce_download(build: &Build, reason: &str, folder: &Path) {
    let digits = build.archive.sha256.get(..SHOWN_DIGITS).unwrap_or(&build.archive.sha256);
    announce(format_args!(
        "{reason}: fetching {} {} ({}, SHA-256 {digits}…) from {} into {}",
        build.name,
        build.version,
        HumanBytes(build.archive.size_bytes),
        build.archive.host(),
        folder.display()
    ));
}

/// Prints a line on standard error above the progress bars, also in a test whose output is captured.
pub(crate) fn announce(line: fmt::Arguments<'_>) {
    bars().suspend(|| {
        // A closed standard error is no reason to stop.
        let _ = writeln!(io::stderr(), "{line}");
    });
}

/// Progress bars of the downloads, on standard error where it is a terminal.
fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

/// SHA-256 of a file, in lower-case hexadecimal digits.
pub(crate) fn sha256(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
