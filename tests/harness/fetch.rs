//! Pinned, checksummed server builds, fetched into the user's cache when the machine has none.
//!
//! Invariants: nothing is unpacked whose SHA-256 is not the one pinned in the source; a build appears in the
//! cache whole or not at all; what is fetched and why is said on standard error.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::environment;
use crate::folder::random_suffix;
use crate::server_user;

/// One file of a public registry.
pub(crate) struct Artifact {
    pub(crate) file: &'static str,
    pub(crate) url: &'static str,
    pub(crate) sha256: &'static str,
}

impl Artifact {
    /// Downloads into `folder`: by the registry's own clients first, since they know the machine's mirrors and
    /// proxies, then over HTTPS.
    pub(crate) fn download(&self, folder: &Path, clients: &[Vec<String>]) -> Result<PathBuf> {
        let target = folder.join(self.file);
        let https = https_clients(self.url, &target);
        let mut told = Vec::new();
        for client in clients.iter().chain(&https) {
            match run(client, folder) {
                Ok(()) if target.is_file() => return self.verified(target),
                Ok(()) => told.push(format!("{}: did not bring {}", client[0], self.file)),
                Err(error) => told.push(format!("{error:#}")),
            }
        }
        if server_user::is_root()
            && apt_install("curl is needed for a download", &["curl", "ca-certificates"]).is_ok()
        {
            run(&https[0], folder)?;
            return self.verified(target);
        }
        bail!("could not download {}:\n  {}", self.url, told.join("\n  "))
    }

    fn verified(&self, file: PathBuf) -> Result<PathBuf> {
        let found = sha256(&file)?;
        if found != self.sha256 {
            bail!("{} has SHA-256 {found}, but {} is pinned; it is not used", self.file, self.sha256);
        }
        Ok(file)
    }
}

/// The cache: `$XDG_CACHE_HOME` or `~/.cache`. What another user has to execute goes to /var/cache when we are
/// root, because root's home is closed to others.
pub(crate) fn cache(for_server_user: bool) -> Result<PathBuf> {
    let root = match environment::given("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None if for_server_user && server_user::is_root() => PathBuf::from("/var/cache"),
        None => PathBuf::from(environment::given("HOME").context("HOME is not set")?).join(".cache"),
    };
    let folder = root.join("dividend-data-service");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

/// Fills `target` in the cache through a temporary folder beside it, which is renamed when `fill` succeeded.
pub(crate) fn install(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let staging = target.with_extension(format!("new-{}", random_suffix()));
    fs::create_dir_all(&staging)?;
    let filled = fill(&staging);
    if filled.is_ok() && !target.exists() {
        // A second process may have been quicker; then its copy is as good.
        let _ = fs::rename(&staging, target);
    }
    let _ = fs::remove_dir_all(&staging);
    filled
}

/// Installs Debian packages, as root.
pub(crate) fn apt_install(why: &str, packages: &[&str]) -> Result<()> {
    announce(format_args!("{why}: installing {} by apt-get", packages.join(" ")));
    run(&words("apt-get update --quiet=2"), Path::new("/"))?;
    let mut install = words("apt-get install --quiet=2 --yes --no-install-recommends");
    install.extend(packages.iter().map(|package| (*package).to_owned()));
    run(&install, Path::new("/"))
}

/// Says what is fetched and why, also where standard error is captured, as in tests.
pub(crate) fn announce(what: fmt::Arguments<'_>) {
    // A closed standard error is no reason to stop.
    let _ = writeln!(io::stderr(), "{what}");
}

pub(crate) fn sha256(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs a client in `folder`; its output is shown only when it fails.
pub(crate) fn run(client: &[String], folder: &Path) -> Result<()> {
    let output = Command::new(&client[0])
        .args(&client[1..])
        .current_dir(folder)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .with_context(|| client[0].clone())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.trim().lines().rev().take(3).collect();
        bail!("{}: {}: {}", client[0], output.status, last.join(" / "));
    }
    Ok(())
}

fn https_clients(url: &str, target: &Path) -> Vec<Vec<String>> {
    let target = target.display().to_string();
    let python = "import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])";
    let all = [
        vec![
            "curl",
            "--fail",
            "--silent",
            "--show-error",
            "--location",
            "--retry",
            "3",
            "--output",
            &target,
            url,
        ],
        vec!["wget", "--quiet", "--output-document", &target, url],
        vec!["python3", "-c", python, url, &target],
    ];
    all.into_iter().map(|client| client.into_iter().map(str::to_owned).collect()).collect()
}
