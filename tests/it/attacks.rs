//! Attacks on the API: forged client addresses, malformed credentials and paths, and guessed keys. Secrets must not
//! appear in logs or responses.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::join_all;
use harness::{Api, TestApp};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

mod protocol_errors;

const CALL: &str = "/v1/stocks?limit=1";
/// Settings with a low limit of calls per client address, so that a test reaches the limit quickly.
const FEW: [(&str, &str); 2] = [("ADDRESS_CALLS_PER_MINUTE", "100"), ("ADDRESS_CALLS_BURST", "100")];
const MANY: [(&str, &str); 4] = [
    ("ADDRESS_CALLS_PER_MINUTE", "10000000"),
    ("ADDRESS_CALLS_BURST", "10000000"),
    ("ADDRESS_FAILURES_PER_MINUTE", "10000000"),
    ("ADDRESS_FAILURES_BURST", "10000000"),
];

/// Sends these bytes on a new connection. Returns everything that the server sends until it closes the connection.
async fn raw(api: &Api, request: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(api.base_url.trim_start_matches("http://")).await?;
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut answer)).await??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn statuses(answer: &str) -> Vec<u16> {
    let lines = answer.split("HTTP/1.1 ").skip(1);
    lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

/// Sends concurrent calls, one for each element of `headers`. An element contains the values of the `x-forwarded-for`
/// headers of its call. Returns the number of calls with status 200 and the total duration.
async fn forwarded(api: &Api, headers: impl Iterator<Item = Vec<String>>) -> Result<(usize, Duration)> {
    let started = Instant::now();
    let calls = headers.map(async |lines| {
        let lines: Vec<(&str, String)> = lines.into_iter().map(|line| ("x-forwarded-for", line)).collect();
        api.send(Method::GET, "/v1/health", &lines).await
    });
    let replies = join_all(calls).await.into_iter().collect::<Result<Vec<_>>>()?;
    for refused in replies.iter().filter(|reply| reply.status == 429) {
        ensure!(refused.header("retry-after").is_some_and(|seconds| seconds != "0"), "{refused:?}");
        ensure!(refused.header("x-ratelimit-remaining") == Some("0"), "{refused:?}");
    }
    Ok((replies.iter().filter(|reply| reply.status == 200).count(), started.elapsed()))
}

/// Checks that all calls shared one bucket of 100 tokens, which is refilled during the test.
fn one_bucket((passed, took): (usize, Duration)) {
    let flowed = usize::try_from(took.as_millis() / 600).unwrap_or(0) + 1;
    assert!((100..=100 + flowed).contains(&passed), "{passed} in {took:?}");
}

#[tokio::test]
async fn forged_addresses_buy_nothing_behind_a_trusted_proxy() -> Result<()> {
    let app = TestApp::start().await?;
    let trusted = [FEW[0], FEW[1], ("TRUSTED_PROXIES", "127.0.0.0/8,10.0.0.0/8")];
    let api = app.api_serve_with(&trusted).await?;
    let forged = (0..150).map(|n| vec![format!("6.6.{n}.6, 9.9.9.9, 10.1.1.{n}")]);
    one_bucket(forwarded(&api, forged).await?);
    // These headers contain the same client address in other forms. Its bucket is already empty.
    for lines in
        [vec!["9.9.9.9"], vec!["1.1.1.1", "9.9.9.9"], vec!["::ffff:9.9.9.9"], vec!["8.8.8.8", "9.9.9.9:80"]]
    {
        let lines = lines.into_iter().map(str::to_owned).collect();
        let (passed, _) = forwarded(&api, [lines].into_iter()).await?;
        assert!(passed <= 1, "{passed}");
    }
    let rotated = (0..150).map(|n| vec![format!("2001:db8:0:1::{n:x}")]);
    one_bucket(forwarded(&api, rotated).await?);
    let (others, _) = forwarded(&api, (0..50).map(|n| vec![format!("2001:db8:0:{:x}::1", n + 2)])).await?;
    assert_eq!(others, 50);
    // The header is read from right to left, up to the first value that is not an address. The client is the last
    // address that was read, here 10.0.0.9.
    let (passed, _) = forwarded(&api, [vec!["7.7.7.7, <script>, 10.0.0.9".to_owned()]].into_iter()).await?;
    assert_eq!(passed, 1);
    Ok(())
}

#[tokio::test]
async fn without_a_trusted_proxy_forwarding_headers_are_noise() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&FEW).await?;
    let (passed, took) =
        forwarded(&api, (0..150).map(|n| vec![format!("9.9.9.{n}"), "5.5.5.5".to_owned()])).await?;
    let flowed = usize::try_from(took.as_millis() / 600)? + 1;
    // The harness has already called `/v1/health`, so fewer than 100 calls may succeed.
    assert!(passed <= 100 + flowed, "{passed} in {took:?}");
    Ok(())
}

