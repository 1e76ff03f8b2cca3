//! Write-ahead log of a call, and the processor time that a synchronous standby needs to replay it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::eventually;

use crate::Bench;
use crate::capacity::{microseconds, ticks_of};
use crate::load::Load;

const PATIENCE: Duration = Duration::from_secs(120);
/// Time after which the statistics of the last call are written.
const STATISTICS_WRITTEN: Duration = Duration::from_secs(4);

impl Bench {
    /// Measures the calls of one account, and the calls of all accounts in turn. Each measurement begins once with a
    /// checkpoint, after which the first change of a page logs the whole page, and once without.
    pub(crate) async fn replay(&mut self) -> Result<()> {
        self.standby = Some(self.app.servers().postgres.replica().await?);
        self.app.sql("alter system set synchronous_standby_names = '*'", &[]).await?;
        self.app.sql("select pg_reload_conf()", &[]).await?;
        let is_synchronous = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        eventually(PATIENCE, async || {
            ensure!(self.app.sql_value::<i64>(is_synchronous).await? == 1, "the standby is not synchronous");
            Ok(())
        })
        .await?;
        let api = self.api("64").await?;
        let all = self.seeded.requests("quote");
        Load::new(&[&api.base_url], 64, Arc::clone(&all)).once().await?;
        tokio::time::sleep(STATISTICS_WRITTEN).await;
        let one = Arc::new(all.iter().take(1).cloned().collect());
        for (accounts, requests) in [(1, one), (self.seeded.keys.len(), all)] {
            for begins_with_checkpoint in [true, false] {
                if begins_with_checkpoint {
                    self.app.sql("checkpoint", &[]).await?;
                }
                let (position, ticks) = self.replayed().await?;
                let load = Load::new(&[&api.base_url], 256, Arc::clone(&requests));
                let figures = load.run(self.seconds()).await?;
                tokio::time::sleep(STATISTICS_WRITTEN).await;
                let (end, later) = self.replayed().await?;
                let bytes = usize::try_from(end - position)? / figures.answered;
                println!(
                    "{accounts:>7} accounts, {:18} {:>9.0}/s {bytes:>5} bytes of WAL, {:>5.2} µs of replay per call",
                    if begins_with_checkpoint { "after a checkpoint" } else { "" },
                    figures.rate(),
                    microseconds(later - ticks, figures.answered)
                );
            }
        }
        Ok(())
    }

    /// End of the primary's log in bytes, after the standby has replayed it, and the clock ticks of the replay so far.
    async fn replayed(&self) -> Result<(i64, u64)> {
        let end: i64 = self.app.sql_value("select (pg_current_wal_lsn() - '0/0')::bigint").await?;
        let standby = self.standby.as_ref().context("a standby")?;
        let client = standby.connect(self.app.database()).await?;
        eventually(PATIENCE, async || {
            let replayed = "select (pg_last_wal_replay_lsn() - '0/0')::bigint";
            ensure!(client.query_one(replayed, &[]).await?.get::<_, i64>(0) >= end, "not replayed");
            Ok(())
        })
        .await?;
        let startup = "select pid from pg_stat_activity where backend_type = 'startup'";
        let pid: i32 = client.query_opt(startup, &[]).await?.context("a process that replays")?.get(0);
        Ok((end, ticks_of(pid.unsigned_abs())?))
    }
}
