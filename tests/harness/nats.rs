//! NATS server with JetStream: an existing server, or a server that the harness starts. An existing server cannot be
//! stopped, restarted or configured.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use async_nats::jetstream;
use tokio::sync::Mutex;

use crate::certificate::Certificate;
use crate::port;
use crate::process::{Daemon, Signal, command_bound_to_parent};
use crate::release::Release;

mod cluster;
mod find;

pub use cluster::NatsCluster;
pub(crate) use find::pinned;

/// Oldest supported release. Release 2.9 ignores `filter_subjects` and does not know `sync_interval`.
const OLDEST: Release = Release(2, 10);
const READY_WITHIN: Duration = Duration::from_secs(120);
const ATTEMPTS: usize = 3;
/// Line of the NATS configuration that makes the server write a message to disk before it acknowledges the message.
const SYNC_ALWAYS: &str = "  sync_interval: always\n";

/// NATS server that stores the event log.
#[derive(Debug)]
pub struct NatsServer {
    url: String,
    own: Option<Mutex<OwnNats>>,
}

#[derive(Debug)]
struct OwnNats {
    program: PathBuf,
    configuration: PathBuf,
    log: PathBuf,
    process: Daemon,
}

impl NatsServer {
    /// Connects to an existing server. Fails if the server is too old or has no JetStream.
    pub(crate) async fn existing(url: &str) -> Result<NatsServer> {
        let client =
            async_nats::connect(url).await.with_context(|| format!("connecting to NATS_URL {url}"))?;
        let version = client.server_info().version;
        if Release::parse(&version).is_none_or(|release| release < OLDEST) {
            bail!("the NATS server at {url} is {version}; {OLDEST} or newer is needed");
        }
        let account = jetstream::new(client).query_account().await;
        account.with_context(|| format!("the NATS server at {url} has no JetStream"))?;
        Ok(NatsServer { url: url.to_owned(), own: None })
    }

