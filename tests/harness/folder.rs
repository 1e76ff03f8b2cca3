//! Temporary folders of a test process. Only the user of the process can change the folders. They are removed after the
//! process ends, even after `kill -9`.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

use crate::server_user;

/// Shell script that waits for the end of its standard input, and then removes the folder. The input ends when the
/// harness process dies. The removal is retried, because a server may still be writing its last file.
const JANITOR: &str = r#"cat >/dev/null; for try in 1 2 3 4 5; do rm -rf -- "$0" && exit; sleep 1; done"#;

/// Creates a folder whose name begins with `name`. The folder is removed after this process ends.
pub fn ephemeral(name: &str) -> Result<PathBuf> {
    static ROOT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let root = ROOT.get_or_init(|| ephemeral_root().map_err(|error| format!("{error:#}")));
    let root = root.as_ref().map_err(|told| anyhow!("making a temporary folder: {told}"))?;
    let folder = root.join(format!("{name}-{}", random_suffix()));
    create(&folder)?;
    Ok(folder)
}

/// Creates a folder. Fails if the folder already exists and belongs to another user. This can happen in a shared parent
/// folder such as `/tmp`.
pub(crate) fn create(folder: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(if server_user::is_root() { 0o711 } else { 0o700 })
        .create(folder)
        .with_context(|| format!("creating {}", folder.display()))?;
    if fs::symlink_metadata(folder)?.uid() != rustix::process::geteuid().as_raw() {
        bail!("{} belongs to another user", folder.display());
    }
    Ok(())
}

pub(crate) fn random_suffix() -> String {
    format!("{:08x}", rand::random::<u32>())
}

fn ephemeral_root() -> Result<PathBuf> {
    let root = temporary_root().join(format!("dividend-data-service-{}", random_suffix()));
    create(&root)?;
    let mut janitor = Command::new("sh")
        .args(["-c", JANITOR])
        .arg(&root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("starting the shell that removes the temporary folder")?;
    // The pipe stays open until the process ends. The script then reads the end of its input.
    std::mem::forget(janitor.stdin.take());
    Ok(root)
}

fn temporary_root() -> PathBuf {
    let usual = std::env::temp_dir();
    if server_user::is_root() && server_user::ensure_reachable(&usual).is_err() {
        return PathBuf::from("/var/tmp");
    }
    usual
}
