//! Validation of a map. Each error has its line and the allowed values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use market::event::Kind;
use market::metrics::currency::Currency;
use rust_decimal::Decimal;
use toml::Spanned;

use super::cell_format::{self, DateFormat, NumberFormat};
use super::map::{CURRENCY, ColumnMap, DIRECTION, RATIO, RowSelection, WideNames};
use super::map_definition::{ColumnLocation, MapDefinition, MapError, OneOrMore, ScaleFactor};
use super::name_pattern::ColumnNamePattern;
use crate::format::canonical::kind_layout::{self, CanonicalColumnType, KindLayout, canonical_column_type};
use crate::format::column_map::name_pattern::SymbolPattern;
use crate::normalize::ExchangeZone;

impl ColumnMap {
    /// Parses and validates a map.
    ///
    /// # Errors
    /// The first mistake, with its line and the allowed values.
    pub fn parse(text: &str) -> Result<Self, MapError> {
        let definition = MapDefinition::parse(text)?;
        let canonical_json: toml::Table = toml::from_str(text).map_err(MapError::without_line)?;
        let canonical_json = serde_json::to_string(&canonical_json).map_err(MapError::without_line)?;
        let digest = blake3::hash(canonical_json.as_bytes()).to_hex()[..32].to_owned();
        MapValidator::new(text, definition)?.map(digest)
    }
}

struct MapValidator<'a> {
    text: &'a str,
    definition: MapDefinition,
    kind: Kind,
    layout: &'static KindLayout,
}

impl<'a> MapValidator<'a> {
    fn new(text: &'a str, definition: MapDefinition) -> Result<Self, MapError> {
        let word = definition.kind.get_ref();
        let layout = word.parse().ok().and_then(KindLayout::for_kind).ok_or_else(|| {
            let kinds: Vec<&str> = kind_layout::ALL.iter().map(|layout| layout.kind.as_str()).collect();
            let message = format!("unknown kind {word:?}; allowed: {}", kinds.join(", "));
            MapError::at_position(text, definition.kind.span(), message)
        })?;
        Ok(Self { text, definition, kind: layout.kind, layout })
    }

    fn at(&self, span: Range<usize>, message: impl fmt::Display) -> MapError {
        MapError::at_position(self.text, span, message)
    }

    /// Converts a value of the map. Fails with `message` if `convert` returns `None`.
    fn convert<S, T>(
        &self,
        value: Option<&Spanned<S>>,
        message: impl fmt::Display,
        convert: impl FnOnce(&S) -> Option<T>,
    ) -> Result<Option<T>, MapError> {
        let Some(value) = value else { return Ok(None) };
        convert(value.get_ref()).map(Some).ok_or_else(|| self.at(value.span(), message))
    }

    fn map(self, digest: String) -> Result<ColumnMap, MapError> {
        let message = "file.header is the number of header lines: 0 (none) to 5";
        let lines = self.definition.file.header.as_ref();
        let header =
            self.convert(lines, message, |lines| Some(*lines).filter(|lines| *lines <= 5))?.unwrap_or(1);
        let map = ColumnMap {
            kind: self.kind,
            delimiter: self.delimiter()?,
            windows_1252: self.is_windows_1252()?,
            first_line: self.definition.file.first_line,
            header,
            records: self.definition.file.records.clone(),
            columns: self.columns(header)?,
            constants: self.constants()?,
            wide: self.wide(header)?,
            skip_without: self.skip_without()?,
            only: self.only(header)?,
            dates: self.dates()?,
            zone: self.zone()?,
            units: self.units()?,
            numbers: self.numbers()?,
            scale: self.scale()?,
            aliases: self.aliases()?,
            absent: self.definition.rows.absent.clone(),
            file_name: self.pattern("symbols.file_name", self.definition.symbols.file_name.as_ref())?,
            cell: self.pattern("symbols.cell", self.definition.symbols.cell.as_ref())?,
            suffix: self.definition.symbols.suffix.clone(),
            digest,
        };
        self.check_required(&map)?;
        Ok(map)
    }