    /// Starts a server with its data in `folder`, which may contain the data of an earlier start.
    pub(crate) async fn start(folder: &Path) -> Result<NatsServer> {
        let program = find::program().await?;
        fs::create_dir_all(folder)?;
        let mut attempt = 1;
        loop {
            match OwnNats::start(&program, folder).await {
                Ok((url, own)) => return Ok(NatsServer { url, own: Some(Mutex::new(own)) }),
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Address of the server, as in `NATS_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Opens a new connection.
    pub async fn connect(&self) -> Result<async_nats::Client> {
        async_nats::connect(&self.url).await.with_context(|| format!("connecting to {}", self.url))
    }

    /// Deletes a stream with its messages. Fails if the stream does not exist.
    pub async fn delete_stream(&self, stream: &str) -> Result<()> {
        jetstream::new(self.connect().await?).delete_stream(stream).await?;
        Ok(())
    }

    /// Sequence of the newest message of a stream.
    pub(crate) async fn last_sequence(&self, stream: &str) -> Result<u64> {
        let stream = jetstream::new(self.connect().await?).get_stream(stream).await?;
        Ok(stream.cached_info().state.last_sequence)
    }

    /// Kills the server with SIGKILL. [`NatsServer::restart`] can start the server again on the same port.
    pub async fn kill9(&self) -> Result<()> {
        self.own()?.lock().await.process.kill9()?;
        Ok(())
    }

    /// Sends a signal to the server. Fails if the harness did not start the server.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.own()?.lock().await.process.signal(signal)
    }

    /// Stops the server gracefully. If the server still runs after 20 seconds, it is killed.
    pub async fn stop(&self) -> Result<()> {
        self.own()?.lock().await.process.stop(Signal::TERM, Duration::from_secs(20)).await?;
        Ok(())
    }

    /// Starts the server again with its data, on the same port. A running server is killed first.
    pub async fn restart(&self) -> Result<()> {
        let mut own = self.own()?.lock().await;
        own.process.kill9()?;
        own.process = launch(&own.program, &own.configuration, &own.log)?;
        wait_until_ready(&self.url, &mut own.process).await
    }

    /// Restarts the server with this certificate, so that it requires TLS from every client.
    pub async fn demand_tls(&self, certificate: &Certificate) -> Result<()> {
        let mut own = self.own()?.lock().await;
        let (shown, key) = (certificate.certificate.display(), certificate.key.display());
        let text = fs::read_to_string(&own.configuration)?;
        fs::write(
            &own.configuration,
            format!("{text}tls {{ cert_file: \"{shown}\", key_file: \"{key}\" }}\n"),
        )?;
        own.process.kill9()?;
        own.process = launch(&own.program, &own.configuration, &own.log)?;
        let options =
            async_nats::ConnectOptions::new().add_root_certificates(certificate.certificate.clone());
        let started = Instant::now();
        while options.clone().connect(&self.url).await.is_err() {
            if started.elapsed() > READY_WITHIN {
                bail!("NATS is not ready with TLS; its log ends:\n{}", own.process.log_tail(20));
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        Ok(())
    }

    /// Restarts the server with the default durability of NATS: the server acknowledges messages before they are on
    /// disk.
    pub async fn restart_acknowledging_early(&self) -> Result<()> {
        let configuration = self.own()?.lock().await.configuration.clone();
        let text = fs::read_to_string(&configuration)?;
        fs::write(&configuration, text.replace(SYNC_ALWAYS, ""))?;
        self.restart().await
    }

    /// Process id of the server. Fails if the harness did not start the server.
    pub async fn pid(&self) -> Result<u32> {
        Ok(self.own()?.lock().await.process.pid())
    }

    /// Files that contain the messages of a stream, oldest first.
    pub async fn block_files(&self, stream: &str) -> Result<Vec<PathBuf>> {
        let data = self.own()?.lock().await.configuration.with_file_name("data");
        let folder = data.join("jetstream/$G/streams").join(stream).join("msgs");
        let listed = fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
        let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "blk"));
        files.sort_by_key(number);
        Ok(files)
    }

    /// Exit status and last log lines of a server that has ended. `None` if the server runs, or if the harness did not
    /// start it.
    pub(crate) async fn exit_message(&self) -> Option<String> {
        let mut own = self.own.as_ref()?.lock().await;
        let status = own.process.exit_status().ok().flatten()?;
        Some(format!("NATS ended ({status}); its log ends:\n{}", own.process.log_tail(20)))
    }

    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    fn own(&self) -> Result<&Mutex<OwnNats>> {
        self.own.as_ref().context("the NATS server was not started here and is left alone")
    }
}

impl OwnNats {
    async fn start(program: &Path, folder: &Path) -> Result<(String, OwnNats)> {
        let port = port::find_free()?;
        let url = format!("nats://127.0.0.1:{port}");
        let configuration = folder.join("nats.conf");
        fs::write(&configuration, configuration_text(port, &folder.join("data")))?;
        let log = folder.join("nats.log");
        let mut process = launch(program, &configuration, &log)?;
        wait_until_ready(&url, &mut process).await?;
        Ok((url, OwnNats { program: program.to_owned(), configuration, log, process }))
    }
}

fn configuration_text(port: u16, data: &Path) -> String {
    format!(
        "listen: \"127.0.0.1:{port}\"\n\
         server_name: \"dividend-data-service\"\n\
         max_payload: 8MB\n\
         jetstream {{\n  store_dir: \"{}\"\n{SYNC_ALWAYS}}}\n",
        data.display()
    )
}

fn launch(program: &Path, configuration: &Path, log: &Path) -> Result<Daemon> {
    let mut command = command_bound_to_parent(program, "KILL");
    command.arg("--config").arg(configuration);
    Daemon::start("NATS", command, log)
}

async fn wait_until_ready(url: &str, process: &mut Daemon) -> Result<()> {
    let started = Instant::now();
    loop {
        if let Ok(client) = async_nats::connect(url).await
            && jetstream::new(client).query_account().await.is_ok()
        {
            return Ok(());
        }
        if let Some(status) = process.exit_status()? {
            bail!("NATS ended at start ({status}); its log ends:\n{}", process.log_tail(20));
        }
        if started.elapsed() > READY_WITHIN {
            bail!("NATS is not ready after {READY_WITHIN:?}; its log ends:\n{}", process.log_tail(20));
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}
