//! Response headers that report the rate limit and the quota.

use super::*;

#[tokio::test]
async fn every_response_tells_the_limits() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let (api, key) = (&cluster.apis[0], cluster.account("headers@example.com", "free").await?);
    cluster.app.sql("revoke select on read_g1.metrics from dds_api", &[]).await?;
    let cases = [
        (Method::GET, "/v1/health", None, 200, "6000"),
        (Method::GET, "/openapi.json", None, 200, "6000"),
        (Method::GET, "/nowhere", None, 404, "6000"),
        (Method::POST, "/docs", None, 405, "6000"),
        (Method::GET, CALL, None, 401, "120"),
        (Method::GET, CALL, Some(&key), 200, "10"),
        (Method::HEAD, CALL, Some(&key), 200, "10"),
        (Method::GET, "/v1/nope", Some(&key), 404, "10"),
        (Method::PUT, CALL, Some(&key), 405, "10"),
        (Method::GET, "/v1/stocks?limit=0", Some(&key), 400, "10"),
        (Method::GET, "/v1/bulk/quotes?symbols=A", Some(&key), 403, "10"),
        (Method::GET, "/v1/stocks/NOPE/metrics", Some(&key), 500, "10"),
    ];
    for (method, path, key, status, limit) in cases {
        let headers: Vec<(&str, String)> = key.map(|key| ("x-api-key", key.clone())).into_iter().collect();
        let before = chrono::Utc::now().timestamp();
        let reply = api.send(method, path, &headers).await?;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert_eq!(reply.header("x-ratelimit-limit"), Some(limit), "{path} {status}");
        assert!((0..=limit.parse()?).contains(&number(&reply, "x-ratelimit-remaining")?), "{path}");
        assert!(number(&reply, "x-ratelimit-reset")? > before, "{path}");
        assert_eq!(reply.header("x-quota-limit"), key.map(|_| "5000"), "{path}");
        assert_eq!(reply.header("ratelimit").is_some(), key.is_some(), "{path}");
        assert!(reply.header("x-request-id").is_some(), "{path}");
        assert_eq!(reply.header("www-authenticate"), (status == 401).then_some("Bearer"), "{path}");
        assert_eq!(reply.header("allow"), (status == 405).then_some("GET, HEAD"), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn headers_keep_their_promises() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let (api, key) = (&cluster.apis[0], cluster.account("promise@example.com", "free").await?);
    let first = api.get(CALL, Some(&key)).await?;
    assert_eq!(number(&first, "x-ratelimit-remaining")?, 9);
    assert_eq!(first.header("x-quota-remaining"), Some("4999"));
    cluster.limiter("tokens = 0").await?;
    let refused = api.get(CALL, Some(&key)).await?;
    assert_eq!(refused.status, 429);
    let wait = number(&refused, "retry-after")?;
    assert!((1..=6).contains(&wait), "{wait}");
    cluster.limiter(&format!("at = at - interval '{wait} seconds'")).await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    let last = api.get(CALL, Some(&key)).await?;
    let until_reset = number(&last, "x-ratelimit-reset")? - chrono::Utc::now().timestamp();
    assert!((100..=121).contains(&until_reset), "{until_reset}");
    cluster.limiter(&format!("at = at - interval '{until_reset} seconds'")).await?;
    let after = api.get(CALL, Some(&key)).await?;
    assert_eq!((after.status.as_u16(), number(&after, "x-ratelimit-remaining")?), (200, 9));
    Ok(())
}
