//! Renderer of rows to JSON or CSV, with all fields or only selected fields.
//!
//! Invariant: the digits of a number are copied without arithmetic. A CSV column `quote.price` is a path in the JSON
//! object.

use std::collections::HashMap;

use bytes::Bytes;
use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use telemetry::escape_formula;
use tokio_postgres::types::Type;

use crate::parameters::{Output, ResponseFormat};

/// Rendering error, always a defect of the service and never caused by a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RenderError {
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("cannot write CSV: {0}")]
    Csv(#[from] csv::Error),
    #[error("cannot write CSV: {0}")]
    Flush(#[source] std::io::Error),
    #[error("cannot read a row: {0}")]
    Row(#[from] tokio_postgres::Error),
    #[error("cannot render a row: column {0} is missing")]
    Column(&'static str),
    #[error("cannot render a column of type {0}")]
    Type(Type),
}

/// Value that can be rendered as a JSON object.
pub(crate) trait ToJsonObject {
    /// JSON bytes of the value. `output` determines whether decimals are numbers or strings.
    fn to_json(&self, output: &Output) -> Result<Vec<u8>, RenderError>;
}

impl<T: Serialize> ToJsonObject for T {
    fn to_json(&self, output: &Output) -> Result<Vec<u8>, RenderError> {
        Ok(json(output, self)?)
    }
}

/// Renders a body with one resource.
pub(crate) fn render_single(
    output: &Output,
    row: &impl ToJsonObject,
    meta: &impl Serialize,
) -> Result<Bytes, RenderError> {
    let row = row.to_json(output)?;
    if output.format == ResponseFormat::Csv {
        return Ok([list_opening(output)?, records(output, [Ok(row)])?].concat().into());
    }
    let data = match &output.fields {
        None => row,
        Some(fields) => select_members(&row, fields)?.get().into(),
    };
    let meta = json(output, meta)?;
    Ok([&b"{\"data\":"[..], &data, b",\"meta\":", &meta, b"}"].concat().into())
}

/// Renders a body with a page of rows.
pub(crate) fn render_list<T: Serialize>(
    output: &Output,
    rows: &[T],
    meta: &impl Serialize,
) -> Result<Bytes, RenderError> {
    let mut body = list_opening(output)?;
    body.extend(render_rows(output, rows)?);
    body.extend(list_closing(output, meta)?);
    Ok(body.into())
}

/// Renders the start of a list: the JSON text before the first row, or the CSV header.
pub(crate) fn list_opening(output: &Output) -> Result<Vec<u8>, RenderError> {
    match output.format {
        ResponseFormat::Json => Ok(b"{\"data\":[".to_vec()),
        ResponseFormat::Csv => csv_bytes(|writer| Ok(writer.write_record(csv_header(output))?)),
    }
}

/// Renders rows of a list: comma-separated JSON items, or CSV records.
pub(crate) fn render_rows<T: Serialize>(output: &Output, rows: &[T]) -> Result<Vec<u8>, RenderError> {
    if output.format == ResponseFormat::Csv {
        return records(output, rows.iter().map(|row| row.to_json(output)));
    }
    let mut body = Vec::new();
    for row in rows {
        if !body.is_empty() {
            body.push(b',');
        }
        match &output.fields {
            None => with_decimal_style(output, || serde_json::to_writer(&mut body, row))?,
            Some(fields) => {
                body.extend_from_slice(select_members(&json(output, row)?, fields)?.get().as_bytes());
            }
        }
    }
    Ok(body)
}

/// Renders the end of a list. In JSON, this is the metadata; in CSV, it is empty.
pub(crate) fn list_closing(output: &Output, meta: &impl Serialize) -> Result<Vec<u8>, RenderError> {
    let mut body = Vec::new();
    if output.format == ResponseFormat::Json {
        body.extend_from_slice(b"],\"meta\":");
        body.extend(json(output, meta)?);
        body.push(b'}');
    }
    Ok(body)
}

/// Value as JSON. `output` determines whether decimals are numbers or strings.
fn json(output: &Output, value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    with_decimal_style(output, || serde_json::to_vec(value))
}

/// Runs `serialize`. `output` determines whether `serialize` writes decimals as numbers or as strings.
fn with_decimal_style<T>(output: &Output, serialize: impl FnOnce() -> T) -> T {
    // CSV does not distinguish text from numbers, so decimals stay numbers.
    if output.text_decimals && output.format == ResponseFormat::Json {
        market::decimal::with_decimals_as_text(serialize)
    } else {
        serialize()
    }
}

/// JSON object with only the keys in `fields`. The text of each value is unchanged.
fn select_members(row: &[u8], fields: &[&str]) -> Result<Box<RawValue>, RenderError> {
    let members: JsonMembers<'_> = serde_json::from_slice(row)?;
    let mut text = String::with_capacity(row.len());
    text.push('{');
    for field in fields {
        if let Some(value) = members.get(field) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(field)?);
            text.push(':');
            text.push_str(value.get());
        }
    }
    text.push('}');
    Ok(RawValue::from_string(text)?)
}

fn columns(output: &Output) -> &[&'static str] {
    output.fields.as_deref().unwrap_or(output.columns)
}

/// Names of the CSV columns.
fn csv_header(output: &Output) -> Vec<&'static str> {
    let mut header = Vec::new();
    for column in columns(output) {
        match output.expanded.filter(|expanded| expanded.name == *column) {
            Some(expanded) => header.extend_from_slice(expanded.fields),
            None => header.push(column),
        }
    }
    header
}

