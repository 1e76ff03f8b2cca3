//! Load through a slow NATS server. After some minutes without a read, nats-server scans the whole log before it
//! delivers the first message. In a large log, this takes seconds.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use harness::{Program, TestApp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Delay of the first answer. It is longer than the time after which `ingest` looks for messages that the server cannot
/// deliver.
const SLOW: Duration = Duration::from_millis(2_500);

/// Numbers of requests through the relay: for a batch of messages, and for a single message.
#[derive(Default)]
struct Asked {
    batches: AtomicUsize,
    single_messages: AtomicUsize,
}

async fn relay(client: TcpStream, server: TcpStream, asked: Arc<Asked>) -> Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let noting = Arc::clone(&asked);
    let asking = async move {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = from_client.read(&mut bytes).await?;
            if read == 0 {
                return anyhow::Ok(());
            }
            let text = String::from_utf8_lossy(&bytes[..read]);
            noting.single_messages.fetch_add(text.matches("STREAM.MSG.GET").count(), Ordering::SeqCst);
            noting.batches.fetch_add(text.matches("CONSUMER.MSG.NEXT").count(), Ordering::SeqCst);
            to_server.write_all(&bytes[..read]).await?;
        }
    };
    let answering = async move {
        let (mut bytes, mut was_slow) = (vec![0; 1 << 16], false);
        loop {
            let read = from_server.read(&mut bytes).await?;
            if read == 0 {
                return anyhow::Ok(());
            }
            if !was_slow && asked.batches.load(Ordering::SeqCst) > 0 {
                was_slow = true;
                tokio::time::sleep(SLOW).await;
            }
            to_client.write_all(&bytes[..read]).await?;
        }
    };
    tokio::select! {
        ended = asking => ended,
        ended = answering => ended,
    }
}

async fn relay_all(listener: TcpListener, server: String, asked: Arc<Asked>) -> Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(&server).await.with_context(|| server.clone())?;
        tokio::spawn(relay(client, server, Arc::clone(&asked)));
    }
}

/// If the server answers late, the load must not request every message of the log. With ten thousand securities, these
/// requests took thirteen seconds.
#[tokio::test]
async fn a_load_waits_for_a_slow_server_without_reading_the_whole_log() -> Result<()> {
    let app = TestApp::start().await?;
    for number in 0..40 {
        let file = app.folder().join(format!("prices-{number}.csv"));
        fs::write(&file, format!("symbol,date,close\nAAA,2024-01-02,{}\n", number + 1))?;
        let file = file.display().to_string();
        app.ingest(&["load", "--source", "feed", &file]).await?.success()?;
    }
    let file = app.folder().join("prices-another.csv");
    fs::write(&file, "symbol,date,close\nAAA,2024-01-03,7\n")?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let through = format!("nats://{}", listener.local_addr()?);
    let server = app.endpoints().nats_url.trim_start_matches("nats://").to_owned();
    let asked = Arc::new(Asked::default());
    let relaying = tokio::spawn(relay_all(listener, server, Arc::clone(&asked)));
    let arguments = ["load", "--source", "feed", &file.display().to_string()];
    let loaded = app.run(Program::Ingest, &arguments, &[("NATS_URL", &through)]).await?.success()?;
    relaying.abort();
    assert!(loaded.stdout.contains("1 record batch published"), "{}", loaded.stdout);
    assert!(asked.batches.load(Ordering::SeqCst) > 0, "the server was never slow");
    let by_hand = asked.single_messages.load(Ordering::SeqCst);
    assert!(by_hand <= 2, "{by_hand} messages were looked for by hand");
    Ok(())
}
