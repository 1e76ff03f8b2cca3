//! Build script: lists the migrations for `schema.rs`, so that a new migration needs only a new file.
//!
//! Refinery has a macro that also lists migrations. It is not used, because it would lengthen the build: Cargo compiles
//! a macro's dependencies for the build host, and would thus compile refinery's core, regex and url a second time.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "Cargo tells a build script its output folder in no other way")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=migrations");
    // Cargo runs a build script in the folder of its package. The generated list names this folder by
    // `CARGO_MANIFEST_DIR`, so that a checkout can be moved.
    let mut files: Vec<PathBuf> = fs::read_dir("migrations")?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    let list: String = files
        .iter()
        .map(|file| {
            let name = file.file_stem().unwrap_or_default();
            format!("({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", {file:?}))),\n")
        })
        .collect();
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("migrations.rs"), format!("&[\n{list}]"))
}