/// CSV records of JSON objects, one record per object. If `output` expands a list, such as `annual_totals`: one record
/// per element of the list.
fn records(
    output: &Output,
    rows: impl IntoIterator<Item = Result<Vec<u8>, RenderError>>,
) -> Result<Vec<u8>, RenderError> {
    csv_bytes(|writer| {
        for row in rows {
            let row = row?;
            let members: JsonMembers<'_> = serde_json::from_slice(&row)?;
            let Some(expanded) = output.expanded else {
                write_csv_record(writer, output, &members, None)?;
                continue;
            };
            for element in members.elements(expanded.name)? {
                write_csv_record(writer, output, &members, Some(&element))?;
            }
        }
        Ok(())
    })
}

/// Writes one CSV record. `element` is the list element of the expanded column for this record; `None` if `output` has
/// no expanded column.
fn write_csv_record(
    writer: &mut csv::Writer<Vec<u8>>,
    output: &Output,
    members: &JsonMembers<'_>,
    element: Option<&JsonMembers<'_>>,
) -> Result<(), RenderError> {
    for column in columns(output) {
        match output.expanded.filter(|expanded| expanded.name == *column).zip(element) {
            Some((expanded, element)) => {
                for field in expanded.fields {
                    writer.write_field(cell(element.get(field))?)?;
                }
            }
            None => writer.write_field(cell(members.at(column)?)?)?,
        }
    }
    Ok(writer.write_record(None::<&[u8]>)?)
}

/// Runs `write` with a CSV writer, and returns the written bytes.
fn csv_bytes(
    write: impl FnOnce(&mut csv::Writer<Vec<u8>>) -> Result<(), RenderError>,
) -> Result<Vec<u8>, RenderError> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    write(&mut writer)?;
    writer.into_inner().map_err(|error| RenderError::Flush(error.into_error()))
}

/// CSV cell of a value. Null becomes an empty cell. A text is escaped if a spreadsheet would run it as a formula. A
/// nested value is written as JSON.
fn cell(value: Option<&RawValue>) -> Result<String, serde_json::Error> {
    match value.map(RawValue::get) {
        None | Some("null") => Ok(String::new()),
        Some(text) if text.starts_with('"') => serde_json::from_str(text).map(escape_formula),
        Some(other) => Ok(other.to_owned()),
    }
}

/// Unparsed values of a JSON object by key. The keys can borrow from the JSON text, because column names contain no
/// escapes.
#[derive(Deserialize)]
struct JsonMembers<'a>(#[serde(borrow)] HashMap<&'a str, &'a RawValue, RandomState>);

