//! Tests of responses of many megabytes. A failed response is recognizably incomplete. A client that does not read
//! costs little memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use harness::eventually;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api_world::World;
use crate::slow_clients::{connect, others_are_served};

const COPIES: usize = 300;
/// Number of dividends that are requested per symbol.
const DIVIDENDS: usize = 100;
/// Timeouts that are long enough for forty large responses on a busy machine.
const PATIENT: [(&str, &str); 4] = [
    ("API_REQUEST_TIMEOUT_MS", "120000"),
    ("API_READ_TIMEOUT_MS", "60000"),
    ("API_TURN_TIMEOUT_MS", "300000"),
    ("API_WRITE_TIMEOUT_MS", "600000"),
];

/// Starts a market with [`COPIES`] copies of the security COLA. Also returns the path of a request for the dividends of
/// all copies.
async fn wide() -> Result<(World, String)> {
    let world = World::start_with(&PATIENT).await?;
    let copies = format!("generate_series(1, {COPIES}) n");
    let symbols = format!("insert into read_g1.symbols select 'S' || n, 'S' || n from {copies}");
    world.app.sql(&symbols, &[]).await?;
    let dividends = format!(
        "do $$ begin
             create temp table copies as select d.*, n from read_g1.dividends d, {copies} where symbol = 'COLA';
             update copies set symbol = 'S' || n, id = n || id;
             alter table copies drop column n;
             insert into read_g1.dividends select * from copies;
         end $$"
    );
    world.app.sql(&dividends, &[]).await?;
    // Without new statistics, Postgres would read the whole table for each symbol.
    world.app.sql("analyze read_g1.dividends", &[]).await?;
    let symbols: Vec<String> = (1..=COPIES).map(|n| format!("S{n}")).collect();
    Ok((world, format!("/v1/bulk/dividends?per_symbol={DIVIDENDS}&symbols={}", symbols.join(","))))
}

/// Returns each symbol in an answer with the number of its dividends.
fn counted(answer: &Value) -> Vec<(&str, usize)> {
    let items = answer["data"].as_array().into_iter().flatten();
    items
        .map(|item| {
            (item["symbol"].as_str().unwrap_or_default(), item["dividends"].as_array().map_or(0, Vec::len))
        })
        .collect()
}

fn is_whole(answer: &Value) -> bool {
    let expected: Vec<String> = (1..=COPIES).map(|n| format!("S{n}")).collect();
    let expected: Vec<(&str, usize)> = expected.iter().map(|symbol| (symbol.as_str(), DIVIDENDS)).collect();
    counted(answer) == expected && answer["meta"]["summary"]["returned"] == COPIES
}

#[tokio::test]
async fn a_long_answer_is_sent_in_parts_and_is_whole() -> Result<()> {
    let (world, path) = wide().await?;
    let reply = world.get(&path).await?;
    assert_eq!(reply.status, 200);
    assert!(reply.body.len() > 8_000_000, "{} bytes", reply.body.len());
    assert_eq!(reply.header("content-length"), None);
    assert!(is_whole(&reply.json()?), "{:?}", counted(&reply.json()?));
    for name in
        ["etag", "x-ratelimit-remaining", "x-quota-remaining", "x-request-id", "cache-control", "vary"]
    {
        assert!(reply.header(name).is_some(), "{name}");
    }
    let key = format!("Bearer {}", world.professional);
    let with = |name, value: &str| [("authorization", key.clone()), (name, value.to_owned())];
    let etag = reply.header("etag").context("an entity tag")?;
    let again = world.api.send(reqwest::Method::GET, &path, &with("if-none-match", etag)).await?;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    let packed = world.api.send(reqwest::Method::GET, &path, &with("accept-encoding", "zstd")).await?;
    assert_eq!(zstd::decode_all(packed.body.as_slice())?, reply.body);
    // A truncated CSV looks like a whole one, so a CSV is sent only after it is complete.
    let sheet = world.get(&format!("{path}&format=csv")).await?;
    assert_eq!(sheet.header("content-length"), Some(sheet.body.len().to_string().as_str()));
    assert_eq!(sheet.text().matches("\r\n").count(), COPIES * DIVIDENDS + 1);
    let old =
        raw(&world, &format!("GET {path} HTTP/1.0\r\nx-api-key: {}\r\n\r\n", world.professional)).await?;
    let (head, body) = old.split_once("\r\n\r\n").context("a head")?;
    assert!(head.contains("content-length: ") && body.as_bytes() == reply.body, "{head}");
    Ok(())
}

