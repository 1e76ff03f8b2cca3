//! `fields`, `format`, `decimals` and `min_version`: output options of every endpoint.

use axum::http::{HeaderName, header};
use rust_decimal::Decimal;
use serde_json::json;

use super::{MIN_VERSION_HEADER, MinVersion, ParameterReader, ResponseFormat};

const MAX_FIELDS: usize = 50;
/// Pattern of a data version, with or without a journal position.
pub(super) const VERSION_PATTERN: &str = "^g[0-9]{1,9}\\.[0-9]{1,18}(\\.[0-9]{1,18})?$";

/// Output options of a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    pub(crate) format: ResponseFormat,
    /// True if decimals are JSON strings.
    pub(crate) text_decimals: bool,
    /// All fields of the resource, in order.
    pub(crate) columns: &'static [&'static str],
    /// Selected fields; `None` for all.
    pub(crate) fields: Option<Vec<&'static str>>,
}

impl ParameterReader<'_> {
    /// Adds `ics` to the values of `format`.
    pub(crate) fn with_calendar(&mut self) -> &mut Self {
        self.offers_calendar = true;
        self
    }

    /// Reads `fields`, `format`, `decimals` and `min_version` for a resource with these columns.
    pub(crate) fn read_output(&mut self, columns: &'static [&'static str]) -> Output {
        self.read_output_with_csv(columns, columns)
    }

    /// Reads the same parameters as [`Self::read_output`], for a resource whose columns differ between CSV and JSON.
    pub(crate) fn read_output_with_csv(
        &mut self,
        of_json: &'static [&'static str],
        of_csv: &'static [&'static str],
    ) -> Output {
        self.read_limited_output(of_json, of_csv, MAX_FIELDS)
    }

    /// Reads the same parameters as [`Self::read_output_with_csv`]. `fields` may have at most `most` names.
    pub(crate) fn read_limited_output(
        &mut self,
        of_json: &'static [&'static str],
        of_csv: &'static [&'static str],
        most: usize,
    ) -> Output {
        let (formats, calendar) = match self.offers_calendar {
            true => (
                &["json", "csv", "ics"][..],
                " `ics` is a calendar file with the same rows; it ignores `fields`.",
            ),
            false => (&["json", "csv"][..], ""),
        };
        let format = self.read_word("format", formats);
        self.describe(
            "format",
            format_args!("Media type of the response. Default: the media type that the Accept header prefers, else json.{calendar}"),
        );
        let text_decimals = self.read_text_decimals();
        let format = match format {
            Some("csv") => ResponseFormat::Csv,
            Some("ics") => ResponseFormat::Calendar,
            Some(_) => ResponseFormat::Json,
            None => self.accepted_format(),
        };
        self.properties.format = format;
        let columns = if format == ResponseFormat::Csv { of_csv } else { of_json };
        let fields = self.read_fields(columns, of_csv, most);
        self.read_min_version();
        self.read_version_headers();
        Output { format, text_decimals, columns, fields }
    }

    /// Reads `decimals`. True if decimals are JSON strings.
    pub(crate) fn read_text_decimals(&mut self) -> bool {
        let form = self.read_word("decimals", &["number", "string"]);
        self.describe(
            "decimals",
            "Form of decimals in JSON: exact numbers (default) or strings. It has no effect in CSV.",
        );
        form == Some("string")
    }

    /// Reads `fields`, at most `most` names, which must be in `columns`. The OpenAPI document also lists `others`, which
    /// are valid only in CSV.
    fn read_fields(
        &mut self,
        columns: &'static [&'static str],
        others: &'static [&'static str],
        most: usize,
    ) -> Option<Vec<&'static str>> {
        let schema = || {
            let others = others.iter().filter(|other| !columns.contains(other));
            let all: Vec<&str> = columns.iter().chain(others).copied().collect();
            json!({ "type": "array", "minItems": 1, "maxItems": most, "items": { "type": "string", "enum": all } })
        };
        let text = self.read_value("fields", schema);
        self.describe("fields", "Names of the fields to return, comma-separated. Default: all.");
        let text = text?;
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        if names.len() > most {
            self.add_error("fields", format!("has more than {most} names"), None);
        }
        for name in &names {
            if !columns.contains(name) {
                let name: String = name.chars().take(64).collect();
                self.add_error("fields", format!("has no field {name:?} to choose"), Some(json!(columns)));
            }
        }
        Some(columns.iter().copied().filter(|column| names.contains(column)).collect())
    }

    fn read_min_version(&mut self) {
        let text = self.read_value("min_version", || json!({ "type": "string", "pattern": VERSION_PATTERN }));
        self.describe(
            "min_version",
            "Oldest accepted data version: `meta.data_version` of an earlier response. The header `If-Min-Version` has the same\n\
             effect. Status 412 if no such data exists. The version in a cursor, `updated_since` or `If-None-Match` is preferred\n\
             too, but older data gives no error.",
        );
        if let Some(text) = text {
            self.require_version("min_version", &text);
        }
    }

    /// Reads the minimum versions in `If-Min-Version` and `If-None-Match`.
    fn read_version_headers(&mut self) {
        let headers = self.headers;
        let text =
            |name: &HeaderName| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let (named, tags) = (text(&MIN_VERSION_HEADER), text(&header::IF_NONE_MATCH));
        if let Some(tags) = tags {
            self.properties.min_version.raise(MinVersion::of_entity_tags(&tags));
        }
        if let Some(named) = named {
            self.require_version("If-Min-Version", named.trim());
        }
    }

    fn require_version(&mut self, name: &str, text: &str) {
        match MinVersion::parse(text) {
            Some(version) => self.properties.min_version.raise(MinVersion { is_explicit: true, ..version }),
            None => self.add_error(name, "is not the data_version of a response", None),
        }
    }

    /// Format according to the `Accept` header: CSV if the quality value of CSV exceeds that of JSON.
    fn accepted_format(&self) -> ResponseFormat {
        let Some(accept) = self.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
            return ResponseFormat::Json;
        };
        let (csv, json) = (weight(accept, "text/csv"), weight(accept, "application/json"));
        if csv > Decimal::ZERO && csv > json { ResponseFormat::Csv } else { ResponseFormat::Json }
    }
}

/// Quality value of a media type in an `Accept` header; 0 if absent.
fn weight(accept: &str, media_type: &str) -> Decimal {
    let named = accept.split(',').map(|range| range.split(';').map(str::trim).collect::<Vec<_>>());
    let quality = |parts: &[&str]| {
        let q = parts.iter().find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        q.and_then(|q| q.parse().ok()).unwrap_or(Decimal::ONE)
    };
    named
        .filter(|parts| parts.first().is_some_and(|name| name.eq_ignore_ascii_case(media_type)))
        .map(|parts| quality(&parts[1..]))
        .max()
        .unwrap_or(Decimal::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_chosen_only_when_named_and_preferred() {
        for (accept, expected) in [
            ("text/csv", true),
            ("text/csv;q=0.9, application/json;q=0.1", true),
            ("application/json, text/csv;q=0.5", false),
            ("*/*", false),
            ("text/csv;q=0", false),
            ("", false),
        ] {
            let (csv, json) = (weight(accept, "text/csv"), weight(accept, "application/json"));
            assert_eq!(csv > Decimal::ZERO && csv > json, expected, "{accept}");
        }
    }
}
