//! Position of a run in the log, and a function that waits until the served tables contain the run.

use std::time::Duration;

use anyhow::bail;
use store::{FromRow, sql_row};
use tokio::time::Instant;
use tokio_postgres::{Client, GenericClient};

use crate::generation::Generation;

const POSITION: &str = include_str!("../../../queries/effect/position.sql");
const POLL_INTERVAL: Duration = Duration::from_millis(100);

sql_row! {
    /// Position of a run in the log, and the progress of the facts and of the served tables.
    #[derive(Debug)]
    pub(super) struct RunPosition {
        pub(super) served: i64,
        checkpoint: i64,
        /// `true` if a projector applies the log to the fact set. The lease of the fact set then has a holder.
        followed: bool,
        /// Sequence of the run's first message; `None` if the facts do not contain the run.
        pub(super) first: Option<i64>,
        /// Sequence of the run's last message; `None` while the facts do not contain it.
        pub(super) last: Option<i64>,
        pub(super) source: Option<String>,
    }
}

impl RunPosition {
    pub(super) async fn load(
        client: &impl GenericClient,
        generation: &Generation,
        run: &str,
    ) -> Result<Self, tokio_postgres::Error> {
        Self::from_row(&client.query_one(POSITION, &[&run, &generation.fact_set]).await?)
    }

    pub(super) fn is_current(&self) -> bool {
        self.served == self.checkpoint
    }

    pub(super) fn is_complete(&self) -> bool {
        self.last.is_some()
    }
}

/// Waits until the served tables contain all facts and the complete run. If `seconds` is 0, an incomplete run suffices.
///
/// # Errors
/// The condition is not met in time, or no projector applies the log.
pub(super) async fn wait_until_served(
    client: &Client,
    generation: &Generation,
    run: &str,
    seconds: u64,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let position = RunPosition::load(client, generation, run).await?;
        let begun = seconds == 0 && position.first.is_some();
        if position.is_current() && (begun || position.is_complete()) {
            return Ok(());
        }
        if !position.followed || Instant::now() >= deadline {
            let served = position.served;
            match position.first {
                None => bail!(
                    "cannot compare run {run}: the served tables, which end at message {served}, do not contain it\n\
                     see ingest runs for its id, and projector status"
                ),
                Some(_) => bail!(
                    "cannot compare run {run}: the served tables end at message {served}\n\
                     see projector status; --wait SECONDS waits for a running projector"
                ),
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