#[tokio::test]
async fn many_addresses_cost_bounded_memory() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("TRUSTED_PROXIES", "127.0.0.1/32")]).await?;
    let before = api.memory_kilobytes("VmRSS")?;
    let connections = (0..4u32).map(async |quarter| -> Result<()> {
        let mut stream = TcpStream::connect(api.base_url.trim_start_matches("http://")).await?;
        let mut answer = vec![0; 1 << 16];
        // Each batch pipelines 100 requests, each from another network.
        for hundred in 0..164u32 {
            let mut requests = String::new();
            for number in 0..100 {
                let network = quarter * 16_400 + hundred * 100 + number;
                let (high, low) = (network >> 8, network & 0xff);
                requests.push_str(&format!(
                    "GET /v1/nope HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 2001:{high:x}:0:{low:x}::1\r\n\r\n"
                ));
            }
            stream.write_all(requests.as_bytes()).await?;
            let mut answered = 0;
            while answered < 100 {
                let read = stream.read(&mut answer).await?;
                ensure!(read > 0, "the connection was closed");
                answered += answer[..read].windows(9).filter(|window| *window == b"HTTP/1.1 ").count();
            }
        }
        Ok(())
    });
    join_all(connections).await.into_iter().collect::<Result<Vec<()>>>()?;
    let after = api.memory_kilobytes("VmRSS")?;
    assert!(after < before + 48 * 1024, "{before} kB before, {after} kB after 65,600 networks");
    Ok(())
}