impl<'a> JsonMembers<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied()
    }

    /// Value at a dotted path; `None` if a part of the path is null or missing.
    fn at(&self, path: &str) -> Result<Option<&'a RawValue>, serde_json::Error> {
        let Some((name, rest)) = path.split_once('.') else { return Ok(self.get(path)) };
        match self.get(name).map(RawValue::get) {
            None | Some("null") => Ok(None),
            Some(text) => serde_json::from_str::<JsonMembers<'a>>(text)?.at(rest),
        }
    }

    /// Elements of the list at the key `name`, each a JSON object.
    fn elements(&self, name: &str) -> Result<Vec<JsonMembers<'a>>, serde_json::Error> {
        self.get(name).map_or_else(|| Ok(vec![]), |list| serde_json::from_str(list.get()))
    }
}

#[cfg(test)]
mod tests {
    use market::decimal::ExactDecimal;
    use rust_decimal::Decimal;

    use super::*;
    use crate::parameters::ExpandedColumn;

    #[derive(Serialize)]
    struct SampleRow {
        symbol: &'static str,
        name: &'static str,
        price: Option<ExactDecimal>,
        tags: Vec<&'static str>,
    }

    const COLUMNS: &[&str] = &["symbol", "name", "price", "tags"];

    fn row() -> SampleRow {
        SampleRow {
            symbol: "A",
            name: "=Sum, \"Inc\"",
            price: Some(ExactDecimal(Decimal::new(110, 2))),
            tags: vec!["x"],
        }
    }

    fn check(format: ResponseFormat, text_decimals: bool, fields: Option<Vec<&'static str>>, expected: &str) {
        let output = Output { format, text_decimals, columns: COLUMNS, fields, expanded: None };
        let body = render_list(&output, &[row()], &serde_json::json!({})).expect("renders");
        assert_eq!(String::from_utf8_lossy(&body), expected);
    }

    #[test]
    fn json_keeps_every_digit() {
        let all = r#"{"data":[{"symbol":"A","name":"=Sum, \"Inc\"","price":1.10,"tags":["x"]}],"meta":{}}"#;
        check(ResponseFormat::Json, false, None, all);
        check(
            ResponseFormat::Json,
            false,
            Some(vec!["symbol", "price"]),
            r#"{"data":[{"symbol":"A","price":1.10}],"meta":{}}"#,
        );
        check(ResponseFormat::Json, true, Some(vec!["price"]), r#"{"data":[{"price":"1.10"}],"meta":{}}"#);
    }

    #[test]
    fn csv_has_the_same_columns_and_runs_no_formula() {
        check(
            ResponseFormat::Csv,
            true,
            None,
            "symbol,name,price,tags\r\nA,\"'=Sum, \"\"Inc\"\"\",1.10,\"[\"\"x\"\"]\"\r\n",
        );
        check(ResponseFormat::Csv, false, Some(vec!["price"]), "price\r\n1.10\r\n");
    }

    #[test]
    fn unknown_is_an_empty_cell() {
        let output = Output { format: ResponseFormat::Csv, columns: COLUMNS, ..Output::default() };
        let body = render_single(&output, &SampleRow { price: None, ..row() }, &()).expect("renders");
        assert!(String::from_utf8_lossy(&body).contains("\",,\"["));
    }

    #[test]
    fn csv_columns_are_paths_and_elements() {
        let csv =
            |columns: &'static [&'static str], expanded: Option<ExpandedColumn>, row: serde_json::Value| {
                let output = Output { format: ResponseFormat::Csv, columns, expanded, ..Output::default() };
                String::from_utf8_lossy(&render_list(&output, &[row], &()).expect("renders")).into_owned()
            };
        let row =
            serde_json::json!({ "symbol": "A", "quote": { "price": 1.5, "name": "=B" }, "metrics": null });
        let columns = &["symbol", "quote.price", "quote.name", "metrics.price"];
        assert_eq!(csv(columns, None, row), "symbol,quote.price,quote.name,metrics.price\r\nA,1.5,'=B,\r\n");
        let years = ExpandedColumn { name: "years", fields: &["year", "amount"] };
        let row = |years: serde_json::Value| serde_json::json!({ "symbol": "A", "years": years });
        let two = row(serde_json::json!([{ "amount": 2.5, "year": 2023 }, { "amount": null, "year": 2024 }]));
        let columns = &["symbol", "years"];
        assert_eq!(csv(columns, Some(years), two), "symbol,year,amount\r\nA,2023,2.5\r\nA,2024,\r\n");
        assert_eq!(csv(columns, Some(years), row(serde_json::json!([]))), "symbol,year,amount\r\n");
    }
}
