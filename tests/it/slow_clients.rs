//! Slow and greedy clients. Other clients are still served meanwhile.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use harness::{Api, Signal, TestApp, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::api_world::World;

const CALL: &str = "/v1/stocks?limit=1";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// About four times the number of wrong keys that one address may send in a burst.
const FLOOD: usize = 1_000;
/// Maximum wait for an event that certainly happens, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of bytes after which a head that arrives byte by byte should be refused. They take more than ten times
/// the time limit of a head.
const MOST_DROPS: usize = 500;
/// Time after which a client of a flood stops sending.
const FLOOD_TIME: Duration = Duration::from_secs(2);
/// Timeouts so short that a test can wait for them.
const SHORT: [(&str, &str); 2] = [("API_IDLE_TIMEOUT_MS", "3000"), ("API_WRITE_TIMEOUT_MS", "500")];

fn address(api: &Api) -> Result<SocketAddr> {
    Ok(api.base_url.trim_start_matches("http://").parse()?)
}

/// Connects from the n-th address of 127.1.0.0/16, with a small receive buffer.
pub(crate) async fn connect(api: &Api, n: u16) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let [high, low] = n.to_be_bytes();
    socket.bind(SocketAddr::from(([127, 1, high, low], 0)))?;
    Ok(socket.connect(address(api)?).await?)
}

/// Fails if a new client with a key is not served.
pub(crate) async fn others_are_served(api: &Api, key: &str) -> Result<()> {
    let client = harness::client(PATIENCE)?;
    let reply = client.get(format!("{}{CALL}", api.base_url)).header("x-api-key", key).send().await?;
    let status = reply.status();
    ensure!(status == 200, "{status}");
    Ok(())
}

fn open_files(api: &Api) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{}/fd", api.process.pid()))?.count())
}

/// Waits until the server has at most five more files open than `before`.
async fn all_is_let_go(api: &Api, before: usize) -> Result<()> {
    eventually(PATIENCE, async || {
        let now = open_files(api)?;
        ensure!(now <= before + 5, "{now} files are open, {before} were");
        Ok(())
    })
    .await
}

/// Returns true if the server closes the connection.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn clients_that_ask_and_never_read_hold_nothing() -> Result<()> {
    let app = TestApp::start().await?;
    let (api, key) = (app.api_serve_with(&SHORT).await?, app.key("professional").await?);
    others_are_served(&api, &key).await?;
    let before = open_files(&api)?;
    // The requests are pipelined, so that the responses exceed the buffers of the kernel.
    let asking = "GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(40);
    let mut silent = Vec::new();
    for n in 0..40 {
        let mut stream = connect(&api, n % 4).await?;
        stream.write_all(asking.as_bytes()).await?;
        silent.push(stream);
    }
    others_are_served(&api, &key).await?;
    all_is_let_go(&api, before).await?;
    others_are_served(&api, &key).await
}

#[tokio::test]
async fn heads_that_come_in_drops_end_in_time() -> Result<()> {
    let app = TestApp::start().await?;
    let (api, key) = (app.api_serve_with(&SHORT).await?, app.key("professional").await?);
    let mut dripping = Vec::new();
    for n in 0..200 {
        let mut stream = connect(&api, n).await?;
        stream.write_all(b"GET /v1/stocks HTTP/1.1\r\nhost: a\r\nx-a: ").await?;
        dripping.push(stream);
    }
    // Each byte comes well within the time limit, but the limit applies to the whole head. A server that applied the
    // limit to each byte would take all of them.
    let drip = async |mut stream: TcpStream| -> bool {
        let mut drops = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..MOST_DROPS {
            if stream.write_all(b"a").await.is_err() {
                return true;
            }
            drops.tick().await;
        }
        false
    };
    let (ended, served) =
        tokio::join!(join_all(dripping.into_iter().map(drip)), others_are_served(&api, &key));
    served?;
    let open = ended.iter().filter(|is_ended| !**is_ended).count();
    assert_eq!(open, 0, "heads of {MOST_DROPS} single bytes are still read");
    Ok(())
}

