//! Rolling restart behind a load balancer. All API instances and the projector are replaced while clients send calls,
//! and no call fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use harness::{Daemon, Program, Signal, TestApp, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, timeout};

const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two calls of one client.
const PACE: Duration = Duration::from_millis(20);
const CALLERS: usize = 4;

/// HTTP connection that is reused until a response has the header `Connection: close`.
struct KeptConnection(TcpStream);

struct KeptReply {
    status: u16,
    /// True if the server closes the connection after this reply.
    ends: bool,
}

impl KeptConnection {
    async fn open(address: &str) -> Result<Self> {
        Ok(Self(TcpStream::connect(address).await?))
    }

    async fn get(&mut self, path: &str, key: &str) -> Result<KeptReply> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nX-API-Key: {key}\r\n\r\n");
        self.0.write_all(request.as_bytes()).await?;
        let mut received = Vec::new();
        let head = loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            }
            self.read(&mut received).await?;
        };
        let value = |name: &str| {
            head.lines().find_map(|line| {
                line.strip_prefix(name)?.strip_prefix(':').map(|value| value.trim().to_owned())
            })
        };
        let length: usize = value("content-length").context("a length")?.parse()?;
        while received.len() < head.len() + 4 + length {
            self.read(&mut received).await?;
        }
        let status = head.split(' ').nth(1).context("a status")?.parse()?;
        Ok(KeptReply { status, ends: value("connection").as_deref() == Some("close") })
    }

    async fn read(&mut self, received: &mut Vec<u8>) -> Result<()> {
        let count = timeout(PATIENCE, self.0.read_buf(received)).await??;
        ensure!(count > 0, "the connection ended within a response, or before it");
        Ok(())
    }
}

/// Returns true if `/readyz` returns the status 200, and `None` if the instance does not answer.
async fn readiness(address: &str) -> Option<bool> {
    let mut connection = KeptConnection::open(address).await.ok()?;
    let reply = timeout(Duration::from_secs(5), connection.get("/readyz", "")).await.ok()?.ok()?;
    Some(reply.status == 200)
}

/// Load balancer. It checks the readiness of its instances all the time, as real ones do.
struct Balancer {
    address: String,
    instances: Arc<Vec<Instance>>,
}

struct Instance {
    address: String,
    is_ready: AtomicBool,
}

impl Balancer {
    async fn start(addresses: &[String]) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let instance =
            |address: &String| Instance { address: address.clone(), is_ready: AtomicBool::new(true) };
        let instances: Arc<Vec<_>> = Arc::new(addresses.iter().map(instance).collect());
        for index in 0..instances.len() {
            tokio::spawn(check_readiness(Arc::clone(&instances), index));
        }
        tokio::spawn(forward_connections(listener, Arc::clone(&instances)));
        Ok(Self { address, instances })
    }

    /// Waits until new connections can go to the instance again.
    async fn wait_for(&self, address: &str) -> Result<()> {
        let instance = self.instances.iter().find(|instance| instance.address == address);
        let instance = instance.context("an unknown instance")?;
        eventually(PATIENCE, async || {
            ensure!(instance.is_ready.load(Ordering::Relaxed), "the balancer finds {address} not ready");
            Ok(())
        })
        .await
    }
}

async fn check_readiness(instances: Arc<Vec<Instance>>, index: usize) {
    let mut checks = interval(Duration::from_millis(50));
    loop {
        checks.tick().await;
        let is_ready = readiness(&instances[index].address).await == Some(true);
        instances[index].is_ready.store(is_ready, Ordering::Relaxed);
    }
}

/// Each new connection goes to the next ready instance that accepts it. If there is none, the client is disconnected.
async fn forward_connections(listener: TcpListener, instances: Arc<Vec<Instance>>) {
    let mut next = 0;
    while let Ok((mut client, _)) = listener.accept().await {
        next += 1;
        for offset in 0..instances.len() {
            let instance = &instances[(next + offset) % instances.len()];
            if !instance.is_ready.load(Ordering::Relaxed) {
                continue;
            }
            if let Ok(mut server) = TcpStream::connect(&instance.address).await {
                tokio::spawn(async move { drop(copy_bidirectional(&mut client, &mut server).await) });
                break;
            }
        }
    }
}

