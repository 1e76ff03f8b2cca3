//! Relay that stands for a long way to a server: it delays every byte.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::unbounded_channel;

/// Starts a relay to the server at the address `server`. It forwards every byte after `delay`, in both directions, so a
/// round trip takes at least twice as long. The delay does not limit the throughput. Returns the address of the relay,
/// which ends with the runtime.
pub async fn delayed_address(server: String, delay: Duration) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(&server).await else { continue };
            let is_set = client.set_nodelay(true).and(server.set_nodelay(true));
            debug_assert!(is_set.is_ok(), "a connected socket takes the option");
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            tokio::spawn(forward(from_client, to_server, delay));
            tokio::spawn(forward(from_server, to_client, delay));
        }
    });
    Ok(address)
}

async fn forward(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, delay: Duration) {
    let (sender, mut receiver) = unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let _ = sender.send((Instant::now() + delay, bytes[..count].to_vec()));
        }
    };
    let writing = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(due.into()).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
