//! Generator of a small market with two feeds, which are loaded in pieces. Each piece contains new sessions. Pieces
//! also correct, retract or repeat rows of other pieces.

use std::path::PathBuf;

use anyhow::Result;
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use harness::TestApp;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::faults::{headers, publish};

/// More securities than the projector derives in one chunk.
const SYMBOLS: usize = 200;
const SESSIONS: usize = 24;
const SOURCES: [&str; 2] = ["left", "right"];

pub(crate) struct Market {
    pieces: Vec<Vec<Value>>,
}

impl Market {
    pub(crate) fn new(seed: u64, pieces: usize) -> Self {
        let mut writer =
            Writer { random: StdRng::seed_from_u64(seed), pieces: vec![Vec::new(); pieces], told: 0 };
        (0..SYMBOLS).for_each(|number| writer.security(number));
        writer.pieces.iter_mut().for_each(|piece| piece.shuffle(&mut writer.random));
        Self { pieces: writer.pieces }
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Writes a piece to a file and returns the arguments of `ingest` that load the file.
    pub(crate) fn load(&self, app: &TestApp, piece: usize) -> Result<[String; 6]> {
        let path: PathBuf = app.folder().join(format!("piece-{piece:02}.ndjson"));
        let rows: String = self.pieces[piece].iter().map(|row| format!("{row}\n")).collect();
        std::fs::write(&path, rows)?;
        let (path, source) = (path.display().to_string(), SOURCES[piece % 2]);
        Ok(["load", &path, "--source", source, "--today", "2024-12-31"].map(str::to_owned))
    }

    /// Loads the pieces without kills. Publishes the messages of [`poison`] after each piece.
    pub(crate) async fn load_all(&self, app: &TestApp, pieces: std::ops::Range<usize>) -> Result<()> {
        for piece in pieces {
            let arguments = self.load(app, piece)?;
            app.ingest(&arguments.each_ref().map(String::as_str)).await?.success()?;
            poison(app, piece).await?;
        }
        Ok(())
    }
}

/// Publishes a message that is not a batch, and a batch whose second row Postgres cannot store.
pub(crate) async fn poison(app: &TestApp, piece: usize) -> Result<()> {
    let id = u8::try_from(2 * piece)?;
    publish(app, "dividend", headers(id, "dividend.v1", "json"), b"{ not json".to_vec()).await?;
    let row = |symbol: &str, currency: &str| {
        json!({
            "line": 1, "action": "put", "observed_at": "2024-07-01T00:00:00Z",
            "record": {
                "symbol": symbol, "ex_date": "2024-05-10", "amount": "0.5", "currency": currency, "type": "regular",
                "amount_basis": "raw",
            },
        })
    };
    let rows =
        json!([row(&format!("FINE{piece}"), "USD"), row("BAD", "U\0D"), row(&format!("GOOD{piece}"), "USD")]);
    publish(app, "dividend", headers(id + 1, "dividend.v1", "json"), rows.to_string().into_bytes()).await
}

struct Writer {
    random: StdRng,
    pieces: Vec<Vec<Value>>,
    /// Number of rows so far. Each row is observed a second after the previous one, so no two versions are equal.
    told: i64,
}

impl Writer {
    fn security(&mut self, number: usize) {
        // The first security is in both feeds.
        let symbol = format!("K{number:03}");
        for source in (0..SOURCES.len()).filter(|source| number == 0 || number % 2 == *source) {
            let first: NaiveDate = NaiveDate::from_ymd_opt(2024, 5, 1).unwrap_or_default();
            let sessions =
                first.iter_days().filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun));
            for (position, day) in sessions.take(SESSIONS).enumerate() {
                self.session(source, &symbol, day, position);
            }
        }
    }

    fn session(&mut self, source: usize, symbol: &str, day: NaiveDate, position: usize) {
        let close = 5_000 + (position * 7) % 90;
        let price = move |cents: usize| json!({ "kind": "price", "symbol": symbol, "date": day, "close": format!("{}.{:02}", cents / 100, cents % 100) });
        self.history(source, position, 0.1, &|change| price(close + change));
        if position % 9 == 4 {
            let id = day.day().is_multiple_of(2).then(|| format!("{symbol}-{day}"));
            let dividend = move |change: usize| json!({ "kind": "dividend", "symbol": symbol, "ex_date": day, "amount": format!("0.{}", 500 + change), "id": id });
            self.history(source, position, 0.6, &dividend);
        }
    }

    /// Adds a row of the session `position` to a piece (a file of the feed). With the probability `noise`, random
    /// pieces also repeat, correct or retract this row.
    fn history(&mut self, source: usize, position: usize, noise: f64, row: &dyn Fn(usize) -> Value) {
        let own: Vec<usize> = (source..self.pieces.len()).step_by(SOURCES.len()).collect();
        let piece = own[position * own.len() / SESSIONS];
        let original = self.tell(piece, row(0), 0, "put");
        if !self.random.random_bool(noise) {
            return;
        }
        let any = own[self.random.random_range(0..own.len())];
        match self.random.random_range(0..4) {
            // An exact repetition.
            0 => self.pieces[any].push(original),
            1 => drop(self.tell(any, row(7), 1, "put")),
            2 => drop(self.tell(any, row(0), 0, "retract")),
            // A correction and its retraction. They may be loaded in any order, even before the original row.
            _ => {
                let other = own[self.random.random_range(0..own.len())];
                self.tell(any, row(3), 1, "put");
                self.tell(other, row(3), 2, "retract");
            }
        }
    }

    fn tell(&mut self, piece: usize, mut row: Value, revision: i64, action: &str) -> Value {
        self.told += 1;
        let observed: DateTime<Utc> =
            DateTime::UNIX_EPOCH + TimeDelta::days(19_900) + TimeDelta::seconds(self.told);
        row["revision"] = revision.into();
        row["action"] = action.into();
        row["observed_at"] = json!(observed);
        self.pieces[piece].push(row.clone());
        row
    }
}
