//! Reference projection: a simple implementation of the projector, with which tests compare the service's tables.
//!
//! For each source, it stores the greatest version of every bar and dividend. It shares only the decoding of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::mem::take;

use anyhow::{Context, Result, ensure};
use async_nats::HeaderMap;
use chrono::{DateTime, NaiveDate, Utc};
use event_log::record_batch::RecordBatch;
use harness::TestApp;
use market::event::Kind;
use rust_decimal::Decimal;
use serde_json::Value;

use tables::Tables;

mod tables;

/// Version of a row. Of two rows with the same key, the row with the greater version counts. The fields are compared in
/// their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    revision: i64,
    /// True for a retraction with a vendor's id, which outranks every `put` of the same revision.
    final_word: bool,
    observed_at: DateTime<Utc>,
    retracted: bool,
    line: u64,
    frame: String,
    place: usize,
}

/// Key of a bar: source, symbol and session date.
type BarKey = (String, String, NaiveDate);
/// The bar with the greatest version. Fields: revision, time of observation, and close. The close is `None` if the bar
/// is retracted.
type Bar = (i64, DateTime<Utc>, Option<Decimal>);
/// Content of an observation. Fields: source, kind, symbol, id, revision, action, and the record as JSON.
type Said = (String, String, String, Option<String>, i64, String, String);
/// A stored observation: its symbol, its content, and the latest time of observation.
type Observation = (String, Said, DateTime<Utc>);
/// A served close or dividend: its symbol, its date (session or ex-date), and its close or amount.
type Figure = (String, NaiveDate, Decimal);

/// Expected state after some messages from the start of a log.
#[derive(Debug, Default)]
pub(crate) struct ReferenceProjection {
    bars: BTreeMap<BarKey, (Version, Option<Decimal>)>,
    dividends: BTreeMap<(String, String), (Version, Value)>,
    said: BTreeMap<Said, DateTime<Utc>>,
    /// All symbols that a vendor's record has had. The key is the record's source, kind and id.
    symbols: BTreeMap<(String, String, String), BTreeSet<String>>,
    sources: BTreeMap<String, BTreeSet<String>>,
    dead: BTreeSet<(i64, i32)>,
    batches: BTreeMap<String, i64>,
}

impl ReferenceProjection {
    /// Projects the first messages of a log. Their sequences begin at 1.
    pub(crate) fn of(messages: &[(String, HeaderMap, Vec<u8>)]) -> Result<Self> {
        let mut projection = Self::default();
        for ((_, headers, payload), sequence) in messages.iter().zip(1..) {
            match RecordBatch::decode(Some(headers), payload) {
                Ok(batches) => {
                    projection.message(sequence, &batches).with_context(|| format!("message {sequence}"))?
                }
                Err(_) => {
                    projection.dead.insert((sequence, 0));
                }
            }
        }
        Ok(projection)
    }

    pub(crate) fn batch_ids(&self) -> BTreeSet<&str> {
        self.batches.keys().map(String::as_str).collect()
    }

    fn message(&mut self, sequence: i64, batches: &[RecordBatch]) -> Result<()> {
        let mut before = 0;
        for batch in batches {
            self.batch(sequence, before, batch)?;
            before += i32::try_from(batch.body.item_count())?;
        }
        Ok(())
    }

    /// Adds a batch. `before` is the number of items in the earlier batches of the same message.
    fn batch(&mut self, sequence: i64, before: i32, batch: &RecordBatch) -> Result<()> {
        if self.batches.contains_key(&batch.id.to_string()) {
            return Ok(());
        }
        self.batches.insert(batch.id.to_string(), sequence);
        let kind = batch.body.kind();
        if matches!(kind, Kind::Run | Kind::Reject) {
            return Ok(());
        }
        for (row, place) in batch.body.rows_json()?.as_array().context("rows")?.iter().zip(0..) {
            if row.to_string().contains("\\u0000") {
                self.dead.insert((sequence, before + i32::try_from(place)? + 1));
            } else if kind == Kind::Price {
                self.bar(batch, row, place)?;
            } else {
                self.observation(batch, row, place)?;
            }
        }
        Ok(())
    }

    fn bar(&mut self, batch: &RecordBatch, row: &Value, place: usize) -> Result<()> {
        let symbol = text(row, "symbol")?;
        self.sources.entry(symbol.clone()).or_default().insert(batch.source.clone());
        let close = row["close"].as_str().map(str::parse).transpose()?;
        let version = version(batch, row, batch.line, place)?;
        keep_greater(
            &mut self.bars,
            (batch.source.clone(), symbol, text(row, "date")?.parse()?),
            version,
            close,
        );
        Ok(())
    }

    fn observation(&mut self, batch: &RecordBatch, row: &Value, place: usize) -> Result<()> {
        let (kind, record, id) = (batch.body.kind(), &row["record"], row["id"].as_str());
        let symbol = record["symbol"].as_str().unwrap_or_default().to_owned();
        let version = version(batch, row, row["line"].as_u64().context("line")?, place)?;
        let source = batch.source.clone();
        if let Some(id) = id {
            let named = (source.clone(), kind.to_string(), id.to_owned());
            self.symbols.entry(named).or_default().insert(symbol.clone());
        }
        let said = (
            source.clone(),
            kind.to_string(),
            symbol.clone(),
            id.map(str::to_owned),
            version.revision,
            text(row, "action")?,
            record.to_string(),
        );
        let seen = self.said.entry(said).or_insert(version.observed_at);
        *seen = version.observed_at.max(*seen);
        if kind == Kind::Dividend {
            self.sources.entry(symbol).or_default().insert(source.clone());
            keep_greater(&mut self.dividends, (source, dividend_key(id, record)), version, record.clone());
        }
        Ok(())
    }