/// Sends a raw HTTP request. Returns the response up to the end of the connection.
async fn raw(world: &World, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(world.api.base_url.trim_start_matches("http://")).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn an_answer_that_fails_in_the_middle_has_no_end() -> Result<()> {
    let (world, path) = wide().await?;
    // The API cannot decode this value, and no program writes it.
    let late = format!("symbol = 'S{COPIES}' and ex_date = '2024-06-13'");
    let spoil = format!("update read_g1.dividends set frequency = frequency || '?' where {late}");
    world.app.sql(&spoil, &[]).await?;
    let close = "host: a\r\nconnection: close\r\n";
    let request = format!("GET {path} HTTP/1.1\r\n{close}x-api-key: {}\r\n\r\n", world.professional);
    let broken = raw(&world, &request).await?;
    assert!(broken.starts_with("HTTP/1.1 200") && broken.len() > 1_000_000, "{} bytes", broken.len());
    assert!(!broken.ends_with("0\r\n\r\n") && !broken.contains("\"meta\""), "it looks whole");
    eventually(Duration::from_secs(120), async || {
        ensure!(
            world.api.process.log().contains("a streamed response was truncated"),
            "{}",
            world.api.process.log_tail(5)
        );
        Ok(())
    })
    .await?;
    // An error before the first byte is an ordinary error response.
    for path in [format!("{path}&format=csv"), format!("/v1/bulk/dividends?symbols=S{COPIES}")] {
        assert_eq!(world.get(&path).await?.status, 500, "{path}");
    }
    world.app.sql(&format!("update read_g1.dividends set frequency = 'quarterly' where {late}"), &[]).await?;
    assert!(is_whole(&world.json(&path).await?), "what failed is kept by nobody");
    Ok(())
}

#[tokio::test]
async fn forty_long_answers_that_nobody_takes_hold_little() -> Result<()> {
    let (world, path) = wide().await?;
    let before = world.api.memory_kilobytes("VmRSS")?;
    let mut silent = Vec::new();
    for n in 0..10 {
        let key = world.app.key("professional").await?;
        for _ in 0..4 {
            let mut stream = connect(&world.api, n).await?;
            stream
                .write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n").as_bytes())
                .await?;
            silent.push(stream);
        }
    }
    // Each client reads the beginning of its response and nothing more.
    for stream in &mut silent {
        let mut start = [0; 12];
        stream.read_exact(&mut start).await?;
        assert_eq!(&start, b"HTTP/1.1 200");
        others_are_served(&world.api, &world.professional).await?;
    }
    // Another account still gets a whole response.
    assert!(is_whole(&world.json(&path).await?));
    let (held, most) =
        (world.api.memory_kilobytes("VmRSS")? - before, world.api.memory_kilobytes("VmHWM")? - before);
    eprintln!("40 answers of 9 MB hold {} MB, {} MB at most", held / 1024, most / 1024);
    assert!(most < 160 * 1024, "{held} kB are held, {most} kB were");
    // A client that reads later gets the whole response.
    let stream = silent.last_mut().context("one of forty")?;
    let end = b"0\r\n\r\n";
    let mut taken = Vec::new();
    while !taken.ends_with(end) {
        ensure!(stream.read_buf(&mut taken).await? > 0, "closed after {} bytes", taken.len());
    }
    assert!(taken.len() > 8_000_000, "{} bytes", taken.len());
    Ok(())
}

#[tokio::test]
async fn short_answers_do_not_wait_for_a_flood_of_long_ones() -> Result<()> {
    let (world, path) = wide().await?;
    let keys = [world.app.key("professional").await?, world.app.key("professional").await?];
    let timed = async |path: &str, key: &str| -> Result<Duration> {
        let started = Instant::now();
        let reply = world.api.get(path, Some(key)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        Ok(started.elapsed())
    };
    let flood = try_join_all((0..8).map(|n| timed(&path, &keys[n % 2])));
    let short = async {
        let mut times = Vec::new();
        for limit in 1..=50 {
            // Each request has another limit, so its response is not cached.
            let path = format!("/v1/stocks/COLA/dividends?limit={limit}");
            times.push(timed(&path, &world.professional).await?);
        }
        anyhow::Ok(times)
    };
    let (mut long, mut short) = tokio::try_join!(flood, short)?;
    long.sort_unstable();
    short.sort_unstable();
    let (short, long) = (short[short.len() / 2], long[long.len() / 2]);
    assert!(short * 10 < long, "half of the short answers take {short:?}, of the long ones {long:?}");
    Ok(())
}
