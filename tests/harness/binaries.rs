//! Programs of the service. They are built at their first use, because `cargo test` does not build the binaries of
//! other packages.
//!
//! Invariant: an optimized caller builds optimized programs. Otherwise a benchmark would measure debug code.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::environment;
use crate::process::{command_bound_to_parent, output_showing_progress};

/// Program of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Loads files into the log.
    Ingest,
    /// Derives the read tables from the log.
    Projector,
    /// Serves the read tables.
    Api,
}

/// Paths of the built programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// Executable of [`Program::Ingest`].
    pub ingest: PathBuf,
    /// Executable of [`Program::Projector`].
    pub projector: PathBuf,
    /// Executable of [`Program::Api`].
    pub api: PathBuf,
}

/// JSON message of `cargo build`, with only the fields that lead to the path of an executable.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

impl Program {
    /// Name of the executable file.
    pub fn name(self) -> &'static str {
        match self {
            Program::Ingest => "ingest",
            Program::Projector => "projector",
            Program::Api => "api",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Binaries {
    /// Returns the programs in the folder `$SERVICE_PROGRAMS`, or builds them if the variable is unset. Later calls
    /// return the first successful result.
    pub async fn shared() -> Result<Arc<Binaries>> {
        static SHARED: OnceCell<Arc<Binaries>> = OnceCell::const_new();
        let find = async || match environment::read_variable("SERVICE_PROGRAMS") {
            Some(folder) => {
                let folder = PathBuf::from(folder);
                Binaries::inside(&folder)
                    .with_context(|| format!("not all programs are in SERVICE_PROGRAMS {}", folder.display()))
            }
            None => build().await,
        };
        SHARED.get_or_try_init(async || find().await.map(Arc::new)).await.cloned()
    }

    /// Returns the programs in the folder of the running executable. If one of them is missing there, returns the
    /// programs of [`Binaries::shared`].
    pub(crate) async fn beside_this_program() -> Result<Arc<Binaries>> {
        let this = std::env::current_exe().context("finding this program")?;
        match this.parent().and_then(Binaries::inside) {
            Some(found) => Ok(Arc::new(found)),
            None => Binaries::shared().await.with_context(|| {
                format!(
                    "{} has no ingest, projector and api beside it, and they cannot be built",
                    this.display()
                )
            }),
        }
    }

    fn inside(folder: &Path) -> Option<Binaries> {
        let path = |program: Program| Some(folder.join(program.name())).filter(|path| path.is_file());
        Some(Binaries {
            ingest: path(Program::Ingest)?,
            projector: path(Program::Projector)?,
            api: path(Program::Api)?,
        })
    }

    /// Path of a program's executable.
    pub fn path(&self, program: Program) -> &Path {
        match program {
            Program::Ingest => &self.ingest,
            Program::Projector => &self.projector,
            Program::Api => &self.api,
        }
    }
}

async fn build() -> Result<Binaries> {
    let built = output_showing_progress(build_command()).await.context("running cargo")?;
    if built.code != 0 {
        bail!("cargo could not build the service");
    }
    let messages: Vec<Message> =
        built.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(Binaries {
        ingest: executable(&messages, Program::Ingest)?,
        projector: executable(&messages, Program::Projector)?,
        api: executable(&messages, Program::Api)?,
    })
}

fn build_command() -> Command {
    let cargo = environment::read_variable("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = command_bound_to_parent(cargo, "TERM");
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    command.args([
        "build",
        "--workspace",
        "--bins",
        "--message-format=json-render-diagnostics",
        "--profile",
        profile,
    ]);
    // Cargo sets these variables for a running program. If the variables stayed, the new Cargo process would find
    // changed variables, run build scripts again and recompile their crates.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(set_by_cargo_run) {
            command.env_remove(name);
        }
    }
    command.current_dir(workspace());
    command
}

fn set_by_cargo_run(variable: &str) -> bool {
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_", "DEP_"];
    prefixes.iter().any(|prefix| variable.starts_with(prefix)) || variable == "LD_LIBRARY_PATH"
}

pub(crate) fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

fn executable(messages: &[Message], program: Program) -> Result<PathBuf> {
    let built = messages.iter().find(|message| {
        message.executable.is_some() && message.target.as_ref().is_some_and(|t| t.name == program.name())
    });
    built.and_then(|message| message.executable.clone()).with_context(|| format!("cargo built no {program}"))
}
