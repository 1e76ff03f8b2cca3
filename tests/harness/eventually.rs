//! Waiting for a condition by repeated attempts, instead of a fixed sleep.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

const POLL: Duration = Duration::from_millis(25);

/// Calls `attempt` until it succeeds, and returns the value. If `attempt` still fails after `limit`, returns its last
/// error.
pub async fn eventually<T>(limit: Duration, attempt: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    eventually_every(POLL, limit, attempt).await
}

/// Like [`eventually`], with a given pause between attempts.
pub async fn eventually_every<T>(
    pause: Duration,
    limit: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        match attempt().await {
            Ok(answer) => return Ok(answer),
            Err(error) if started.elapsed() > limit => {
                return Err(error).with_context(|| format!("still not so after {limit:?}"));
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
    }
}
