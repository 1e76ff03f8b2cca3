//! Soak test: a long load of all kinds of requests, and a check that the server releases its resources afterwards.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use harness::{Api, eventually};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::load::Load;
use crate::seed::Seeded;

/// Limit of the growth of memory, in kilobytes. Buffers of the allocator and of connections can grow by less than this
/// without a leak.
const SLACK_KB: u64 = 32 * 1024;
const SLACK_FILES: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Held {
    memory_kb: u64,
    files: usize,
    threads: usize,
}

impl Held {
    fn by(api: &Api) -> Result<Held> {
        let folder = format!("/proc/{}", api.process.pid());
        let count =
            |what: &str| -> Result<usize> { Ok(std::fs::read_dir(format!("{folder}/{what}"))?.count()) };
        Ok(Held { memory_kb: api.memory_kilobytes("VmRSS")?, files: count("fd")?, threads: count("task")? })
    }
}

/// Sends requests to the server for a tenth of `duration`, and then for `duration`. Returns an error if the second
/// round leaves more threads, or clearly more memory or open files.
pub(crate) async fn soak(api: &Api, seeded: &Seeded, duration: Duration) -> Result<String> {
    round(api, seeded, duration / 10).await?;
    let before = settled(api).await?;
    round(api, seeded, duration).await?;
    let after = settled(api).await?;
    ensure!(after.files <= before.files + SLACK_FILES, "{before:?} before, {after:?} after");
    ensure!(after.threads <= before.threads, "{before:?} before, {after:?} after");
    ensure!(after.memory_kb <= before.memory_kb + SLACK_KB, "{before:?} before, {after:?} after");
    Ok(format!("{before:?} before, {after:?} after"))
}

/// Sends requests for small responses, lists and bulk responses. At the same time, other clients disconnect in the
/// middle of requests and responses.
async fn round(api: &Api, seeded: &Seeded, duration: Duration) -> Result<()> {
    let small = Load::new(&[&api.base_url], 26, seeded.requests("quote"));
    let lists = Load::new(&[&api.base_url], 4, seeded.lists());
    let bulk = Load::new(&[&api.base_url], 2, seeded.bulk());
    let rude = async {
        let ended = tokio::time::sleep(duration);
        tokio::pin!(ended);
        loop {
            tokio::select! {
                () = &mut ended => return anyhow::Ok(()),
                left = break_off(api, seeded) => left?,
            }
        }
    };
    futures::try_join!(small.run(duration), lists.run(duration), bulk.run(duration), rude)?;
    Ok(())
}

/// Opens 16 connections. Half of them send the first half of a bulk request. The others send a complete request, but do
/// not read the response. All of them disconnect after 200 ms.
async fn break_off(api: &Api, seeded: &Seeded) -> Result<()> {
    let requests = seeded.bulk();
    let address = api.base_url.trim_start_matches("http://");
    let clients = requests.iter().take(8).map(async |request| -> Result<()> {
        let mut stream = TcpStream::connect(address).await.context("connecting")?;
        stream.write_all(&request[..request.len() / 2]).await?;
        let mut stream = TcpStream::connect(address).await.context("connecting")?;
        stream.write_all(request).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    });
    try_join_all(clients).await?;
    Ok(())
}

/// Returns the resources of the server after two successive checks found the same numbers of open files and threads. By
/// then, the server has closed old connections and ended idle threads.
async fn settled(api: &Api) -> Result<Held> {
    let mut last = Held::by(api)?;
    eventually(Duration::from_secs(60), async || {
        tokio::time::sleep(Duration::from_secs(11)).await;
        let before = std::mem::replace(&mut last, Held::by(api)?);
        ensure!(last.files == before.files && last.threads == before.threads, "{last:?} after {before:?}");
        Ok(last)
    })
    .await
}
