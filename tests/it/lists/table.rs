//! Rows of a table or of an API answer, as maps from column name to exact value.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use harness::TestApp;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    Null,
    Flag(bool),
    Number(Decimal),
    Text(String),
    Nested(String),
}

pub(super) type Row = BTreeMap<String, Cell>;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) rows: Vec<Row>,
    pub(super) has_more: bool,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    data: Vec<BTreeMap<String, &'a RawValue>>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    has_more: bool,
    next_cursor: Option<String>,
}

impl Cell {
    fn of(raw: &RawValue) -> Result<Cell> {
        let text = raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'n') => Cell::Null,
            Some(b't' | b'f') => Cell::Flag(text == "true"),
            Some(b'"') => Cell::text(serde_json::from_str(text)?),
            Some(b'{' | b'[') => Cell::Nested(serde_json::from_str::<serde_json::Value>(text)?.to_string()),
            _ => Cell::Number(text.parse().with_context(|| text.to_owned())?),
        })
    }

    /// Converts times to UTC, so that all notations of the same time are equal. Other texts stay unchanged.
    fn text(text: String) -> Cell {
        let instant = DateTime::parse_from_rfc3339(&text);
        Cell::Text(instant.map_or(text, |instant| instant.with_timezone(&Utc).to_rfc3339()))
    }

    /// Formats the value as a request parameter.
    pub(super) fn written(&self) -> String {
        match self {
            Cell::Null => String::new(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Text(text) | Cell::Nested(text) => text.clone(),
        }
    }
}

fn row(cells: BTreeMap<String, &RawValue>) -> Result<Row> {
    cells.into_iter().map(|(name, raw)| Ok((name, Cell::of(raw)?))).collect()
}

pub(super) async fn table(app: &TestApp, sql: &str) -> Result<Vec<Row>> {
    let found = app.sql(&format!("select row_to_json(t)::text from ({sql}) t"), &[]).await?;
    found.iter().map(|line| row(serde_json::from_str(line.try_get::<_, &str>(0)?)?)).collect()
}

pub(super) fn answer(body: &[u8]) -> Result<Answer> {
    let body: Body<'_> = serde_json::from_slice(body)?;
    let rows = body.data.into_iter().map(row).collect::<Result<_>>()?;
    Ok(Answer { rows, has_more: body.meta.has_more, next_cursor: body.meta.next_cursor })
}
