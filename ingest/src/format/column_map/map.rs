//! Validated column map. It locates the canonical columns in a file, and converts the cells to canonical form.
//!
//! Column maps: those that ship with the program, and those in files of the user.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use market::event::Kind;
use market::metrics::currency::Currency;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::cell_format;
use super::cell_format::{DateFormat, NumberFormat};
use super::map_definition::ColumnLocation;
use super::name_pattern::ColumnNamePattern;
use crate::format::canonical::kind_layout::{CanonicalColumnType, KindLayout, canonical_column_type};
use crate::format::column_map::name_pattern::SymbolPattern;
use crate::normalize::{ExchangeZone, RowError, abbreviate, is_absent_value};
use crate::source::file_access::{Links, read_small_text};

/// Column with the ratio of new to old shares in a split, such as `4:1` or `4.0`.
pub(super) const RATIO: &str = "ratio";
/// Column with the direction of a split: more shares (`forward`) or fewer shares (`reverse`).
pub(super) const DIRECTION: &str = "direction";
/// Column with the currency of the numbers in a row. For prices, this column only converts a minor unit, such as pence
/// (GBX).
pub(super) const CURRENCY: &str = "currency";
/// Columns whose cells may contain a currency unit.
pub(crate) const MONEY: [&str; 6] = ["open", "high", "low", "close", "vwap", "amount"];