#[tokio::test]
async fn idle_connections_lock_nobody_out() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("API_MAX_CONNECTIONS", "1000")]).await?;
    let key = app.key("professional").await?;
    others_are_served(&api, &key).await?;
    let mut idle = Vec::new();
    for n in 0..5_000 {
        idle.push(connect(&api, n % 50).await?);
    }
    others_are_served(&api, &key).await?;
    all_is_let_go(&api, 1_050).await?;
    // The oldest connections were closed first, and the newest are still open.
    assert!(is_closed(&mut idle[0]).await);
    let newest = idle.last_mut().expect("one of five thousand");
    newest.write_all(b"GET /v1/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    newest.read_to_string(&mut answer).await?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_the_oldest_idle_one_goes() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("API_ADDRESS_CONNECTIONS_WITHOUT_KEY", "20")]).await?;
    let key = app.key("professional").await?;
    let mut keyed = connect(&api, 1).await?;
    let call = format!("GET {CALL} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    keyed.write_all(call.as_bytes()).await?;
    let mut start = [0; 12];
    keyed.read_exact(&mut start).await?;
    assert_eq!(&start, b"HTTP/1.1 200");
    let mut idle = Vec::new();
    for _ in 0..30 {
        idle.push(connect(&api, 1).await?);
    }
    for stream in &mut idle[..10] {
        assert!(is_closed(stream).await);
    }
    // A connection that has shown a valid key stays open and is served.
    let last = call.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    keyed.write_all(last.as_bytes()).await?;
    let mut rest = String::new();
    keyed.read_to_string(&mut rest).await?;
    assert!(rest.contains("HTTP/1.1 200"), "{rest}");
    others_are_served(&api, &key).await
}

#[tokio::test]
async fn floods_storms_and_half_closed_connections_pass_by() -> Result<()> {
    let app = TestApp::start().await?;
    let (api, key) = (app.api_serve_with(&SHORT).await?, app.key("professional").await?);
    others_are_served(&api, &key).await?;
    let before = open_files(&api)?;
    let flood = "GET /v1/stocks HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2_000);
    let floods = (0..20).map(async |n| -> Result<()> {
        let mut stream = connect(&api, n).await?;
        // The server may close the connection before everything is sent.
        let _ = tokio::time::timeout(FLOOD_TIME, stream.write_all(flood.as_bytes())).await;
        Ok(())
    });
    let storm = (0..1_000).map(async |n| connect(&api, 100 + n % 20).await.map(drop));
    let half_closed = (0..100).map(async |n| -> Result<TcpStream> {
        let mut stream = connect(&api, 200 + n).await?;
        stream.write_all(b"GET /v1/health HTT").await?;
        stream.shutdown().await?;
        Ok(stream)
    });
    let (floods, storm, half_closed, served) =
        tokio::join!(join_all(floods), join_all(storm), join_all(half_closed), others_are_served(&api, &key));
    served?;
    floods.into_iter().chain(storm).collect::<Result<Vec<()>>>()?;
    let half_closed = half_closed.into_iter().collect::<Result<Vec<TcpStream>>>()?;
    all_is_let_go(&api, before).await?;
    drop(half_closed);
    others_are_served(&api, &key).await
}

#[tokio::test]
async fn a_storm_of_clients_waits_for_a_server_that_stands_still() -> Result<()> {
    let app = TestApp::start().await?;
    let (mut api, key) = (app.api_serve().await?, app.key("professional").await?);
    others_are_served(&api, &key).await?;
    api.process.signal(Signal::STOP)?;
    // If the listen backlog were too small for all clients, some could connect only after the server accepts again.
    let storm = join_all((0..1_000).map(|n| connect(&api, 100 + n % 20)));
    let storm = tokio::time::timeout(PATIENCE, storm).await;
    api.process.signal(Signal::CONT)?;
    let storm = storm?.into_iter().collect::<Result<Vec<TcpStream>>>()?;
    others_are_served(&api, &key).await?;
    drop(storm);
    Ok(())
}

/// Returns a text with the form and the checksum of a valid key. The key does not exist.
fn guess(n: usize) -> String {
    let random = format!("{n:030}");
    let mut rest = crc32fast::hash(random.as_bytes());
    let digits: Vec<u8> = (0..6)
        .map(|_| {
            let digit = BASE62[(rest % 62) as usize];
            rest /= 62;
            digit
        })
        .collect();
    format!("dds_live_{random}{}", digits.iter().rev().copied().map(char::from).collect::<String>())
}

#[tokio::test]
async fn guessers_hold_up_neither_others_nor_who_shares_their_address() -> Result<()> {
    let app = TestApp::start().await?;
    // The limit of calls for each address would end the flood early, so it is raised.
    let many = [("ADDRESS_CALLS_PER_MINUTE", "10000000"), ("ADDRESS_CALLS_BURST", "10000000")];
    let api = app.api_serve_with(&many).await?;
    let (key, idle) = (app.key("professional").await?, app.key("professional").await?);
    others_are_served(&api, &idle).await?;
    others_are_served(&api, &key).await?;
    let guessed = AtomicUsize::new(0);
    let flood = (0..20).map(async |n| -> Result<()> {
        let mut answer = vec![0; 1 << 16];
        // Half of the connections come from the address that `others_are_served` uses.
        let mut stream =
            if n % 2 == 0 { TcpStream::connect(address(&api)?).await? } else { connect(&api, n).await? };
        while guessed.load(Ordering::Relaxed) < FLOOD {
            let guess = guess(guessed.fetch_add(1, Ordering::Relaxed));
            let call = format!("GET {CALL} HTTP/1.1\r\nhost: a\r\nx-api-key: {guess}\r\n\r\n");
            stream.write_all(call.as_bytes()).await?;
            let read = stream.read(&mut answer).await?;
            ensure!(
                answer[..read].starts_with(b"HTTP/1.1 4"),
                "{}",
                String::from_utf8_lossy(&answer[..read])
            );
        }
        Ok(())
    });
    let others = async {
        let mut served = 0;
        while guessed.load(Ordering::Relaxed) < FLOOD {
            others_are_served(&api, &key).await?;
            others_are_served(&api, &idle).await?;
            served += 2;
        }
        anyhow::Ok(served)
    };
    let (flooded, served) = tokio::join!(join_all(flood), others);
    let served = served?;
    flooded.into_iter().collect::<Result<Vec<()>>>()?;
    // Twenty connections guess. If calls waited for the flood to end, one or two would be served.
    assert!(served >= 10, "{served} calls are served during {FLOOD} guesses");
    others_are_served(&api, &idle).await
}

#[tokio::test]
async fn a_server_needs_a_thread() -> Result<()> {
    let app = TestApp::start().await?;
    for workers in ["0", "1025", "two"] {
        let refused = app.api(&["serve", "--workers", workers]).await?;
        ensure!(refused.code == 2 && refused.stderr.contains("--workers"), "{workers}: {refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn one_greedy_account_waits_in_its_own_line() -> Result<()> {
    // One thread renders all responses.
    let settings =
        [("API_WORKERS", "1"), ("API_READ_TIMEOUT_MS", "30000"), ("API_REQUEST_TIMEOUT_MS", "60000")];
    let world = World::start_with(&settings).await?;
    // A bulk answer waits while its table is locked. It represents an expensive answer.
    let holder = world.app.servers().postgres.connect(world.app.database()).await?;
    holder.batch_execute("begin; lock table read_g1.dividends in access exclusive mode").await?;
    let bulk = async |n: usize| world.get(&format!("/v1/bulk/dividends?symbols=COLA&per_symbol={n}")).await;
    let greedy = join_all((1..=70).map(bulk));
    let others = async {
        // Two requests are rendered and sixty wait. Further requests are refused, and their charge is refunded.
        let used = async || -> Result<i64> {
            world.app.sql_value("select coalesce(max(used), 0) from accounts.limiter").await
        };
        eventually(PATIENCE, async || {
            let used = used().await?;
            ensure!((60..=64).contains(&used), "{used} are charged");
            Ok(())
        })
        .await?;
        // The table is still locked, so none of the greedy account's requests has ended.
        for _ in 0..5 {
            others_are_served(&world.api, &world.free).await?;
            let health = world.api.get("/v1/health", None).await?;
            ensure!(health.status == 200, "{health:?}");
        }
        holder.batch_execute("rollback").await?;
        anyhow::Ok(())
    };
    let (replies, served) = tokio::join!(greedy, others);
    served?;
    let replies = replies.into_iter().collect::<Result<Vec<_>>>()?;
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status == 503).collect();
    let answered = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(answered + refused.len(), 70);
    assert!((6..=10).contains(&refused.len()), "{} refused", refused.len());
    assert!(refused.iter().all(|reply| reply.header("retry-after").is_some()));
    Ok(())
}