#[tokio::test]
async fn odd_credentials_are_one_and_the_same_refusal() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&MANY).await?;
    let key = app.key("free").await?;
    let request = |headers: &[u8]| {
        [b"GET /v1/stocks HTTP/1.1\r\nhost: a\r\nconnection: close\r\n".as_slice(), headers, b"\r\n"].concat()
    };
    let (flipped, long) = (key.replace("dds_live_", "dds_test_"), "k".repeat(8_192));
    let refused: [Vec<u8>; 12] = [
        vec![],
        b"x-api-key: \xff\xfe\r\n".to_vec(),
        b"authorization: Bearer \xc3\xa9\r\n".to_vec(),
        format!("x-api-key: {long}\r\n").into_bytes(),
        format!("authorization: Bearer {long}\r\n").into_bytes(),
        format!("x-api-key: {key}\r\nx-api-key: {key}\r\n").into_bytes(),
        format!("authorization: Bearer {key}\r\nauthorization: Bearer {key}\r\n").into_bytes(),
        format!("authorization: Bearer {key}\r\nx-api-key: {flipped}\r\n").into_bytes(),
        format!("authorization: Bearer {key}, Bearer {key}\r\n").into_bytes(),
        format!("authorization: Bearer\r\nx-api-key: {key}\r\n").into_bytes(),
        format!("x-api-key: {}\r\n", key.to_uppercase()).into_bytes(),
        format!("cookie: api_key={key}\r\n").into_bytes(),
    ];
    for headers in refused {
        let answer = raw(&api, &request(&headers)).await?;
        let shown = String::from_utf8_lossy(&headers[..headers.len().min(80)]).into_owned();
        assert_eq!(statuses(&answer), [401], "{shown}");
        assert!(answer.contains("www-authenticate: Bearer\r\n"), "{shown}");
        assert!(
            answer.ends_with(r#"{"code":"INVALID_API_KEY","error":"Missing, invalid or expired API key"}"#)
                || answer
                    .ends_with(r#"{"error":"Missing, invalid or expired API key","code":"INVALID_API_KEY"}"#),
            "{answer}"
        );
    }
    // A NUL byte makes the header invalid, so the request is malformed.
    let answer = raw(&api, &request(format!("x-api-key: {key}\0\r\n").as_bytes())).await?;
    assert_eq!(statuses(&answer), [400]);
    // The key itself is valid.
    let answer = raw(&api, &request(format!("Authorization:  bearer   {key}  \r\n").as_bytes())).await?;
    assert_eq!(statuses(&answer), [200]);
    Ok(())
}

#[tokio::test]
async fn no_path_and_no_method_slips_past_the_key() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&MANY).await?;
    let key = app.key("professional").await?;
    for path in [
        "/v1",
        "/v1/",
        "//v1/stocks",
        "/v1//stocks",
        "/v1/stocks/",
        "/V1/stocks",
        "/v1/./stocks",
        "/v1/../v1/stocks",
        "/v1/%2e%2e/v1/stocks",
        "/%76%31/stocks",
        "/%2576%2531/stocks",
        "/v1%2fstocks",
        "/v1\\stocks",
        "/docs/../v1/stocks",
        "/docs/%2e%2e/v1/stocks",
        "/v1/health/",
        "/v1/health/../stocks",
        "/v1/health;x",
        "/v1/health%00",
        "/v1/stocks/health",
        "/v1/stocks#health",
        "/v1/stocks?x=/v1/health",
        "http://a/v1/stocks",
    ] {
        let answer =
            raw(&api, format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
                .await?;
        let status = statuses(&answer);
        assert!(status == [401] || status == [400], "{path}: {answer}");
        assert!(!answer.contains("\"data\""), "{path}: {answer}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "GETX"] {
        for path in ["/v1/stocks", "/v1/health", "/v1/nope"] {
            let head = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
            let without = raw(&api, format!("{head}\r\n").as_bytes()).await?;
            assert_eq!(statuses(&without), [401], "{method} {path}: {without}");
            let with = raw(&api, format!("{head}x-api-key: {key}\r\n\r\n").as_bytes()).await?;
            let expected = if path == "/v1/nope" { 404 } else { 405 };
            assert_eq!(statuses(&with), [expected], "{method} {path}: {with}");
            assert_eq!(with.contains("allow: GET, HEAD\r\n"), expected == 405, "{with}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_key_opens_its_own_request_only() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("free").await?;
    let with = format!("GET {CALL} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n");
    let without = format!("GET {CALL} HTTP/1.1\r\nhost: a\r\n");
    let pipelined = format!("{with}\r\n{without}\r\n{with}\r\n{without}connection: close\r\n\r\n");
    assert_eq!(statuses(&raw(&api, pipelined.as_bytes()).await?), [200, 401, 200, 401]);
    // A body that looks like a request is not executed.
    let smuggled = format!(
        "{with}content-length: {}\r\n\r\n{without}\r\n{without}connection: close\r\n\r\n",
        without.len() + 2
    );
    assert_eq!(statuses(&raw(&api, smuggled.as_bytes()).await?), [200, 401]);
    let both = format!(
        "{with}content-length: 4\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n"
    );
    assert!(statuses(&raw(&api, both.as_bytes()).await?).len() <= 1);
    Ok(())
}

#[tokio::test]
async fn failed_guesses_are_slowed_but_block_no_valid_key() -> Result<()> {
    let app = TestApp::start().await?;
    let few = [("ADDRESS_FAILURES_PER_MINUTE", "10"), ("ADDRESS_FAILURES_BURST", "20")];
    let api = app.api_serve_with(&few).await?;
    let (used, unused) = (app.key("free").await?, app.key("free").await?);
    assert_eq!(api.get(CALL, Some(&used)).await?.status, 200);
    let guesses = join_all((0..40).map(|_| api.get(CALL, Some("dds_live_guess")))).await;
    let guesses = guesses.into_iter().collect::<Result<Vec<_>>>()?;
    let refused: Vec<_> = guesses.iter().filter(|reply| reply.status == 429).collect();
    assert!((18..=20).contains(&refused.len()), "{}", refused.len());
    assert_eq!(refused[0].header("x-ratelimit-limit"), Some("10"));
    assert_eq!(refused[0].header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(api.get(CALL, Some(&used)).await?.status, 200);
    // A refused address may still look up one key per second, so this valid key is accepted.
    assert_eq!(api.get(CALL, Some(&unused)).await?.status, 200);
    assert_eq!(api.get("/v1/health", None).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn unknown_expired_and_deleted_keys_cannot_be_told_apart() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&MANY).await?;
    app.create_account("a@example.com", "free").await?;
    app.create_account("gone@example.com", "free").await?;
    let expired = app.create_key("a@example.com", "expired").await?;
    let deleted = app.create_key("a@example.com", "deleted").await?;
    let orphan = app.create_key("gone@example.com", "orphan").await?;
    let unknown = app.create_key("a@example.com", "unknown").await?;
    app.sql("update accounts.api_keys set expires_at = now() where name = 'expired'", &[]).await?;
    app.sql("delete from accounts.api_keys where name = 'unknown'", &[]).await?;
    app.api(&["key", "delete", "a@example.com", "deleted"]).await?.success()?;
    app.api(&["account", "delete", "gone@example.com"]).await?.success()?;
    let keys = [&unknown, &expired, &deleted, &orphan];
    let mut took = [const { Vec::new() }; 4];
    let mut first: Option<(Vec<u8>, Vec<String>)> = None;
    for _ in 0..150 {
        for (times, key) in took.iter_mut().zip(keys) {
            let started = Instant::now();
            let reply = api.get(CALL, Some(key)).await?;
            times.push(started.elapsed());
            assert_eq!(reply.status, 401);
            let names = reply.headers.keys().map(ToString::to_string).collect();
            let seen = (reply.body, names);
            assert_eq!(*first.get_or_insert_with(|| seen.clone()), seen);
        }
    }
    // The calls with the four keys alternate, so that other load on the machine affects all keys equally.
    let mut quartiles: Vec<[Duration; 3]> = Vec::new();
    for times in &mut took {
        times.sort();
        quartiles.push([times[times.len() / 4], times[times.len() / 2], times[times.len() * 3 / 4]]);
    }
    for one in &quartiles {
        for other in &quartiles {
            assert!(one[0] <= other[2], "told apart by time: {quartiles:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn secrets_stay_out_of_logs_and_answers() -> Result<()> {
    let app = TestApp::builder().env("RUST_LOG", "debug").start().await?;
    let url = app.endpoints().api_database_url.replace("dds_api@", "dds_api:pa55word@");
    assert!(url.contains("pa55word"), "{url}");
    let settings =
        [("API_DATABASE_URL", url.as_str()), ("CURSOR_SECRET", "c0ffee-c0ffee-c0ffee-c0ffee-c0ffee")];
    let api = app.api_serve_with(&settings).await?;
    let key = app.key("professional").await?;
    let random = &key[9..];
    let encoded = key.replace("_live_", "%5Flive%5f");
    app.sql("revoke select on read_g1.quotes from dds_api", &[]).await?;
    for path in [
        CALL.to_owned(),
        format!("/v1/stocks?api_key={key}"),
        format!("/v1/stocks?{key}"),
        format!("/v1/stocks?x={encoded}"),
        format!("/v1/stocks/{key}/metrics"),
        format!("/v1/stocks/{encoded}/metrics"),
        format!("/v1/sectors/{key}"),
        format!("/v1/etfs/{encoded}"),
        format!("/v1/{key}"),
        format!("/{encoded}"),
        "/v1/stocks/A/quote".to_owned(),
    ] {
        let headers = [("x-api-key", key.clone()), ("x-request-id", key.clone())];
        let reply = api.send(Method::GET, &path, &headers).await?;
        assert!(!reply.text().contains(random), "{path}: {}", reply.text());
        let told =
            reply.headers.values().any(|value| String::from_utf8_lossy(value.as_bytes()).contains(random));
        assert!(!told, "{path}: {:?}", reply.headers);
    }
    let told = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "security", "arguments": { "symbol": key } },
    });
    let greeting = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": key, "version": "1" },
        },
    });
    for message in [told, greeting] {
        let headers = [
            ("x-api-key", key.clone()),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        let reply = api.send_body(Method::POST, "/mcp", &headers, message.to_string().into_bytes()).await?;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(!reply.text().contains(random), "{}", reply.text());
    }
    let dead = app.spawn_with(
        harness::Program::Api,
        &["serve", "--listen", "127.0.0.1:0"],
        &[("API_DATABASE_URL", "postgres://dds_api:pa55word@127.0.0.1:1/x")],
    );
    let dead = dead.await?;
    harness::eventually(Duration::from_secs(120), async || {
        ensure!(dead.log().contains("cannot follow"), "{}", dead.log());
        Ok(())
    })
    .await?;
    for log in [api.process.log(), dead.log()] {
        ensure!(log.contains("answered") || log.contains("cannot follow"), "debug lines are there: {log}");
        for secret in [random, "pa55word", "c0ffee-c0ffee"] {
            let line = log.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{line:?}");
        }
    }
    Ok(())
}