    /// Canonical column for a name in a section of the map. Fails if the kind has no such column.
    fn name(&self, section: &str, name: &str, span: Range<usize>) -> Result<&'static str, MapError> {
        let more: &[&'static str] = match self.kind {
            Kind::Split => &[RATIO, DIRECTION],
            Kind::Price => &[CURRENCY],
            _ => &[],
        };
        let allowed =
            || self.layout.names.iter().copied().filter(|known| *known != "kind").chain(more.iter().copied());
        allowed().find(|known| *known == name).ok_or_else(|| {
            let allowed: Vec<&str> = allowed().collect();
            let message = format!(
                "{section}{name} is not a column of a {}; allowed: {}",
                self.kind,
                allowed.join(", ")
            );
            self.at(span, message)
        })
    }

    fn delimiter(&self) -> Result<Option<u8>, MapError> {
        let message = "file.delimiter is one character, such as \";\", or \"tab\"";
        self.convert(self.definition.file.delimiter.as_ref(), message, |text| match text.as_bytes() {
            b"tab" => Some(b'\t'),
            [sign] if !matches!(sign, b'"' | b'\n') => Some(*sign),
            _ => None,
        })
    }

    fn is_windows_1252(&self) -> Result<bool, MapError> {
        let message = "file.encoding is \"utf-8\" or \"windows-1252\"; UTF-16 is detected";
        let names = ["utf-8", "windows-1252"];
        let position = |text: &String| names.iter().position(|name| text.eq_ignore_ascii_case(name));
        Ok(self.convert(self.definition.file.encoding.as_ref(), message, position)? == Some(1))
    }

    fn columns(&self, header: u64) -> Result<Vec<(&'static str, ColumnLocation)>, MapError> {
        let mut columns = Vec::new();
        for (name, location) in &self.definition.columns {
            let name = self.name("columns.", name, location.span())?;
            if header == 0 && matches!(location.get_ref(), ColumnLocation::Name(_)) {
                let message =
                    format!("columns.{name} is a name, but file.header = 0: write its column number, from 1");
                return Err(self.at(location.span(), message));
            }
            columns.push((name, location.get_ref().clone()));
        }
        Ok(columns)
    }

    fn constants(&self) -> Result<Vec<(&'static str, String)>, MapError> {
        let constant = |(name, value): (&String, &Spanned<String>)| {
            let name = self.name("constants.", name, value.span())?;
            if self.definition.columns.contains_key(name) {
                let message = format!("constants.{name} is also in [columns]: keep one of them");
                return Err(self.at(value.span(), message));
            }
            Ok((name, value.get_ref().clone()))
        };
        self.definition.constants.iter().map(constant).collect()
    }

    fn dates(&self) -> Result<Vec<DateFormat>, MapError> {
        let Some(formats) = &self.definition.dates.format else {
            return Ok(DateFormat::parse("YYYY-MM-DD").into_iter().collect());
        };
        let texts = formats.get_ref().as_slice();
        let format = |text: &String| {
            DateFormat::parse(text).ok_or_else(|| {
                let message = format!(
                    "dates.format {text:?} lacks a part of the date; allowed: {}",
                    cell_format::ALLOWED
                );
                self.at(formats.span(), message)
            })
        };
        texts.iter().map(format).collect()
    }

    fn zone(&self) -> Result<Option<ExchangeZone>, MapError> {
        let message = "dates.zone is the exchange's time zone by its IANA name, such as \"America/New_York\"";
        self.convert(self.definition.dates.zone.as_ref(), message, |zone| ExchangeZone::parse(zone))
    }

    /// Currency units, each with its currency. Longer units come first: `GBp` before `p`.
    fn units(&self) -> Result<Vec<(String, String)>, MapError> {
        let mut units = Vec::new();
        for (unit, currency) in &self.definition.units {
            let is_unit = !unit.trim().is_empty() && !unit.contains(|c: char| c.is_ascii_digit());
            if !is_unit || Currency::parse(currency.get_ref()).is_none() {
                let message = "[units] has the currency of each unit in the cells, such as p = \"GBX\"";
                return Err(self.at(currency.span(), message));
            }
            if !matches!(self.kind, Kind::Price | Kind::Dividend) {
                return Err(self.at(currency.span(), "[units] is for prices and dividends"));
            }
            units.push((unit.trim().to_owned(), currency.get_ref().clone()));
        }
        units.sort_by_key(|(unit, _)| std::cmp::Reverse(unit.len()));
        Ok(units)
    }

    fn numbers(&self) -> Result<NumberFormat, MapError> {
        let numbers = &self.definition.numbers;
        let one_of = |signs: &[char], text: &str| signs.iter().copied().find(|sign| text == sign.to_string());
        let message = "numbers.decimal is \".\" or \",\"";
        let decimal = self.convert(numbers.decimal.as_ref(), message, |text| one_of(&['.', ','], text))?;
        let decimal = decimal.unwrap_or('.');
        let message =
            "numbers.thousands is \",\", \".\", \" \" or \"'\", but not the same as numbers.decimal";
        let thousands = self.convert(numbers.thousands.as_ref(), message, |text| {
            one_of(&['.', ',', ' ', '\'', '’'], text).filter(|sign| *sign != decimal)
        })?;
        Ok(NumberFormat { decimal, thousands, strip: numbers.strip.clone(), suffixes: numbers.suffixes })
    }

    fn scale(&self) -> Result<BTreeMap<&'static str, Decimal>, MapError> {
        let factor = |(name, factor): (&String, &Spanned<ScaleFactor>)| {
            let name = self.name("scale.", name, factor.span())?;
            match canonical_column_type(name) == CanonicalColumnType::Number && name != RATIO {
                true => Ok((name, factor.get_ref().0)),
                false => Err(self.at(factor.span(), format!("scale.{name}: only numbers are scaled"))),
            }
        };
        self.definition.scale.iter().map(factor).collect()
    }

    fn aliases(&self) -> Result<BTreeMap<&'static str, BTreeMap<String, String>>, MapError> {
        let aliases = self.definition.aliases.iter();
        aliases
            .map(|(name, words)| Ok((self.name("aliases.", name, words.span())?, words.get_ref().clone())))
            .collect()
    }

    fn skip_without(&self) -> Result<Vec<&'static str>, MapError> {
        let names = self.definition.rows.skip_without.iter();
        names.map(|name| self.name("rows.skip_without: ", name.get_ref(), name.span())).collect()
    }

    fn only(&self, header: u64) -> Result<Vec<RowSelection>, MapError> {
        let selection = |(column, words): (&String, &Spanned<OneOrMore>)| {
            let number = column.parse::<usize>().ok().filter(|number| header == 0 && *number > 0);
            if header == 0 && number.is_none() {
                let message = format!(
                    "rows.only.{column} is a name, but file.header = 0: write its column number, from 1"
                );
                return Err(self.at(words.span(), message));
            }
            let location =
                number.map_or_else(|| ColumnLocation::Name(column.clone()), ColumnLocation::Number);
            let words = words.get_ref().as_slice().to_vec();
            let reason = format!("{column} is not {}", words.join(" or "));
            Ok(RowSelection { column: location, words, reason })
        };
        self.definition.rows.only.iter().map(selection).collect()
    }

    fn pattern(
        &self,
        key: &str,
        pattern: Option<&Spanned<String>>,
    ) -> Result<Option<SymbolPattern>, MapError> {
        let message = format!("{key} needs one {{symbol}} in the symbol's place, such as \"{{symbol}}.US\"");
        self.convert(pattern, message, |pattern| SymbolPattern::parse(pattern).ok())
    }

    fn wide(&self, header: u64) -> Result<Option<WideNames>, MapError> {
        let Some(wide) = &self.definition.wide else { return Ok(None) };
        let span = wide.name.span();
        if header == 0 {
            return Err(self.at(span, "[wide] reads the header, but file.header = 0"));
        }
        let pattern = ColumnNamePattern::parse(wide.name.get_ref()).ok_or_else(|| {
            let message =
                "wide.name has {symbol} or {date}, and may have {field}, each once, with characters between them";
            self.at(span.clone(), message)
        })?;
        let value = match &wide.value {
            Some(value) => Some(self.name("wide.value: ", value.get_ref(), value.span())?),
            None => None,
        };
        if value.is_some() == pattern.has_field() {
            let message =
                "the field of the cells is missing: write {field} in wide.name, or wide.value = \"close\"";
            return Err(self.at(span, message));
        }
        Ok(Some(WideNames { pattern, value, skip: wide.skip.clone() }))
    }

    /// Fails if the map has no column and no constant for a required value. Also fails if the map has a `direction` but
    /// no `ratio`.
    fn check_required(&self, map: &ColumnMap) -> Result<(), MapError> {
        let given = |name: &str| {
            let wide = map.wide.as_ref();
            map.columns.iter().any(|(known, _)| *known == name)
                || map.constants.iter().any(|(known, _)| *known == name)
                || wide.is_some_and(|wide| wide.value == Some(name))
                || wide.is_some_and(|wide| name == map.day_column() && wide.pattern.has_date())
                || matches!(name, "from" | "to") && map.columns.iter().any(|(known, _)| *known == RATIO)
        };
        let retracting = given("action");
        let required = self.layout.key.iter().chain(if retracting { &[] } else { self.layout.required });
        let mut missing: Vec<&str> =
            required.copied().filter(|name| Some(*name) != map.symbol_column() && !given(name)).collect();
        if self.kind == Kind::Dividend && !given("ex_date") && !given("record_date") {
            missing.push("ex_date (or record_date)");
        }
        if given(DIRECTION) && !given(RATIO) {
            return Err(MapError::without_line(
                "a direction needs a ratio: name the column of the ratio in [columns]",
            ));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "a {} needs {}: name {} in [columns] or [constants]",
            self.kind,
            missing.join(", "),
            if missing.len() == 1 { "it" } else { "them" }
        );
        Err(MapError::without_line(message))
    }
}
