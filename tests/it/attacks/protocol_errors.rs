//! Bytes that are not HTTP, and oversized heads: answered in JSON, and counted against the client's address.

use anyhow::Result;
use harness::TestApp;

use super::{MANY, raw, statuses};

/// The answer is one JSON error of the service, with the limits' headers.
fn is_told(answer: &str, status: u16, code: &str) {
    assert_eq!(statuses(answer), [status], "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    for name in ["x-request-id: ", "x-ratelimit-limit: ", "x-ratelimit-remaining: ", "x-ratelimit-reset: "] {
        assert!(head.contains(name), "{name} {answer}");
    }
    assert!(head.contains("content-type: application/json"), "{answer}");
    let body: serde_json::Value = serde_json::from_str(body).expect("one JSON value");
    assert_eq!(body["code"], code, "{body}");
    assert!(body["error"].as_str().is_some_and(|error| error.len() > 10), "{body}");
}

#[tokio::test]
async fn what_is_no_http_is_told_so_in_json() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&MANY).await?;
    let nothing_of_http: [&[u8]; 5] = [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 the hello of TLS \r\n\r\n",
        b"GET /v1/stocks HTTP/9.9\r\n\r\n",
        b"GET /v1/stocks HTTP/1.1\r\nno colon here\r\n\r\n",
        b"GET /v1/sto cks HTTP/1.1\r\nhost: a\r\n\r\n",
    ];
    for bytes in nothing_of_http {
        is_told(&raw(&api, bytes).await?, 400, "BAD_REQUEST");
    }
    let (long, path) = ("k".repeat(200 * 1024), "k".repeat(80 * 1024));
    let large = format!("GET /v1/stocks HTTP/1.1\r\nhost: a\r\nx-api-key: {long}\r\n\r\n");
    is_told(&raw(&api, large.as_bytes()).await?, 431, "HEAD_TOO_LARGE");
    let large = format!("GET /v1/{path} HTTP/1.1\r\nhost: a\r\n\r\n");
    is_told(&raw(&api, large.as_bytes()).await?, 431, "HEAD_TOO_LARGE");
    // The earlier request on the connection is answered normally.
    let answer = raw(&api, b"GET /v1/health HTTP/1.1\r\nhost: a\r\n\r\nhello\r\n\r\n").await?;
    assert_eq!(statuses(&answer), [200, 400], "{answer}");
    Ok(())
}

#[tokio::test]
async fn what_is_no_http_counts_against_its_address() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("ADDRESS_CALLS_PER_MINUTE", "1"), ("ADDRESS_CALLS_BURST", "20")]).await?;
    let mut refused = 0;
    for _ in 0..21 {
        let answer = raw(&api, b"hello\r\n\r\n").await?;
        match statuses(&answer)[..] {
            [400] => assert_eq!(refused, 0, "{answer}"),
            _ => refused += usize::from(answer.contains("RATE_LIMITED") && answer.contains("retry-after: ")),
        }
    }
    assert!(refused >= 1, "twenty-one calls of twenty");
    Ok(())
}
