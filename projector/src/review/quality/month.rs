//! Quality of each source by month. It is measured once, and neither corrections nor rebuilds change it.

use anyhow::Context;
use chrono::NaiveDate;
use store::db;
use tokio_postgres::{Config, IsolationLevel};

use crate::generation::Generation;
use crate::review::audit::count_agreements;
use crate::review::security::AuditContext;

const STORE: &str = include_str!("../../../queries/quality/month.sql");
/// Notification that makes every API instance read the new month.
const NOTIFY: &str = "select pg_notify('projection', 'quality')";

/// Measures the quality of the served data, and stores it as that of `month`, unless the month has it already.
pub(crate) async fn store_month(config: &Config, month: NaiveDate) -> anyhow::Result<()> {
    let mut client = db::connect_migrated(config).await?;
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    let generation = Generation::load_served(&transaction).await?;
    let (market, _) = AuditContext::load(&transaction, &generation).await?;
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
