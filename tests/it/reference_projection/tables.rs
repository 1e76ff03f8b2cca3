//! Tables of the service that are compared with the reference projection. They are read in one snapshot.

use anyhow::Result;
use harness::TestApp;
use market::day::date_of;
use market::history::Observation as Seen;
use serde_json::Value;
use store::facts::read_packed_bars;
use tokio_postgres::{Row, Transaction};

use super::{Bar, BarKey, Figure, Observation};
use crate::records::observed;

const RECORDS: &str = "select symbol, kind, source, packed from records";
const BARS: &str = "select symbol, source, days, close, range, volume, extra, versions from bars";
const LETTERS: &str = "select sequence, item from control.dead_letters where fact_set = current_schema()";
const CLOSES: &str = "select s.symbol, b.date, b.close::text from stocks s, price_bars(s.symbol) b";
const AMOUNTS: &str =
    "select symbol, ex_date, amount::text from dividends where status in ('paid', 'declared')";

/// Rows of one generation, and of the facts from which this generation is derived.
pub(super) struct Tables {
    pub checkpoint: i64,
    pub version: i64,
    pub frames: Vec<i64>,
    pub dead: Vec<(i64, i32)>,
    pub bars: Vec<(BarKey, Bar)>,
    pub observations: Vec<Observation>,
    pub closes: Vec<Figure>,
    pub amounts: Vec<Figure>,
}

impl Tables {
    pub(super) async fn read(app: &TestApp, generation: i32) -> Result<Self> {
        let mut client = app.servers().postgres.connect(app.database()).await?;
        let level = tokio_postgres::IsolationLevel::RepeatableRead;
        let snapshot = client.build_transaction().isolation_level(level).start().await?;
        let about = format!(
            "select f.name, f.checkpoint, v.sequence
             from control.generations g join control.fact_sets f on f.name = g.fact_set, read_g{generation}.version v
             where g.id = {generation}"
        );
        let about = snapshot.query_one(&about, &[]).await?;
        let facts: &str = about.try_get(0)?;
        snapshot.batch_execute(&format!("set local search_path = {facts}")).await?;
        let frames = rows(&snapshot, "select sequence from frames", |row| Ok(row.try_get(0)?)).await?;
        let dead = rows(&snapshot, LETTERS, |row| Ok((row.try_get(0)?, row.try_get(1)?))).await?;
        let observations = rows(&snapshot, RECORDS, observations_of).await?.concat();
        let bars = rows(&snapshot, BARS, bars_of).await?.into_iter().flatten().collect();
        snapshot.batch_execute(&format!("set local search_path = read_g{generation}")).await?;
        let closes = rows(&snapshot, CLOSES, figure).await?;
        let amounts = rows(&snapshot, AMOUNTS, figure).await?;
        let (checkpoint, version) = (about.try_get(1)?, about.try_get(2)?);
        Ok(Self { checkpoint, version, frames, dead, bars, observations, closes, amounts })
    }
}

async fn rows<T>(
    snapshot: &Transaction<'_>,
    query: &str,
    read: impl Fn(&Row) -> Result<T>,
) -> Result<Vec<T>> {
    snapshot.query(query, &[]).await?.iter().map(read).collect()
}

fn observations_of(row: &Row) -> Result<Vec<Observation>> {
    let symbol: String = row.try_get("symbol")?;
    let observation = |seen: Seen<Value>| {
        let source = seen.source.to_string();
        let said = seen.record["symbol"].as_str().unwrap_or_default().to_owned();
        let (kind, action) = (row.try_get("kind")?, seen.action.to_string());
        let record = seen.record.to_string();
        Ok((symbol.clone(), (source, kind, said, seen.id, seen.revision, action, record), seen.observed_at))
    };
    observed(row.try_get("kind")?, row.try_get("source")?, row.try_get("packed")?)?
        .into_iter()
        .map(observation)
        .collect()
}

fn bars_of(row: &Row) -> Result<Vec<(BarKey, Bar)>> {
    let bars = read_packed_bars(row)?.unpack()?;
    let bar = |index: usize| {
        let (bar, version) = (bars.bar(index), bars.version_of(index));
        let close = bars.decimal(bar.close).filter(|_| !version.retracted).map(|close| close.normalize());
        let key = (row.try_get("source")?, row.try_get("symbol")?, date_of(bar.day));
        Ok((key, (version.revision, version.observation_time(), close)))
    };
    (0..bars.len()).map(bar).collect()
}

fn figure(row: &Row) -> Result<Figure> {
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get::<_, &str>(2)?.parse()?))
}
