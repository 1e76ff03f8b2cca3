//! User that runs Postgres if the harness runs as root. Postgres refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerUser {
    uid: u32,
    gid: u32,
}

impl ServerUser {
    /// Finds the user `postgres`, or else an unprivileged user. Returns `None` if the harness does not run as root.
    pub(crate) fn find_if_root() -> Result<Option<ServerUser>> {
        if !is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
        let user = find(&passwd, "postgres").or_else(|| find(&passwd, "nobody"));
        Ok(Some(
            user.context("neither user postgres nor nobody exists, and Postgres refuses to run as root")?,
        ))
    }

    pub(crate) fn run_as(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    pub(crate) fn give_ownership(self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid)).with_context(|| format!("giving away {}", path.display()))
    }

    pub(crate) fn give_ownership_of_all(self, folder: &Path) -> Result<()> {
        self.give_ownership(folder)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.give_ownership_of_all(&entry.path())?;
            } else {
                self.give_ownership(&entry.path())?;
            }
        }
        Ok(())
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Fails if other users cannot enter `path` or one of the folders above it.
pub(crate) fn ensure_reachable(path: &Path) -> Result<()> {
    for folder in path.ancestors().filter(|folder| folder.is_dir()) {
        if fs::metadata(folder)?.mode() & 0o001 == 0 {
            bail!(
                "{} cannot be entered by the user Postgres runs as; choose a data folder outside {}",
                path.display(),
                folder.display()
            );
        }
    }
    Ok(())
}

fn find(passwd: &str, name: &str) -> Option<ServerUser> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(ServerUser { uid, gid })
}
