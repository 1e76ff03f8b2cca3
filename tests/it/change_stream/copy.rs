//! A client's copy of the market, built only from the events of the change stream.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use rust_decimal::Decimal;
use serde_json::Value;

use super::event_stream::{EventStream, StreamEvent};
use crate::change_feed::Service;

const LISTS: [&str; 4] = ["high-yield", "dividend-growth", "dividend-aristocrats", "dividend-kings"];

/// Rows by id.
type Rows = BTreeMap<String, Value>;

pub(crate) struct StreamCopy {
    /// Symbols that the client follows. Empty means the whole market.
    symbols: Vec<String>,
    last: String,
    rows: BTreeMap<String, Rows>,
    /// Ids of all received changes. The test fails if an id arrives twice.
    seen: BTreeSet<String>,
}

impl StreamCopy {
    /// Creates an empty copy. The client follows `symbols`, or the whole market if `symbols` is empty. The stream
    /// starts after the event with the id `last`.
    pub(crate) fn starting_at(last: &str, symbols: &[&str]) -> Self {
        let symbols = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
        Self { symbols, last: last.to_owned(), rows: BTreeMap::new(), seen: BTreeSet::new() }
    }

    pub(crate) fn events(&self) -> usize {
        self.seen.len()
    }

    /// Applies events until the copy reaches `position` in the change journal, or until the connection ends.
    pub(crate) async fn follow(&mut self, service: &Service, position: i64) -> Result<()> {
        self.follow_for(service, position, usize::MAX).await
    }