/// Validated map.
#[derive(Debug)]
pub struct ColumnMap {
    pub(super) kind: Kind,
    /// Delimiter of the fields; `None` for detection from the header.
    pub(super) delimiter: Option<u8>,
    pub(super) windows_1252: bool,
    /// Line of the header, or else of the first record; `None` if the map sets no line.
    pub(super) first_line: Option<u64>,
    /// Number of header lines.
    pub(super) header: u64,
    /// JSON: path of the member with the records. `None` for a list of records, and for `results` and `data`.
    pub(super) records: Option<String>,
    pub(super) columns: Vec<(&'static str, ColumnLocation)>,
    pub(super) constants: Vec<(&'static str, String)>,
    pub(super) wide: Option<WideNames>,
    /// Canonical columns that a record must fill. A record with an empty or zero cell in one of these columns is
    /// skipped.
    pub(super) skip_without: Vec<&'static str>,
    pub(super) only: Vec<RowSelection>,
    pub(super) dates: Vec<DateFormat>,
    /// Time zone of the exchange. Times in UTC are converted to dates in this zone.
    pub(super) zone: Option<ExchangeZone>,
    /// Currency units in the cells of prices and amounts, each with its currency, such as `p` with `GBX`. Longer units
    /// come first, because a cell that ends with `GBp` also ends with `p`.
    pub(super) units: Vec<(String, String)>,
    pub(super) numbers: NumberFormat,
    pub(super) scale: BTreeMap<&'static str, Decimal>,
    pub(super) aliases: BTreeMap<&'static str, BTreeMap<String, String>>,
    pub(super) absent: Vec<String>,
    /// Pattern for the symbol in file names.
    pub(super) file_name: Option<SymbolPattern>,
    pub(super) cell: Option<SymbolPattern>,
    pub(super) suffix: String,
    /// Hash of the map's content. Comments and the order of entries do not change it. Each input's digest includes it,
    /// because another map gives other rows.
    pub(crate) digest: String,
}

/// Columns whose names contain a symbol, a field or a date.
#[derive(Debug)]
pub(super) struct WideNames {
    pub(super) pattern: ColumnNamePattern,
    /// Canonical column of the cells, such as `close`. `None` if the column names contain the field, as in
    /// `AAPL.Close`.
    pub(super) value: Option<&'static str>,
    pub(super) skip: Vec<String>,
}

/// Column of the file whose words select the records to read.
#[derive(Debug)]
pub(super) struct RowSelection {
    pub(super) column: ColumnLocation,
    pub(super) words: Vec<String>,
    /// Reason why a record is skipped, for the summary of a load: `SERIES is not EQ`.
    pub(super) reason: String,
}

impl RowSelection {
    /// True if the records with this cell are read.
    pub(super) fn selects(&self, cell: &str) -> bool {
        self.words.iter().any(|word| word == cell.trim())
    }
}

impl ColumnMap {
    /// Column with the symbol of a row; `None` for kinds without a symbol, such as sessions.
    pub(super) fn symbol_column(&self) -> Option<&'static str> {
        let layout = KindLayout::for_kind(self.kind)?;
        layout.key.iter().copied().find(|name| matches!(*name, "symbol" | "etf_symbol"))
    }

    /// True if the map locates the symbol of each row, or if the kind has no symbol. Otherwise a file has one symbol,
    /// from the command line or the file name.
    pub(crate) fn has_symbol_column(&self) -> bool {
        let Some(owner) = self.symbol_column() else { return true };
        self.columns.iter().any(|(name, _)| *name == owner)
            || self.constants.iter().any(|(name, _)| *name == owner)
            || self.wide.as_ref().is_some_and(|wide| wide.pattern.has_symbol())
    }

    /// Converts a cell to canonical form; `None` for an absent value. `factor` applies to a number without a factor in
    /// the map.
    pub(super) fn convert_cell<'a>(
        &self,
        name: &'static str,
        cell: &'a str,
        factor: Option<Decimal>,
    ) -> Result<Option<Cow<'a, str>>, RowError> {
        let cell = cell.trim();
        if self.is_absent(name, cell) {
            return Ok(None);
        }
        if is_absent_value(cell.as_bytes()) {
            let message = format_args!(
                "{name} {cell:?} is no value: write the amount; for rows without a payment, add {cell:?} to the map's rows.absent"
            );
            return Err(RowError::new("missing_field", message));
        }
        if let Some(other) = self.aliases.get(name).and_then(|aliases| aliases.get(cell)) {
            return Ok(Some(Cow::Owned(other.clone())));
        }
        let value = match canonical_column_type(name) {
            CanonicalColumnType::Date => {
                Cow::Owned(cell_format::read_date(&self.dates, self.zone, name, cell)?.to_string())
            }
            CanonicalColumnType::Number if name == RATIO => Cow::Borrowed(cell),
            CanonicalColumnType::Number => {
                self.numbers.read(name, cell, self.scale.get(name).copied().or(factor))?
            }
            CanonicalColumnType::Text if Some(name) == self.symbol_column() => {
                Cow::Owned(self.symbol(name, cell)?)
            }
            CanonicalColumnType::Text => Cow::Borrowed(cell),
        };
        Ok(Some(value))
    }

    /// Currency of all prices after their conversion; `None` if the map has no constant currency.
    pub(crate) fn price_currency(&self) -> Option<Currency> {
        let (_, text) = self.constants.iter().find(|(name, _)| *name == CURRENCY)?;
        Currency::parse(text).map(|currency| Currency { minor: None, ..currency })
    }

    /// Splits a cell such as `12.5p` into its number and the currency of its unit. The currency is `None` for a cell
    /// without a unit.
    pub(super) fn split_currency_unit<'a>(&self, name: &str, cell: &'a str) -> (&'a str, Option<&str>) {
        let cell = cell.trim();
        if !MONEY.contains(&name) {
            return (cell, None);
        }
        let number = |unit: &str| cell.strip_prefix(unit).or_else(|| cell.strip_suffix(unit)).map(str::trim);
        let found = self.units.iter().find_map(|(unit, currency)| Some((number(unit)?, currency.as_str())));
        found.map_or((cell, None), |(number, currency)| (number, Some(currency)))
    }

    /// Canonical column with the day of a row: `date`, `ex_date` or `as_of`.
    pub(super) fn day_column(&self) -> &'static str {
        match self.kind {
            Kind::Dividend | Kind::Split => "ex_date",
            Kind::Price | Kind::Session => "date",
            _ => "as_of",
        }
    }

    /// True if the cell of a column in `skip_without` is absent. The record is then skipped.
    pub(super) fn skips(&self, name: &'static str, cell: &str) -> bool {
        self.skip_without.contains(&name) && self.is_absent(name, cell.trim())
    }

    /// True if a cell has no value. An amount such as `n/a` has an unknown value, unless the map lists the word: a payment
    /// may be missing. In a wide table, it is a day without a payment.
    fn is_absent(&self, name: &str, cell: &str) -> bool {
        let is_payment = name == "amount" && self.wide.is_none();
        cell.is_empty()
            || self.absent.iter().any(|word| word == cell)
            || !is_payment && is_absent_value(cell.as_bytes())
    }

    /// Symbol in a cell or a column name, with the map's suffix.
    fn symbol(&self, name: &str, text: &str) -> Result<String, RowError> {
        let inside = match &self.cell {
            Some(pattern) => pattern.extract_text(text).ok_or_else(|| {
                let shown = abbreviate(text.as_bytes());
                RowError::new(
                    "bad_symbol",
                    format_args!("{name} {shown:?} does not fit the map's symbols.cell = \"{pattern}\""),
                )
            })?,
            None => text,
        };
        Ok(format!("{inside}{}", self.suffix))
    }

    /// Replaces the symbol of a file by the map's alias. Without an alias, adds the map's suffix.
    pub(super) fn apply_aliases(&self, symbol: Symbol) -> Result<Symbol, String> {
        let aliases = self.symbol_column().and_then(|owner| self.aliases.get(owner));
        let text = match aliases.and_then(|aliases| aliases.get(symbol.as_str())) {
            Some(other) => other.clone(),
            None if self.suffix.is_empty() => return Ok(symbol),
            None => format!("{symbol}{}", self.suffix),
        };
        Symbol::parse(&text).map_err(|error| format!("has an invalid symbol under the map: {text:?} {error}"))
    }
}