/// Sends calls until `stopping` is true. Opens a new connection only after the server has announced the end of the old
/// one.
async fn call_steadily(address: &str, key: &str, stopping: &AtomicBool, calls: &AtomicUsize) -> Result<()> {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut connection = KeptConnection::open(address).await?;
    while !stopping.load(Ordering::Relaxed) {
        pace.tick().await;
        let reply = connection.get("/v1/stocks?limit=1", key).await?;
        ensure!(reply.status == 200, "status {}", reply.status);
        calls.fetch_add(1, Ordering::Relaxed);
        if reply.ends {
            connection = KeptConnection::open(address).await?;
        }
    }
    Ok(())
}

async fn call_until_end(address: &str, key: &str) -> Result<()> {
    let mut pace = interval(PACE);
    let mut connection = KeptConnection::open(address).await?;
    loop {
        pace.tick().await;
        let reply = connection.get("/v1/stocks?limit=1", key).await?;
        ensure!(reply.status == 200, "status {}", reply.status);
        if reply.ends {
            return Ok(());
        }
    }
}

async fn start_instance(app: &TestApp, address: &str) -> Result<Daemon> {
    let env = [
        ("API_DRAIN_DELAY", "3s"),
        ("ADDRESS_CALLS_PER_MINUTE", "1000000"),
        ("ADDRESS_CALLS_BURST", "1000000"),
    ];
    let process = app.spawn_with(Program::Api, &["serve", "--listen", address], &env).await?;
    let first = eventually(PATIENCE, async || readiness(address).await.context("nobody listens")).await?;
    ensure!(first, "an instance listens before it can serve: {}", process.log_tail(5));
    Ok(process)
}

#[tokio::test]
async fn a_rolling_restart_fails_no_call() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    app.sql("update accounts.tiers set rate_per_minute = 1000000, burst = 1000000", &[]).await?;
    let key = app.key("professional").await?;
    let addresses = [app.free_address()?, app.free_address()?];
    let mut instances = try_join_all(addresses.iter().map(|address| start_instance(&app, address))).await?;
    let mut projector = app.spawn(Program::Projector, &["run"]).await?;
    let balancer = Balancer::start(&addresses).await?;
    let (stopping, calls) = (AtomicBool::new(false), AtomicUsize::new(0));

    let calling = join_all((0..CALLERS).map(|_| call_steadily(&balancer.address, &key, &stopping, &calls)));
    let restarting = async {
        for (instance, address) in instances.iter_mut().zip(&addresses) {
            let kept = call_until_end(address, &key);
            let stopped = instance.stop(Signal::TERM, PATIENCE);
            let (kept, stopped) = tokio::join!(kept, stopped);
            kept.context("on a kept connection")?;
            ensure!(stopped?.success(), "{}", instance.log_tail(10));
            *instance = start_instance(&app, address).await?;
            // The next instance is only stopped when the balancer can use this one.
            balancer.wait_for(address).await?;
        }
        let standby = app.spawn(Program::Projector, &["run"]).await?;
        projector.stop(Signal::TERM, PATIENCE).await?;
        app.feed("prices-2.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
        eventually(PATIENCE, async || {
            let price: Option<String> =
                app.sql_value("select max(price)::text from read_g1.quotes where symbol = 'AAA'").await?;
            ensure!(price.as_deref() == Some("7"), "{price:?}");
            Ok(())
        })
        .await?;
        drop(standby);
        anyhow::Ok(())
    };
    let (called, restarted) = tokio::join!(calling, async {
        let restarted = restarting.await;
        stopping.store(true, Ordering::Relaxed);
        restarted
    });
    restarted?;
    for outcome in called {
        outcome.context("through the balancer")?;
    }
    let calls = calls.load(Ordering::Relaxed);
    ensure!(calls > 200, "{calls} calls are no load");
    Ok(())
}
