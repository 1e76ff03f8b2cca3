//! Lists the migrations for `db.rs`, so that a new file is all that a new migration takes. Refinery's own macro does
//! the same, but compiles its core, regex and url a second time for the compiler's machine.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "Cargo tells a build script its folder in no other way")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=migrations");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    files.sort();
    let list: String = files
        .iter()
        .map(|file| format!("({:?}, include_str!({file:?})),\n", file.file_stem().unwrap_or_default()))
        .collect();
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("migrations.rs"), format!("&[\n{list}]"))
}
