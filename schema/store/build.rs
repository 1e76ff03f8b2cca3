//! Build script: lists the migration files for `schema.rs`.
//!
//! Refinery's macro for this is not used, because Cargo would compile refinery's core, regex and url a second time.

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