    /// Compares the facts and the served tables of a generation with the log. Returns the checkpoint.
    pub(crate) async fn check(app: &TestApp, generation: i32) -> Result<i64> {
        let messages = crate::log_copies::messages(app).await?;
        let mut tables = Tables::read(app, generation).await?;
        let (closes, amounts) = (take(&mut tables.closes), take(&mut tables.amounts));
        let until = |sequence: i64| ReferenceProjection::of(&messages[..usize::try_from(sequence)?]);
        ensure!(tables.version <= tables.checkpoint, "the tables are ahead of their facts");
        let checkpoint = tables.checkpoint;
        until(tables.version)?.check_served(closes, amounts)?;
        until(checkpoint)?.check_facts(tables)?;
        Ok(checkpoint)
    }

    fn check_facts(&self, tables: Tables) -> Result<()> {
        same("applied batches", self.batches.values().copied(), tables.frames)?;
        same("dead letters", self.dead.iter().copied(), tables.dead)?;
        let bars = self.bars.iter();
        let bars = bars
            .map(|(key, (version, close))| (key.clone(), (version.revision, version.observed_at, *close)));
        same("bars", bars, tables.bars)?;
        same("observations", self.observations(), tables.observations)
    }

    /// Returns every observation once for each symbol that the vendor's record has had.
    fn observations(&self) -> impl Iterator<Item = Observation> {
        self.said.iter().flat_map(|(said, seen)| {
            let (source, kind, symbol, id, ..) = said.clone();
            let named = id.and_then(|id| self.symbols.get(&(source, kind, id)));
            let symbols = named.cloned().unwrap_or_else(|| BTreeSet::from([symbol]));
            symbols.into_iter().map(|symbol| (symbol, said.clone(), *seen))
        })
    }

    /// Compares the served closes and dividends of symbols that only one source reports. Other symbols are not
    /// compared, because a policy chooses between their sources.
    fn check_served(&self, closes: Vec<Figure>, amounts: Vec<Figure>) -> Result<()> {
        let single = |figure: &Figure| self.sources.get(&figure.0).is_some_and(|sources| sources.len() == 1);
        let bars = self.bars.iter();
        let live = bars.filter_map(|((_, symbol, day), (_, close))| Some((symbol.clone(), *day, (*close)?)));
        same("closes", live.filter(single), closes.into_iter().filter(single))?;
        let dividends = self.dividends.values().filter(|(version, _)| !version.retracted);
        let live = dividends.map(|(_, record)| amount(record)).collect::<Result<Vec<_>>>()?;
        same("dividends", live.into_iter().filter(single), amounts.into_iter().filter(single))
    }
}

fn amount(record: &Value) -> Result<Figure> {
    Ok((text(record, "symbol")?, text(record, "ex_date")?.parse()?, text(record, "amount")?.parse()?))
}

fn keep_greater<K: Ord, T>(map: &mut BTreeMap<K, (Version, T)>, key: K, version: Version, value: T) {
    if map.get(&key).is_none_or(|(known, _)| *known < version) {
        map.insert(key, (version, value));
    }
}

fn version(batch: &RecordBatch, row: &Value, line: u64, place: usize) -> Result<Version> {
    let retracted = row["action"] == "retract";
    Ok(Version {
        revision: row["revision"].as_i64().context("revision")?,
        final_word: retracted && row["id"].is_string(),
        observed_at: text(row, "observed_at")?.parse()?,
        retracted,
        line,
        frame: batch.id.to_string(),
        place,
    })
}

fn dividend_key(id: Option<&str>, record: &Value) -> String {
    match id {
        Some(id) => format!("id {id}"),
        None => ["symbol", "ex_date", "type", "currency"].map(|name| record[name].to_string()).join(" "),
    }
}

fn text(value: &Value, name: &str) -> Result<String> {
    Ok(value[name].as_str().with_context(|| format!("no {name} in {value}"))?.to_owned())
}

/// Compares two sets of rows without regard to order. The error lists rows that only one of the sets contains.
fn same<T: Ord + Debug>(
    what: &str,
    expected: impl IntoIterator<Item = T>,
    found: impl IntoIterator<Item = T>,
) -> Result<()> {
    let mut expected: Vec<T> = expected.into_iter().collect();
    let mut found: Vec<T> = found.into_iter().collect();
    expected.sort();
    found.sort();
    let only = |these: &[T], those: &[T]| -> Vec<String> {
        let missing = these.iter().filter(|one| those.binary_search(one).is_err());
        missing.take(5).map(|one| format!("{one:?}")).collect()
    };
    ensure!(
        expected == found,
        "{what} are not what the log says: {} rows instead of {}\nonly in the log: {:#?}\nonly in the tables: {:#?}",
        found.len(),
        expected.len(),
        only(&expected, &found),
        only(&found, &expected)
    );
    Ok(())
}
