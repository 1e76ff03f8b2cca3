//! Responses to bytes that are not HTTP, and to request heads that are too large. They count against the limit of the
//! client's address.

use anyhow::Result;
use harness::TestApp;
use reqwest::Method;

use super::{MANY, raw, statuses};

/// Checks that the response is one JSON error with this status and code, and with rate-limit headers.
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
async fn what_is_no_http_is_told_so() -> Result<()> {
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
        assert_eq!(statuses(&raw(&api, bytes).await?), [400]);
    }
    let (long, path) = ("k".repeat(200 * 1024), "k".repeat(80 * 1024));
    let large = format!("GET /v1/stocks HTTP/1.1\r\nhost: a\r\nx-api-key: {long}\r\n\r\n");
    // The server may close the connection before the client has sent everything. The client may then lose the reply.
    let reply = raw(&api, large.as_bytes()).await.unwrap_or_default();
    assert!([&[][..], &[431]].contains(&&statuses(&reply)[..]), "{reply}");
    let large = format!("GET /v1/{path} HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(statuses(&raw(&api, large.as_bytes()).await?), [414]);
    // The earlier request on the connection is answered normally.
    let answer = raw(&api, b"GET /v1/health HTTP/1.1\r\nhost: a\r\n\r\nhello\r\n\r\n").await?;
    assert_eq!(statuses(&answer), [200, 400], "{answer}");
    Ok(())
}

#[tokio::test]
async fn what_is_no_http_counts_against_its_address() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("ADDRESS_CALLS_PER_MINUTE", "1"), ("ADDRESS_CALLS_BURST", "20")]).await?;
    for _ in 0..20 {
        let reply = raw(&api, b"hello\r\n\r\n").await?;
        assert_eq!(statuses(&reply), [400], "{reply}");
    }
    let reply = api.get("/v1/health", None).await?;
    assert_eq!(reply.status, 429, "the twenty-first call of twenty");
    assert!(reply.header("retry-after").is_some(), "{reply:?}");
    Ok(())
}

#[tokio::test]
async fn a_request_names_exactly_one_host() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&MANY).await?;
    let key = app.key("professional").await?;
    let ask = async |version: &str, hosts: &str| {
        let request = format!(
            "GET /v1/stocks?limit=1 HTTP/{version}\r\n{hosts}x-api-key: {key}\r\nconnection: close\r\n\r\n"
        );
        raw(&api, request.as_bytes()).await
    };
    for hosts in ["", "host: a\r\nhost: a\r\n", "host: a\r\nhost: b\r\n", "host: a b\r\n", "host: user@a\r\n"]
    {
        is_told(&ask("1.1", hosts).await?, 400, "BAD_REQUEST");
    }
    assert_eq!(statuses(&ask("1.1", "host: a\r\n").await?), [200]);
    let old = ask("1.0", "").await?;
    assert!(old.starts_with("HTTP/1.0 200"), "HTTP/1.0 has no such header: {old}");
    Ok(())
}

#[tokio::test]
async fn a_refused_encoding_carries_no_data_and_hides_no_error() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("professional").await?;
    let none = ("accept-encoding", "identity;q=0, *;q=0".to_owned());
    for path in ["/v1/stocks?limit=1", "/openapi.json"] {
        let reply = api.send(Method::GET, path, &[("x-api-key", key.clone()), none.clone()]).await?;
        assert_eq!(reply.status, 406, "{path}");
        assert_eq!(reply.json()?["code"], "NOT_ACCEPTABLE", "{path}");
        assert!(!reply.text().contains("\"data\"") && !reply.text().contains("\"paths\""), "{path}");
        assert!(reply.header("vary").is_some_and(|vary| vary.contains("Accept-Encoding")), "{reply:?}");
    }
    assert_eq!(api.send(Method::GET, "/v1/stocks", &[none]).await?.status, 401);
    Ok(())
}

#[tokio::test]
async fn a_name_that_is_no_text_is_named_alone() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("professional").await?;
    for path in ["/v1/stocks/%FF/quote", "/v1/etfs/%FF/holdings", "/v1/stocks/A%FFB/dividends"] {
        let reply = api.get(path, Some(&key)).await?;
        assert!([400, 404].contains(&reply.status.as_u16()), "{path}: {}", reply.text());
        let text = reply.text();
        assert!(
            text.contains('\u{fffd}') && !text.contains("/v1/") && !text.contains("quote"),
            "{path}: {text}"
        );
    }
    Ok(())
}
