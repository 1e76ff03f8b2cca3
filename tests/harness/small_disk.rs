//! File system of a few megabytes, for tests of a full disk.
//!
//! Invariant: the file system is unmounted on drop. It is also unmounted when the process that mounted it dies, even
//! after `kill -9`.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use skipped::Requirement;

use crate::folder;

/// Shell script that unmounts the file system at the end of its input. The input ends when the `SmallDisk` is dropped
/// or the harness dies. With `--lazy`, open files do not prevent the unmount.
const KEEPER: &str = r#"cat >/dev/null; umount --lazy -- "$0""#;
const BLOCK: usize = 64 << 10;

/// Small file system in memory.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
    keeper: Child,
}

impl SmallDisk {
    /// Mounts an empty file system of this size. Returns `None` and records the test as skipped if the file system
    /// cannot be mounted.
    pub fn mount(megabytes: u32) -> Result<Option<SmallDisk>> {
        let path = folder::ephemeral("disk")?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=0711"), "tmpfs"]).arg(&path);
        let mounted = mount.output().context("running mount")?;
        if !mounted.status.success() {
            skipped::record(Requirement::SmallFileSystem, &String::from_utf8_lossy(&mounted.stderr));
            return Ok(None);
        }
        let keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .arg(&path)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("starting the shell that unmounts the small disk")?;
        Ok(Some(SmallDisk { path, keeper }))
    }

    /// Folder on which the disk is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the disk until only `free` bytes are free.
    pub fn fill_except(&self, free: u64) -> Result<()> {
        let mut ballast = File::create(self.ballast())?;
        let mut length = 0;
        loop {
            match ballast.write(&[0; BLOCK]) {
                Ok(written) => length += written as u64,
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error).context("filling the small disk"),
            }
        }
        Ok(ballast.set_len(length.saturating_sub(free))?)
    }

    /// Deletes the file with which [`SmallDisk::fill_except`] filled the disk.
    pub fn make_room(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
