//! Database cluster on disk: its folder, its settings, and the command that starts its server.
//!
//! Invariants: an interrupted `initdb` leaves no data folder. The cluster belongs to the user that runs the server. The
//! server listens only on 127.0.0.1.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tokio_postgres::Client;

use super::Durability;
use super::base_backup::base_backup;
use super::find::Programs;
use crate::certificate::Certificate;
use crate::port;
use crate::process::{command_bound_to_parent, exit_code};
use crate::server_user::{ServerUser, ensure_reachable};

#[derive(Debug)]
pub(super) struct Cluster {
    programs: Programs,
    data: PathBuf,
    log: PathBuf,
    port: u16,
    user: Option<ServerUser>,
    durability: Durability,
}

/// Smallest value of `shared_buffers` in MB. It is also used if the size of the machine's memory is unknown.
const LEAST_BUFFERS: u64 = 128;
/// Largest value of `shared_buffers` in MB. Benchmarks of ten thousand securities run with this value.
const MOST_BUFFERS: u64 = 1024;

/// Returns the setting `shared_buffers`. The Postgres manual recommends a quarter of the machine's memory.
fn shared_buffers() -> String {
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
    let kilobytes: Option<u64> = total.and_then(|kilobytes| kilobytes.parse().ok());
    let quarter = kilobytes.map(|kilobytes| kilobytes / 1024 / 4);
    let megabytes = quarter.map_or(LEAST_BUFFERS, |quarter| quarter.clamp(LEAST_BUFFERS, MOST_BUFFERS));
    format!("shared_buffers={megabytes}MB")
}

impl Cluster {
    /// Uses the existing cluster in `folder`, or creates a new cluster there. Does not start the server.
    pub(super) fn prepare(programs: Programs, folder: &Path, durability: Durability) -> Result<Cluster> {
        let user = ServerUser::find_if_root()?;
        fs::create_dir_all(folder)?;
        if let Some(user) = user {
            user.give_ownership(folder)?;
            if let Some(parent) = folder.parent() {
                ensure_reachable(parent)?;
            }
        }
        let data = folder.join("data");
        let cluster = Cluster {
            programs,
            data,
            log: folder.join("postgres.log"),
            port: port::find_free()?,
            user,
            durability,
        };
        if cluster.data.exists() {
            cluster.refuse_other_major()?;
        } else {
            cluster.initialise(&folder.join("data.new"))?;
        }
        Ok(cluster)
    }

    /// Creates a streaming replica of this cluster in `folder`. The base backup uses SQL functions, because some
    /// builds of Postgres have no `pg_basebackup`. `client` is a session of this cluster.
    pub(super) async fn replicate(&self, folder: &Path, client: &Client) -> Result<Cluster> {
        let replica = Cluster {
            programs: self.programs.clone(),
            data: folder.join("data"),
            log: folder.join("postgres.log"),
            port: port::find_free()?,
            user: self.user,
            durability: self.durability,
        };
        let slot = format!("replica_{}", replica.port);
        // Because of the slot, the server does not delete any write-ahead log that the replica has not yet received.
        client.execute("select pg_create_physical_replication_slot($1, true)", &[&slot]).await?;
        let label = base_backup(client, &self.data, &replica.data).await?;
        replica.write("backup_label", &label)?;
        replica.write("standby.signal", "")?;
        let primary = format!(
            "primary_conninfo = 'host=127.0.0.1 port={} user=postgres'\nprimary_slot_name = '{slot}'\n",
            self.port
        );
        replica.write("postgresql.auto.conf", &primary)?;
        if let Some(user) = self.user {
            user.give_ownership_of_all(folder)?;
        }
        Ok(replica)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        fs::write(self.data.join(file), text).with_context(|| format!("writing {file} of the replica"))
    }

    pub(super) fn change_port(&mut self) -> Result<()> {
        self.port = port::find_free()?;
        Ok(())
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Command that starts the server. When the harness dies, the kernel sends SIGQUIT, which also ends the sessions.
    pub(super) fn command(&self) -> Command {
        let mut command = self.as_user("postgres", "QUIT");
        command.arg("-D").arg(&self.data);
        for setting in self.settings() {
            command.arg("-c").arg(setting);
        }
        command
    }

    fn settings(&self) -> Vec<String> {
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            "unix_socket_directories=".to_owned(),
            "max_connections=300".to_owned(),
            // The shared memory of a killed server is in its folder, which is removed.
            "dynamic_shared_memory_type=mmap".to_owned(),
            "log_timezone=UTC".to_owned(),
            "timezone=UTC".to_owned(),
        ];
        settings.extend(match self.durability {
            Durability::Full => vec![shared_buffers(), "max_wal_size=2GB".to_owned()],
            Durability::Disposable => {
                ["shared_buffers=128MB", "fsync=off", "full_page_writes=off"].map(str::to_owned).to_vec()
            }
        });
        settings
    }

    pub(super) fn demand_tls(&self, certificate: &Certificate) -> Result<()> {
        for (from, to) in [(&certificate.certificate, "server.crt"), (&certificate.key, "server.key")] {
            let to = self.data.join(to);
            fs::copy(from, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
            if let Some(user) = self.user {
                user.give_ownership(&to)?;
            }
        }
        let rules = "hostssl all dds_api,dds_projector 127.0.0.1/32 scram-sha-256\n\
                     host all dds_api,dds_projector 127.0.0.1/32 reject\n\
                     host all all 127.0.0.1/32 trust\n";
        fs::write(self.data.join("pg_hba.conf"), rules).context("writing who may connect")
    }

    fn initialise(&self, staging: &Path) -> Result<()> {
        // Leftovers of an interrupted start are discarded.
        let _ = fs::remove_dir_all(staging);
        let mut failure = String::new();
        for locale in ["C.UTF-8", "C"] {
            let mut command = self.as_user("initdb", "KILL");
            command.arg("--pgdata").arg(staging);
            command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
            command.arg(format!("--locale={locale}"));
            if self.durability == Durability::Disposable {
                command.arg("--no-sync");
            }
            let output = command.output().context("running initdb")?;
            if output.status.success() {
                return fs::rename(staging, &self.data).context("moving the new cluster into place");
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            failure = format!("initdb ended with {}: {said}", exit_code(output.status));
        }
        bail!(failure)
    }

    fn refuse_other_major(&self) -> Result<()> {
        let text =
            fs::read_to_string(self.data.join("PG_VERSION")).context("reading the cluster's PG_VERSION")?;
        if text.trim() != self.programs.major.to_string() {
            bail!(
                "{} was made by Postgres {}, but {} is found; start with --fresh or point PG_BIN to the old one",
                self.data.display(),
                text.trim(),
                self.programs.major
            );
        }
        Ok(())
    }

    fn as_user(&self, program: &str, death_signal: &str) -> Command {
        let mut command = command_bound_to_parent(self.programs.folder.join(program), death_signal);
        // The server must not start in a folder that its user cannot enter.
        command.current_dir("/").env("LC_ALL", "C");
        for name in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGOPTIONS", "PGSERVICE", "PGPASSFILE"] {
            command.env_remove(name);
        }
        if let Some(user) = self.user {
            user.run_as(&mut command);
        }
        command
    }
}
