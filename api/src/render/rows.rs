//! Renderer of rows to JSON or CSV, with all fields or only selected fields. A CSV column `quote.price` is a path in the
//! JSON object of the row.

use bytes::Bytes;
use serde::Serialize;
use telemetry::escape_formula;

use super::row_cells::RowCells;
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
}

/// Renders a body with one resource.
pub(crate) fn render_single(
    output: &Output,
    row: &impl Serialize,
    meta: &impl Serialize,
) -> Result<Bytes, RenderError> {
    let mut body = single_opening(output)?;
    body.extend(render_rows(output, &[row])?);
    body.extend(single_closing(output, meta)?);
    Ok(body.into())
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
    opening(output, b"{\"data\":[")
}

/// Renders the start of a body with one resource: the JSON text before the resource, or the CSV header.
pub(crate) fn single_opening(output: &Output) -> Result<Vec<u8>, RenderError> {
    opening(output, b"{\"data\":")
}

/// Renders the end of a list. In JSON, this is the metadata; in CSV, it is empty.
pub(crate) fn list_closing(output: &Output, meta: &impl Serialize) -> Result<Vec<u8>, RenderError> {
    closing(output, b"],\"meta\":", meta)
}

/// Renders the end of a body with one resource. In JSON, this is the metadata; in CSV, it is empty.
pub(crate) fn single_closing(output: &Output, meta: &impl Serialize) -> Result<Vec<u8>, RenderError> {
    closing(output, b",\"meta\":", meta)
}

fn opening(output: &Output, json: &[u8]) -> Result<Vec<u8>, RenderError> {
    match output.format == ResponseFormat::Csv {
        true => csv_bytes(|writer| Ok(writer.write_record(columns(output))?)),
        false => Ok(json.to_vec()),
    }
}

fn closing(output: &Output, json: &[u8], meta: &impl Serialize) -> Result<Vec<u8>, RenderError> {
    let mut body = Vec::new();
    if output.format == ResponseFormat::Json {
        body.extend_from_slice(json);
        with_decimal_style(output, || serde_json::to_writer(&mut body, meta))?;
        body.push(b'}');
    }
    Ok(body)
}

/// Renders rows: comma-separated JSON objects, or CSV records.
pub(crate) fn render_rows<T: Serialize>(output: &Output, rows: &[T]) -> Result<Vec<u8>, RenderError> {
    let is_csv = output.format == ResponseFormat::Csv;
    let mut cells = RowCells::new(columns(output), is_csv);
    if is_csv {
        return csv_bytes(|writer| {
            for row in rows {
                cells.read(row)?;
                cells.write_csv(writer)?;
            }
            Ok(())
        });
    }
    let mut body = Vec::new();
    for row in rows {
        if !body.is_empty() {
            body.push(b',');
        }
        if output.fields.is_none() {
            with_decimal_style(output, || serde_json::to_writer(&mut body, row))?;
        } else {
            with_decimal_style(output, || cells.read(row))?;
            cells.write_json(&mut body);
        }
    }
    Ok(body)
}

/// Encodes a text as a JSON value, or as a CSV cell of a record with several cells.
pub(crate) fn encode_text(output: &Output, text: Option<&str>) -> Result<Vec<u8>, RenderError> {
    match text.filter(|text| !text.is_empty()) {
        _ if output.format == ResponseFormat::Json => Ok(serde_json::to_vec(&text)?),
        Some(text) => {
            let mut cell = csv_bytes(|writer| Ok(writer.write_record([escape_formula(text.to_owned())])?))?;
            cell.truncate(cell.len() - 2);
            Ok(cell)
        }
        None => Ok(Vec::new()),
    }
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

fn columns(output: &Output) -> &[&'static str] {
    output.fields.as_deref().unwrap_or(output.columns)
}

/// Runs `write` with a CSV writer, and returns the written bytes.
fn csv_bytes(
    write: impl FnOnce(&mut csv::Writer<Vec<u8>>) -> Result<(), RenderError>,
) -> Result<Vec<u8>, RenderError> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    write(&mut writer)?;
    writer.into_inner().map_err(|error| RenderError::Flush(error.into_error()))
}

#[cfg(test)]
mod tests {
    use market::decimal::ExactDecimal;
    use rust_decimal::Decimal;

    use super::*;

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
        let output = Output { format, text_decimals, columns: COLUMNS, fields };
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
    fn csv_columns_are_paths() {
        let row = serde_json::json!({ "symbol": "A", "quote": { "price": 1.5, "name": "=B\n\"" }, "metrics": null });
        let columns = &["symbol", "quote.price", "quote.name", "metrics.price"];
        let output = Output { format: ResponseFormat::Csv, columns, ..Output::default() };
        let csv = render_list(&output, &[row], &()).expect("renders");
        let expected = "symbol,quote.price,quote.name,metrics.price\r\nA,1.5,\"'=B\n\"\"\",\r\n";
        assert_eq!(String::from_utf8_lossy(&csv), expected);
    }

    #[test]
    fn nested_values_keep_their_json() {
        let row = serde_json::json!({ "a": [{ "b": "x\"", "c": [null, 1] }, {}], "b": { "a": 2 } });
        let render = |format, fields: Vec<&'static str>| {
            let output = Output { format, columns: &["a", "b"], fields: Some(fields), ..Output::default() };
            String::from_utf8_lossy(&render_rows(&output, &[&row]).expect("renders")).into_owned()
        };
        let json = r#"{"a":[{"b":"x\"","c":[null,1]},{}]}"#;
        assert_eq!(render(ResponseFormat::Json, vec!["a"]), json);
        assert_eq!(render(ResponseFormat::Json, vec!["b", "none"]), r#"{"b":{"a":2}}"#);
        let csv = "\"[{\"\"b\"\":\"\"x\\\"\"\"\",\"\"c\"\":[null,1]},{}]\"\r\n";
        assert_eq!(render(ResponseFormat::Csv, vec!["a"]), csv);
    }
}
