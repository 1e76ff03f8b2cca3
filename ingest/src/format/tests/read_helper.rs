//! Test helpers that read the text of a feed file and return each row as one line of text.

use std::sync::mpsc::sync_channel;

use chrono::{DateTime, NaiveDate};
use event_log::record_batch::{Body, SymbolSeries};
use market::bars::{Bars, MISSING};
use market::day::date_of;

use crate::batch::row_accumulator::{RowAccumulator, RowChunk};
use crate::format::{FileFormat, FileHead, FormatChoice, ReaderOptions};
use crate::source::feed_files::FeedFile;

pub(crate) fn options() -> ReaderOptions {
    ReaderOptions {
        choice: FormatChoice::Auto,
        map: None,
        symbol: None,
        symbol_from: None,
        currency: None,
        ignore_unknown: false,
        today: NaiveDate::from_ymd_opt(2024, 3, 15).unwrap(),
    }
}

pub(crate) fn bodies(name: &str, text: &str, options: &ReaderOptions) -> Result<Vec<Body>, String> {
    let file = FeedFile::from_name(name);
    let head = FileHead::read(&file, &mut text.as_bytes()).unwrap();
    let format = FileFormat::detect(&file, &head, options)?;
    let zone = format.exchange_zone(&head)?;
    let (sender, receiver) = sync_channel(1000);
    let mut rows = RowAccumulator::new(name, DateTime::UNIX_EPOCH, options.today, sender, sync_channel(0).1);
    rows.zone = zone;
    format.read(&mut text.as_bytes(), options, &mut rows).map_err(|error| error.to_string())?;
    let (_, holdings) = rows.finish();
    let mut bodies = Vec::new();
    for piece in receiver {
        match piece {
            RowChunk::Rows(body, _) => bodies.push(body),
            RowChunk::Prices(batch, symbols) => bodies.extend(
                batch.cut_into_record_batches(&symbols).batches.into_iter().map(|f| Body::Prices(f.series)),
            ),
        }
    }
    if !holdings.is_empty() {
        bodies.push(Body::Holdings(holdings.into_record_batches().concat()));
    }
    Ok(bodies)
}

pub(super) fn refused(name: &str, text: &str) -> String {
    bodies(name, text, &options()).unwrap_err()
}

pub(super) fn read_text(name: &str, text: &str) -> Vec<String> {
    read_with(name, text, &options())
}

pub(crate) fn read_with(name: &str, text: &str, options: &ReaderOptions) -> Vec<String> {
    let mut lines = Vec::new();
    for body in bodies(name, text, options).unwrap() {
        match body {
            Body::Prices(series) => series.iter().for_each(|series| lines.extend(prices(series))),
            Body::Dividends(rows) => lines.extend(rows.iter().map(|row| {
                let d = &row.record;
                let date = d.ex_date.map_or("-".to_owned(), |date| date.to_string());
                let as_of = d.basis_as_of.map_or(String::new(), |date| format!("@{date}"));
                let currency = if d.currency.is_empty() { "-" } else { &d.currency };
                let retract = if row.action == market::event::Action::Retract { " retract" } else { "" };
                let beside: String =
                    d.sibling_amounts.iter().map(|amount| format!(" beside {amount}")).collect();
                format!(
                    "dividend {} {date} {} {} {} {}{as_of}{retract}{beside}",
                    d.symbol, d.amount, currency, d.r#type, d.amount_basis
                )
            })),
            Body::Splits(rows) => lines.extend(rows.iter().map(|row| {
                let s = &row.record;
                format!("split {} {} {}:{}", s.symbol, s.ex_date, s.from, s.to)
            })),
            Body::Rejects(rows) => {
                lines.extend(rows.iter().map(|r| format!("reject {} {}: {}", r.line, r.reason, r.message)))
            }
            Body::Securities(rows) => {
                lines.extend(rows.iter().map(|row| serde_json::to_string(&row.record).unwrap()))
            }
            Body::Fundamentals(rows) => {
                lines.extend(rows.iter().map(|row| serde_json::to_string(&row.record).unwrap()))
            }
            Body::Etfs(rows) => {
                lines.extend(rows.iter().map(|row| serde_json::to_string(&row.record).unwrap()))
            }
            Body::Holdings(rows) => {
                lines.extend(rows.iter().map(|row| serde_json::to_string(&row.record).unwrap()))
            }
            Body::Sessions(rows) => {
                lines.extend(rows.iter().map(|row| serde_json::to_string(&row.record).unwrap()))
            }
            Body::FxRates(rows) => lines.extend(rows.iter().map(|row| {
                let r = &row.record;
                format!("fx {} {}{} {}", r.date, r.base, r.quote, r.rate)
            })),
            Body::Decisions(_) | Body::Evidence(_) | Body::Run(_) => {}
        }
    }
    lines
}

fn prices(series: &SymbolSeries) -> Vec<String> {
    let value =
        |bars: &Bars, value: i64| bars.decimal(value).map_or("-".to_owned(), |value| value.to_string());
    let bars = &series.bars;
    let line = |index: usize| {
        let bar = bars.bar(index);
        let version = bars.version_of(index);
        let basis = match version.basis_day {
            None => "raw".to_owned(),
            Some(0) => "split_adjusted".to_owned(),
            Some(day) => format!("split_adjusted@{}", date_of(day)),
        };
        let volume = if bar.volume == MISSING { "-".to_owned() } else { bar.volume.to_string() };
        let [o, h, l, c] = [bar.open, bar.high, bar.low, bar.close].map(|v| value(bars, v));
        let retract = if version.retracted { " retract" } else { "" };
        format!(
            "price {} {} o={o} h={h} l={l} c={c} v={volume} {basis}{retract}",
            series.symbol,
            date_of(bar.day)
        )
    };
    (0..bars.len()).map(line).collect()
}
