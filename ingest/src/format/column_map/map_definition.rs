//! TOML definition of a map (`--map FILE`), as serde types.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use toml::Spanned;

/// Parsed map before validation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapDefinition {
    pub(super) kind: Spanned<String>,
    #[serde(default)]
    pub(super) file: FileSection,
    #[serde(default)]
    pub(super) columns: BTreeMap<String, Spanned<ColumnLocation>>,
    #[serde(default)]
    pub(super) constants: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) dates: DatesSection,
    #[serde(default)]
    pub(super) numbers: NumbersSection,
    #[serde(default)]
    pub(super) scale: BTreeMap<String, Spanned<ScaleFactor>>,
    #[serde(default)]
    pub(super) symbols: SymbolsSection,
    #[serde(default)]
    pub(super) aliases: BTreeMap<String, Spanned<BTreeMap<String, String>>>,
    #[serde(default)]
    pub(super) rows: RowsSection,
    pub(super) wide: Option<WideSection>,
    /// Currency units in the cells of prices and amounts, each with its currency, such as `p = "GBX"`.
    #[serde(default)]
    pub(super) units: BTreeMap<String, Spanned<String>>,
}

/// `[file]`: layout of the records in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSection {
    pub(super) delimiter: Option<Spanned<String>>,
    pub(super) encoding: Option<Spanned<String>>,
    /// Line of the header, or of the first record in a file without a header.
    pub(super) first_line: Option<u64>,
    /// Number of header lines.
    pub(super) header: Option<Spanned<u64>>,
    /// JSON: path of the member with the records, such as `data.dividends.rows`.
    pub(super) records: Option<String>,
}

/// `[dates]`: formats of dates, and the time zone.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatesSection {
    pub(super) format: Option<Spanned<OneOrMore>>,
    /// Time zone of the exchange. Times in UTC are converted to dates in this zone.
    pub(super) zone: Option<Spanned<String>>,
}

/// `[numbers]`: notation of numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NumbersSection {
    pub(super) decimal: Option<Spanned<String>>,
    pub(super) thousands: Option<Spanned<String>>,
    /// Characters that are not part of a number, such as `$`.
    #[serde(default)]
    pub(super) strip: String,
    /// True if the suffixes K, M, B and T are multipliers: `45.2M` is 45,200,000.
    #[serde(default)]
    pub(super) suffixes: bool,
}

/// `[symbols]`: location and suffix of symbols.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SymbolsSection {
    /// Pattern for the symbol in a file name.
    pub(super) file_name: Option<Spanned<String>>,
    /// Pattern for the symbol in a cell.
    pub(super) cell: Option<Spanned<String>>,
    /// Suffix of every symbol, such as `.DE`.
    #[serde(default)]
    pub(super) suffix: String,
}

/// `[rows]`: selection of rows, and words for absent values.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsSection {
    #[serde(default)]
    pub(super) absent: Vec<String>,
    /// Columns that a record must fill. A record with an empty or zero cell in one of these columns is skipped.
    #[serde(default)]
    pub(super) skip_without: Vec<Spanned<String>>,
    /// Columns of the file, by name or number, each with the words of the records to read: `SERIES = "EQ"`. All other
    /// records are skipped.
    #[serde(default)]
    pub(super) only: BTreeMap<String, Spanned<OneOrMore>>,
}

/// `[wide]`: columns whose names contain a symbol, a field or a date.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WideSection {
    /// Pattern of the column names, such as `{symbol}.{field}`.
    pub(super) name: Spanned<String>,
    /// Canonical column of the cells in all wide columns, such as `close`. It is needed only if `name` has no
    /// `{field}`.
    pub(super) value: Option<Spanned<String>>,
    /// Names of columns to ignore. They fit the pattern but contain no symbol or date, such as `Average` with the
    /// pattern `{symbol}`.
    #[serde(default)]
    pub(super) skip: Vec<String>,
}

/// Location of a value in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnLocation {
    Name(String),
    /// Number of the column, from 1.
    Number(usize),
}

/// A single text or a list of texts in TOML.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a text in quotes, or a list of them")]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::More(texts) => texts,
        }
    }
}

/// Factor by which the numbers of a column are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScaleFactor(pub(super) Decimal);

impl<'de> Deserialize<'de> for ColumnLocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LocationVisitor;
        impl Visitor<'_> for LocationVisitor {
            type Value = ColumnLocation;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a column's name in quotes, or its number from 1")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<ColumnLocation, E> {
                Ok(ColumnLocation::Name(name.to_owned()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<ColumnLocation, E> {
                let valid = usize::try_from(number).ok().filter(|number| *number > 0);
                let expected = serde::de::Unexpected::Signed(number);
                valid.map(ColumnLocation::Number).ok_or_else(|| E::invalid_value(expected, &self))
            }
        }
        deserializer.deserialize_any(LocationVisitor)
    }
}

impl<'de> Deserialize<'de> for ScaleFactor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FactorVisitor;
        impl Visitor<'_> for FactorVisitor {
            type Value = ScaleFactor;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number above zero in quotes, such as \"0.0001\" (exact), or a whole one")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ScaleFactor, E> {
                let number = market::decimal::parse_figure(text).ok().filter(|number| !number.rounded);
                let number = number.filter(|number| number.value > Decimal::ZERO);
                let unexpected = serde::de::Unexpected::Str(text);
                number
                    .map(|number| ScaleFactor(number.value))
                    .ok_or_else(|| E::invalid_value(unexpected, &self))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<ScaleFactor, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(FactorVisitor)
    }
}

/// Error in a map, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct MapError {
    /// Line, from 1; `None` if the error is not about one line, such as a missing entry.
    line: Option<usize>,
    message: String,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl MapError {
    /// Error about the whole map instead of one line.
    pub(super) fn without_line(message: impl fmt::Display) -> Self {
        Self { line: None, message: message.to_string() }
    }

    /// Error at a position in the map's text.
    pub(super) fn at_position(text: &str, span: Range<usize>, message: impl fmt::Display) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Self { line: Some(line), message: message.to_string() }
    }
}

impl MapDefinition {
    pub(super) fn parse(text: &str) -> Result<Self, MapError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let message = error.message().trim().replace('\n', ", ");
            error.span().map_or_else(
                || MapError::without_line(&message),
                |span| MapError::at_position(text, span, &message),
            )
        })
    }
}
