//! Harness of the tests and of `cargo stack`: a private Postgres and NATS, and the service's programs.
//!
//! Invariants: servers that the harness starts listen only on 127.0.0.1. No process outlives the harness process that
//! started it. No two tests use the same database, stream or subject.

mod api;
mod app;
mod binaries;
mod browser;
mod certificate;
pub mod cli;
mod endpoints;
mod environment;
mod eventually;
mod feed;
pub mod fetch;
mod folder;
mod market;
mod nats;
mod older_dates;
mod port;
mod postgres;
mod process;
mod relay;
mod release;
mod root_certificates;
mod server_user;
mod servers;
mod small_disk;
pub mod stack;
mod stack_process;
mod system_calls;

pub use api::{Api, Reply, client, client_builder};
pub use app::{TestApp, TestAppBuilder};
pub use binaries::{Binaries, Program};
pub use browser::{Browser, BrowserOptions, Screen, accessibility_rules};
pub use certificate::Certificate;
pub use endpoints::Endpoints;
pub use environment::{folder_variable, number_variable, optional_program};
pub use eventually::{eventually, eventually_every};
pub use feed::Feed;
pub use folder::ephemeral as temporary_folder;
pub use market::generate_market;
pub use nats::{NatsCluster, NatsServer};
pub use older_dates::find_older_dates;
pub use port::find_free as free_port;
pub use postgres::PostgresServer;
pub use process::{Daemon, Output, Signal};
pub use relay::delayed_address;
pub use root_certificates::root_store;
pub use servers::Servers;
pub use skipped::Requirement;
pub use small_disk::SmallDisk;
pub use stack_process::StackProcess;
pub use system_calls::SystemCalls;

/// Path of a hand-written file or folder under `tests/fixtures`.
pub fn fixture(path: &str) -> String {
    format!("{}/fixtures/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Optional folder of sample data next to the workspace. If the folder is missing, records the test as skipped and
/// returns `None`.
pub fn samples() -> Option<std::path::PathBuf> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    if path.is_dir() {
        return Some(path);
    }
    skipped::record(Requirement::SampleData, "");
    None
}

/// Optional file next to the workspace. It contains examples of the domain rules, each with an input and the correct
/// result. If the file is missing, records the test as skipped and returns `None`.
pub fn golden() -> Option<std::path::PathBuf> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden/domain-cases.json");
    if path.is_file() {
        return Some(path);
    }
    skipped::record(Requirement::WorkedCases, "");
    None
}