    /// Like [`StreamCopy::follow`], but disconnects after at most `events` events.
    pub(crate) async fn follow_for(&mut self, service: &Service, position: i64, events: usize) -> Result<()> {
        let last = self.last.clone();
        let query = if self.symbols.is_empty() {
            String::new()
        } else {
            format!("symbols={}", self.symbols.join(","))
        };
        let mut stream = EventStream::open(&service.api, &query, &service.key, Some(&last)).await?;
        for _ in 0..events {
            let Some(event) = stream.next().await? else { return Ok(()) };
            let reached = event.position();
            self.apply(event)?;
            if reached.is_some_and(|reached| reached >= position) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn apply(&mut self, event: StreamEvent) -> Result<()> {
        if event.is_change() {
            ensure!(self.seen.insert(event.id.clone()), "the event {event:?} came twice");
            let (kind, id) = event.key();
            let rows = self.rows.entry(kind).or_default();
            let is_cancelled = event.data["row"]["status"] == "cancelled";
            match event.name.as_str() {
                "upsert" if !is_cancelled => drop(rows.insert(id, event.data["row"].clone())),
                _ => drop(rows.remove(&id)),
            }
        }
        self.last = event.id;
        Ok(())
    }

    fn rows(&self, kind: &str) -> Rows {
        self.rows.get(kind).cloned().unwrap_or_default()
    }

    /// Fails if the copy differs from full downloads of its symbols. A copy of the whole market is compared for the
    /// symbols in `market` and for its own.
    pub(crate) async fn is_complete(&self, service: &Service, market: &BTreeSet<String>) -> Result<()> {
        let symbols: BTreeSet<String> = match self.symbols.is_empty() {
            true => market.iter().cloned().chain(self.rows("statuses").into_keys()).collect(),
            false => self.symbols.iter().cloned().collect(),
        };
        let list: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let list = list.join(",");
        let dividends = by_id(service, &format!("/v1/dividends/history?limit=1000&symbols={list}")).await?;
        ensure_equal("dividends", &self.rows("dividends"), &dividends)?;
        let mut splits = Rows::new();
        for symbol in &symbols {
            splits.extend(by_id(service, &format!("/v1/stocks/{symbol}/splits?limit=200")).await?);
        }
        ensure_equal("splits", &self.rows("splits"), &splits)?;
        self.has_statuses(service, &list).await?;
        self.has_lists(service).await?;
        let statuses = self.rows("statuses");
        for kind in ["events", "factors", "lists"] {
            for symbol in self.rows(kind).keys() {
                ensure!(statuses.contains_key(symbol), "{kind} of {symbol} are still copied");
            }
        }
        for symbol in statuses.keys() {
            self.has_events(service, symbol).await?;
            self.has_factors(service, symbol).await?;
        }
        Ok(())
    }

    async fn has_statuses(&self, service: &Service, list: &str) -> Result<()> {
        let metrics = service.json(&format!("/v1/bulk/metrics?symbols={list}")).await?;
        let field = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let rows = metrics["data"].as_array().context("rows")?;
        let served: BTreeMap<String, String> =
            rows.iter().map(|row| (field(row, "symbol"), field(row, "dividend_status"))).collect();
        let copied: BTreeMap<String, String> = self
            .rows("statuses")
            .iter()
            .map(|(symbol, row)| (symbol.clone(), field(row, "dividend_status")))
            .collect();
        ensure!(copied == served, "statuses: copied {copied:?}, served {served:?}");
        Ok(())
    }

    async fn has_lists(&self, service: &Service) -> Result<()> {
        for name in LISTS {
            let rows = service.json(&format!("/v1/screener/{name}?limit=500")).await?;
            let rows = rows["data"].as_array().context("rows")?.clone();
            let mut served: BTreeSet<String> =
                rows.iter().filter_map(|row| Some(row["symbol"].as_str()?.to_owned())).collect();
            if !self.symbols.is_empty() {
                // The copied statuses contain every security that the client follows. Other securities are not
                // compared.
                served.retain(|symbol| self.rows("statuses").contains_key(symbol));
            }
            let copied: BTreeSet<String> = self
                .rows("lists")
                .into_iter()
                .filter(|(_, row)| row["lists"].as_array().is_some_and(|lists| lists.contains(&name.into())))
                .map(|(symbol, _)| symbol)
                .collect();
            ensure!(copied == served, "{name}: copied {copied:?}, served {served:?}");
        }
        Ok(())
    }

    async fn has_events(&self, service: &Service, symbol: &str) -> Result<()> {
        let body = service.json(&format!("/v1/stocks/{symbol}/events?limit=200")).await?;
        let is_ticker_event =
            |event: &&Value| ["rename", "merger", "delisting"].iter().any(|kind| event["type"] == **kind);
        let mut served: Vec<Value> =
            body["data"].as_array().into_iter().flatten().filter(is_ticker_event).cloned().collect();
        let rows = self.rows("events");
        let copied = rows.get(symbol).and_then(|row| row["events"].as_array()).cloned();
        let mut copied = copied.unwrap_or_default();
        for events in [&mut served, &mut copied] {
            events.sort_by_key(Value::to_string);
        }
        ensure!(copied == served, "events of {symbol}: copied {copied:?}, served {served:?}");
        Ok(())
    }

    /// Checks that the copied factors reproduce the split factor and the total factor of every served price.
    async fn has_factors(&self, service: &Service, symbol: &str) -> Result<()> {
        let body = service.json(&format!("/v1/prices/{symbol}?range=max&limit=5000")).await?;
        let as_of = body["meta"]["as_of"].as_str().context("an as-of date")?.to_owned();
        let rows = self.rows("factors");
        let factors = rows.get(symbol).and_then(|row| row["factors"].as_array()).cloned().unwrap_or_default();
        for bar in body["data"].as_array().into_iter().flatten() {
            let date = bar["date"].as_str().context("a date")?;
            let (mut split, mut total) = (Decimal::ONE, Decimal::ONE);
            for factor in &factors {
                let ex_date = factor["ex_date"].as_str().context("an ex-date")?;
                if date < ex_date && ex_date <= as_of.as_str() {
                    let of_split = decimal(&factor["split_factor"])?;
                    split *= of_split;
                    total *= of_split * decimal(&factor["dividend_factor"])?;
                }
            }
            for (name, copied) in [("split_factor", split), ("total_factor", total)] {
                let served = decimal(&bar[name])?;
                let tolerance = Decimal::new(1, 9);
                ensure!(
                    (copied - served).abs() <= tolerance,
                    "{name} of {bar}: copied {copied}, {factors:?}"
                );
            }
        }
        Ok(())
    }
}

fn decimal(value: &Value) -> Result<Decimal> {
    Ok(Decimal::from_str(&value.to_string())?)
}

async fn by_id(service: &Service, path: &str) -> Result<Rows> {
    let Some((rows, _)) = service.walk(path).await? else { return Ok(Rows::new()) };
    let with_id = |row: Value| Ok((row["id"].as_str().context("an id")?.to_owned(), row));
    rows.into_iter().map(with_id).collect()
}

fn ensure_equal(kind: &str, copied: &Rows, served: &Rows) -> Result<()> {
    let ids = |rows: &Rows| rows.keys().cloned().collect::<BTreeSet<_>>();
    let (ours, theirs) = (ids(copied), ids(served));
    ensure!(ours == theirs, "{kind}: only copied {:?}, only served {:?}", &ours - &theirs, &theirs - &ours);
    for (id, row) in served {
        ensure!(copied[id] == *row, "{kind}: copied\n{}\nserved\n{row}", copied[id]);
    }
    Ok(())
}
