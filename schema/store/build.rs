//! Migrations are part of the program: a new one is a reason to build it again.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
