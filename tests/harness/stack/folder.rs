//! The stack's data folder.
//!
//! Invariants: a file lock permits only one running stack. Only the owner of the folder can read the secrets in it.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::report::program_name;
use super::revisions;
use crate::binaries::workspace;
use crate::environment;
use crate::folder;
use crate::server_user;

const LOCK: &str = "lock";
const ENVIRONMENT: &str = "environment.json";
const CURSOR_SECRET: &str = "cursor-secret";

/// Files and folders that `--fresh` deletes from the data folder. Other files remain, because the user may have chosen
/// a folder that contains other files.
const DATA: [&str; 10] = [
    "postgres",
    "nats",
    "demo",
    "demo.new",
    "logs",
    "keys.json",
    "contents.json",
    revisions::FILE,
    ENVIRONMENT,
    CURSOR_SECRET,
];

#[derive(Debug)]
pub(super) struct StackFolder {
    path: PathBuf,
    _lock: File,
}

impl StackFolder {
    pub(super) fn open(fresh: bool) -> Result<StackFolder> {
        let path = location()?;
        folder::create(&path)?;
        let lock = take_lock(&path)?;
        let opened = StackFolder { path, _lock: lock };
        opened.remove(if fresh { &DATA } else { &["logs", ENVIRONMENT] })?;
        folder::create(&opened.path.join("logs"))?;
        Ok(opened)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// Short hash of the folder's path, for the names of the database and the stream on existing servers.
    pub(super) fn identity(&self) -> String {
        short_hash(&self.path)
    }

    pub(super) fn remember_environment(&self, environment: &[(String, String)]) -> Result<()> {
        self.write_json(ENVIRONMENT, &environment)
    }

    /// Secret that signs pagination cursors. It is the same at every start, so that cursors stay valid.
    pub(super) fn cursor_secret(&self) -> Result<String> {
        let path = self.path.join(CURSOR_SECRET);
        if let Ok(secret) = fs::read_to_string(&path) {
            return Ok(secret);
        }
        let bytes: [u8; 32] = rand::random();
        let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        write_private(&path, secret.as_bytes())?;
        Ok(secret)
    }

    pub(super) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read_json(&self.path.join(name))
    }

    pub(super) fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<()> {
        write_private(&self.path.join(name), &serde_json::to_vec_pretty(value)?)
    }

    pub(super) fn remove(&self, names: &[&str]) -> Result<()> {
        for path in names.iter().map(|name| self.path.join(name)).filter(|path| path.exists()) {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("removing {}", path.display()))?;
        }
        Ok(())
    }
}

pub(super) fn environment_of_running_stack() -> Result<Vec<(String, String)>> {
    let path = location()?;
    let Ok(lock) = File::open(path.join(LOCK)) else {
        bail!("no stack runs here; start one with `{}`", program_name());
    };
    match lock.try_lock_shared() {
        Ok(()) => bail!("no stack runs here; start one with `{}`", program_name()),
        Err(TryLockError::Error(error)) => Err(error).context("asking for the stack's lock"),
        Err(TryLockError::WouldBlock) => read_json(&path.join(ENVIRONMENT))
            .context("the stack is still starting; wait for its line `ready:`"),
    }
}

/// Path of the data folder. Root does not use the workspace, which the user that runs Postgres may not be able to
/// enter.
fn location() -> Result<PathBuf> {
    match environment::read_variable("STACK_DIR") {
        Some(folder) => std::path::absolute(folder).context("STACK_DIR"),
        None if server_user::is_root() => {
            let name = format!("dividend-data-service-stack-{}", short_hash(workspace()));
            Ok(Path::new("/var/tmp").join(name))
        }
        None if workspace().is_dir() => Ok(workspace().join(".stack")),
        None => {
            let home = PathBuf::from(
                environment::read_variable("HOME").context("neither STACK_DIR nor HOME is set")?,
            );
            Ok(home.join(".local/state/dividend-data-service"))
        }
    }
}

fn take_lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let mut file = File::options().create(true).read(true).write(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())?;
            Ok(file)
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", path.display())),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            bail!(
                "a stack already runs on {} (process {holder}); stop it, or set STACK_DIR to another folder",
                folder.display()
            )
        }
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a file that only its owner can read. Readers never see an incomplete file.
fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let staging = path.with_extension("new");
    let mut file = File::options().create(true).write(true).truncate(true).mode(0o600).open(&staging)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&staging, path).with_context(|| format!("writing {}", path.display()))
}

fn short_hash(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
