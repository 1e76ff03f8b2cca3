//! Lists the migrations for `db.rs`. A new migration therefore needs only a new file. Refinery's own macro does
//! the same, but compiles its core, regex and url a second time for the compiler's machine.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "Cargo tells a build script its output folder in no other way")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=migrations");
    // Cargo starts a build script in its package's folder. The list names the folder anew, so that a checkout can be moved.
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
