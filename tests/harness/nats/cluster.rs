//! JetStream cluster of three NATS server processes on 127.0.0.1.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use async_nats::jetstream;
use event_log::stream::find_lagging_replicas;

use super::{find, launch};
use crate::process::Daemon;
use crate::{eventually, folder, port};

const NODES: usize = 3;
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Cluster of three NATS servers. Dropping this value kills the servers.
#[derive(Debug)]
pub struct NatsCluster {
    program: PathBuf,
    folder: PathBuf,
    ports: Vec<u16>,
    nodes: Vec<Daemon>,
}

impl NatsCluster {
    /// Starts the nodes, and waits until a stream with three replicas can be created.
    pub async fn start() -> Result<NatsCluster> {
        let program = find::program().await?;
        let folder = folder::ephemeral("nats-cluster")?;
        let free = || (0..NODES).map(|_| port::find_free()).collect::<Result<Vec<u16>>>();
        let (ports, routes) = (free()?, free()?);
        for (node, (port, route)) in ports.iter().zip(&routes).enumerate() {
            fs::write(
                configuration(&folder, node),
                configuration_text(node, *port, *route, &routes, &folder),
            )?;
        }
        let nodes = (0..NODES).map(|node| start_node(&program, &folder, node)).collect::<Result<_>>()?;
        let cluster = NatsCluster { program, folder, ports, nodes };
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Addresses of all nodes, separated by commas as in the environment variable `NATS_URL`.
    pub fn url(&self) -> String {
        self.ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect::<Vec<_>>().join(",")
    }

    /// Opens a connection to any running node.
    pub async fn connect(&self) -> Result<jetstream::Context> {
        let addresses: Vec<String> = self.url().split(',').map(str::to_owned).collect();
        Ok(jetstream::new(async_nats::connect(addresses).await.context("connecting to the cluster")?))
    }

    /// Index of the node that is now the leader of a stream. The first node has index 0.
    pub async fn leader(&self, stream: &str) -> Result<usize> {
        let info = self.connect().await?.get_stream(stream).await?.cached_info().clone();
        let leader = info.cluster.and_then(|cluster| cluster.leader).context("the stream has no leader")?;
        leader.strip_prefix("node-").and_then(|node| node.parse().ok()).context("a node's name")
    }

    /// Makes a node the leader of a stream, so that reads of the stream return the data of this node.
    pub async fn make_leader(&self, stream: &str, node: usize) -> Result<()> {
        eventually(READY_WITHIN, async || {
            if self.leader(stream).await? == node {
                return Ok(());
            }
            let subject = format!("$JS.API.STREAM.LEADER.STEPDOWN.{stream}");
            let request = format!("{{\"placement\":{{\"preferred\":\"node-{node}\"}}}}");
            let client = self.connect().await?.client();
            let response = client.request(subject, request.into()).await?;
            bail!("node {node} does not lead yet: {}", String::from_utf8_lossy(&response.payload))
        })
        .await
    }

    /// Waits until every replica of a stream is up to date. Fails if this takes longer than `limit`.
    pub async fn wait_until_current(&self, stream: &str, limit: Duration) -> Result<()> {
        eventually(limit, async || {
            let stream = self.connect().await?.get_stream(stream).await?;
            let lagging = find_lagging_replicas(stream.cached_info());
            ensure!(lagging.is_empty(), "{lagging:?}");
            Ok(())
        })
        .await
    }

    /// Output of a node since its first start, including the output before restarts.
    pub fn log(&self, node: usize) -> String {
        self.nodes[node].log()
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Kills a node with SIGKILL. [`NatsCluster::restart`] starts it again.
    pub fn kill9(&mut self, node: usize) -> Result<()> {
        self.nodes[node].kill9()?;
        Ok(())
    }

    /// Starts a killed node again with its existing data.
    pub fn restart(&mut self, node: usize) -> Result<()> {
        self.nodes[node] = start_node(&self.program, &self.folder, node)?;
        Ok(())
    }

    async fn ready(&self) -> Result<()> {
        eventually(READY_WITHIN, async || {
            let context = self.connect().await?;
            let config = jetstream::stream::Config {
                name: "READY".to_owned(),
                num_replicas: NODES,
                ..jetstream::stream::Config::default()
            };
            let created = context.create_stream(config).await;
            ensure!(created.is_ok(), "no stream of {NODES} replicas: {created:?}");
            context.delete_stream("READY").await?;
            Ok(())
        })
        .await
    }
}

fn configuration(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("node-{node}.conf"))
}

fn start_node(program: &Path, folder: &Path, node: usize) -> Result<Daemon> {
    launch(program, &configuration(folder, node), &folder.join(format!("node-{node}.log")))
}

fn configuration_text(node: usize, port: u16, route: u16, routes: &[u16], folder: &Path) -> String {
    let peers: Vec<String> = routes.iter().map(|route| format!("nats://127.0.0.1:{route}")).collect();
    format!(
        "listen: \"127.0.0.1:{port}\"\n\
         server_name: \"node-{node}\"\n\
         max_payload: 8MB\n\
         jetstream {{\n  store_dir: \"{}\"\n  sync_interval: always\n}}\n\
         cluster {{\n  name: dividends\n  listen: \"127.0.0.1:{route}\"\n  routes: [{}]\n}}\n",
        folder.join(format!("data-{node}")).display(),
        peers.join(", ")
    )
}
