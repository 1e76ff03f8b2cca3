//! Peers: simple servers for comparison, in Fastify on Node and FastAPI on Python. Like the naive design in Rust, they
//! execute three statements per request. Each peer has two processes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::eventually;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/install");

pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    process: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let leader = self.process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(leader) = leader {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Installs the peers in a subfolder of `folder`, but does not start them. Returns only the peers that this machine can
/// run.
pub(crate) async fn installed(folder: &Path) -> Result<Vec<Starting>> {
    let into = folder.join("peers");
    let status = Command::new(INSTALL).arg(&into).status().await.context("installing the peers")?;
    ensure!(status.success(), "{INSTALL} failed");
    let peers = [
        Starting {
            name: "quote, naive, Fastify and pg",
            program: "node".into(),
            folder: into.join("fastify"),
        },
        Starting {
            name: "quote, naive, FastAPI and asyncpg",
            program: into.join("fastapi/venv/bin/uvicorn"),
            folder: into.join("fastapi"),
        },
    ];
    Ok(peers.into_iter().filter(Starting::is_there).collect())
}

/// Installed peer that is not started yet.
pub(crate) struct Starting {
    name: &'static str,
    program: PathBuf,
    folder: PathBuf,
}

impl Starting {
    fn is_there(&self) -> bool {
        match self.program.is_absolute() {
            true => self.program.exists(),
            false => self.folder.join("node_modules").exists(),
        }
    }

    pub(crate) async fn start(self, database: &str) -> Result<Peer> {
        let port = harness::free_port()?.to_string();
        let mut command = Command::new(&self.program);
        match self.program.is_absolute() {
            true => command.args(["server:app", "--workers", "2", "--log-level", "error", "--port", &port]),
            false => command.args(["server.mjs", database, &port]),
        };
        let process = command
            .current_dir(&self.folder)
            .env("DATABASE", database)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", self.program.display()))?;
        let address = format!("127.0.0.1:{port}");
        eventually(Duration::from_secs(60), async || Ok(TcpStream::connect(&address).await?)).await?;
        Ok(Peer { name: self.name, address, process })
    }
}
