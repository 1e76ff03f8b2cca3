//! Quality of each source by month. It is measured once, and neither corrections nor rebuilds change it.
//!
//! Background measurement of the quality of a month, after the market date has passed into the next month.

use anyhow::Context;
use chrono::NaiveDate;
use store::db;
use tokio::task::JoinSet;
use tokio_postgres::{Config, IsolationLevel};

use crate::generation::Generation;
use crate::review::audit::count_agreements;
use crate::review::load_market;

const STORE: &str = include_str!("../../../queries/quality/month.sql");
/// Notification that makes every API instance read the new month.
const NOTIFY: &str = "select pg_notify('projection', 'quality')";

/// Measures the quality of the served data, and stores it as that of `month`, unless the month has it already.
async fn store_month(config: &Config, month: NaiveDate) -> anyhow::Result<()> {
    let mut client = db::connect_migrated(config).await?;
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    let generation = Generation::load_served(&transaction).await?;
    let (market, _) = load_market(&transaction, &generation).await?;
    let market = market.context("nothing is derived yet")?;
    let (mut sources, mut agreeing, mut ex_dates) = (Vec::new(), Vec::new(), Vec::new());
    for agreement in count_agreements(&transaction, &market).await? {
        sources.push(agreement.source);
        agreeing.push(i64::try_from(agreement.agreeing)?);
        ex_dates.push(i64::try_from(agreement.ex_dates)?);
    }
    transaction.execute(STORE, &[&generation.id, &month, &sources, &agreeing, &ex_dates]).await?;
    transaction.execute(NOTIFY, &[]).await?;
    Ok(transaction.commit().await?)
}

/// Measurement in progress. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct MonthlyQuality {
    config: Config,
    running: JoinSet<()>,
    /// Month of the last measurement. After an error, the next session measures it again.
    started: Option<NaiveDate>,
}

impl MonthlyQuality {
    pub(crate) fn new(config: Config) -> Self {
        Self { config, running: JoinSet::new(), started: None }
    }

    /// Starts the measurement of a month, unless this session has started it before.
    pub(crate) fn start(&mut self, month: Option<NaiveDate>) {
        while self.running.try_join_next().is_some() {}
        let Some(month) = month.filter(|month| Some(*month) != self.started && self.running.is_empty())
        else {
            return;
        };
        self.started = Some(month);
        let config = self.config.clone();
        self.running.spawn(async move {
            match store_month(&config, month).await {
                Ok(()) => tracing::info!(%month, "quality of the month measured"),
                Err(error) => tracing::warn!(error = %format!("{error:#}"), %month, "cannot measure the quality of the month"),
            }
        });
    }

    /// Waits for the end of the measurement.
    pub(crate) async fn finish(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}
