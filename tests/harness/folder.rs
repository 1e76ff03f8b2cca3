//! Temporary folders of a test process, which only its user can change. They are removed after the end of the process,
//! even after `kill -9`.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

use crate::server_user;

/// Shell script that waits for the end of its input, and then removes the folder. The input ends when the harness
/// process dies. The removal is retried, because a server may still be writing its last file.
const JANITOR: &str = r#"cat >/dev/null; for try in 1 2 3 4 5; do rm -rf -- "$0" && exit; sleep 1; done"#;

/// New folder that is removed after the end of this process.
pub fn ephemeral(name: &str) -> Result<PathBuf> {
    static ROOT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let root = ROOT.get_or_init(|| ephemeral_root().map_err(|error| format!("{error:#}")));
    let root = root.as_ref().map_err(|told| anyhow!("making a temporary folder: {told}"))?;
    let folder = root.join(format!("{name}-{}", random_suffix()));
    create(&folder)?;
    Ok(folder)
}

/// Creates a folder, or checks that an existing folder belongs to this user. In a shared parent folder, another user
/// may have created it first.
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

/// Eight random lower-case hexadecimal digits.
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
    // The pipe stays open until the process ends. Its closing is the signal for the script.
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
