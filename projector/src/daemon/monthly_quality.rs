//! Background measurement of the quality of a month, after the market date has passed into the next month.

use chrono::NaiveDate;
use tokio::task::JoinSet;
use tokio_postgres::Config;

use crate::review::quality::store_month;

/// Measurement in progress. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct MonthlyQuality {
    config: Config,
    running: JoinSet<()>,
    /// Month of the last measurement. After an error, the next session measures it again.
    started: Option<NaiveDate>,
}

impl MonthlyQuality {
    pub(super) fn new(config: Config) -> Self {
        Self { config, running: JoinSet::new(), started: None }
    }

    /// Starts the measurement of a month, unless this session has started it before.
    pub(super) fn start(&mut self, month: Option<NaiveDate>) {
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
    pub(super) async fn finish(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}