/// Maps that ship with the program, each with its name and its TOML text.
pub const SHIPPED: [(&str, &str); 6] = [
    ("german-broker", include_str!("shipped/german-broker.toml")),
    ("investing", include_str!("shipped/investing.toml")),
    ("lean", include_str!("shipped/lean.toml")),
    ("nasdaq", include_str!("shipped/nasdaq.toml")),
    ("stooq", include_str!("shipped/stooq.toml")),
    ("yfinance-wide", include_str!("shipped/yfinance-wide.toml")),
];

/// Name of the first shipped map that fits a header. A map fits if the header contains all columns of the map. Maps of
/// wide tables are not considered.
pub(crate) fn find_shipped_map(columns: &[String]) -> Option<&'static str> {
    let fits = |(_, text): &&(&str, &str)| {
        ColumnMap::parse(text).is_ok_and(|map| {
            let named =
                |(_, location): &(_, ColumnLocation)| matches!(location, ColumnLocation::Name(name) if columns.contains(name));
            map.wide.is_none() && map.columns.iter().all(named)
        })
    };
    SHIPPED.iter().find(fits).map(|(name, _)| *name)
}

/// Map with its name on the command line.
#[derive(Debug, Clone)]
pub struct MapFile {
    /// Absolute path, or the name of a shipped map.
    pub name: String,
    /// The validated map.
    pub map: Arc<ColumnMap>,
}

impl MapFile {
    /// Reads the shipped map with this name, or else the map file at this path. A symbolic link is refused.
    ///
    /// # Errors
    /// The file cannot be read, or the map has a mistake.
    pub fn open(name_or_path: &str) -> Result<Self, String> {
        let shipped = SHIPPED.iter().find(|(known, _)| *known == name_or_path);
        let (name, text) = match shipped {
            Some((name, text)) => ((*name).to_owned(), (*text).to_owned()),
            None => {
                let text = read_small_text(Path::new(name_or_path), Links::Refused).map_err(|error| {
                    let known: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                    format!("cannot be read: {error}; maps that ship with the program: {}", known.join(", "))
                })?;
                let path = std::path::absolute(name_or_path).map_err(|error| error.to_string())?;
                (path.display().to_string(), text)
            }
        };
        let map = ColumnMap::parse(&text).map_err(|error| error.to_string())?;
        Ok(Self { name, map: Arc::new(map) })
    }
}
