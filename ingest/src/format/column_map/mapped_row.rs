//! Conversion of a row to a canonical record, and the reader of JSON files, under a column map. Symbol of the rows of a
//! file, for a map without a symbol column.

use std::borrow::Cow;

use market::decimal::parse_decimal;
use market::event::Kind;
use market::metrics::currency::Currency;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::map::{CURRENCY, ColumnMap, DIRECTION, MONEY, RATIO, RowSelection};
use super::map_definition::ColumnLocation;
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::canonical::kind_layout::FILE_FIELD;
use crate::format::canonical::{RecordBuilder, parse_ratio};
use crate::format::file_format::{FeedReadError, ReaderOptions, SymbolScope, VendorFile};
use crate::format::file_records::{read_documents, read_objects};
use crate::format::file_symbol;
use crate::format::raw_json::RawJson;
use crate::normalize::{RowError, parse_currency};
use crate::source::feed_files::Encoding;

/// Values of a row, each with its canonical column name.
pub(super) type RowValues<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Values that do not depend on the cells of a row: the symbol of the file, and the map's constants.
pub(super) fn constants<'a>(map: &'a ColumnMap, owner: Option<(&'static str, String)>) -> RowValues<'a> {
    let constants = map.constants.iter().map(|(name, value)| (*name, Cow::Borrowed(value.as_str())));
    owner.into_iter().map(|(name, symbol)| (name, Cow::Owned(symbol))).chain(constants).collect()
}

/// Adds a converted value, and sets the row's currency if the cell has a currency unit.
pub(super) fn push<'a>(
    map: &ColumnMap,
    name: &'static str,
    value: Cow<'a, str>,
    currency: Option<&str>,
    values: &mut RowValues<'a>,
) -> Result<(), RowError> {
    if name == CURRENCY {
        return set_currency(map, value, values);
    }
    values.push((name, value));
    currency.map_or(Ok(()), |currency| set_currency(map, Cow::Owned(currency.to_owned()), values))
}

/// Sets the currency of a row. A currency column or a unit in a cell overrides the map's constant currency. Two
/// different currencies in one row are an error.
fn set_currency<'a>(
    map: &ColumnMap,
    currency: Cow<'a, str>,
    values: &mut RowValues<'a>,
) -> Result<(), RowError> {
    let constant = map.constants.iter().find(|(name, _)| *name == CURRENCY).map(|(_, value)| value.as_str());
    match values.iter_mut().find(|(name, _)| *name == CURRENCY) {
        None => values.push((CURRENCY, currency)),
        Some((_, known)) if Some(known.as_ref()) == constant => *known = currency,
        Some((_, known)) if *known == currency => {}
        Some((_, known)) => {
            return Err(RowError::new(
                "bad_value",
                format_args!("the row has two currencies: {known} and {currency}"),
            ));
        }
    }
    Ok(())
}

/// Converts prices in a minor unit to the major unit. Removes the currency, because canonical prices have no currency, and
/// returns it.
fn take_currency(values: &mut RowValues<'_>) -> Result<Option<Currency>, RowError> {
    let Some(at) = values.iter().position(|(name, _)| *name == CURRENCY) else { return Ok(None) };
    let (_, text) = values.remove(at);
    let currency = parse_currency(CURRENCY, &text)?;
    for (name, value) in
        values.iter_mut().filter(|(name, _)| currency.minor.is_some() && MONEY.contains(name))
    {
        let parsed =
            parse_decimal(value).map_err(|error| RowError::invalid_number(name, value.as_bytes(), error))?;
        *value = Cow::Owned(currency.to_major(parsed.value).to_string());
    }
    Ok(Some(Currency { minor: None, ..currency }))
}

/// Old and new shares of a split. A `forward` split increases the number of shares, and a `reverse` split reduces it.
/// Without a direction, the ratio is new to old shares.
fn split_sides(ratio: &str, direction: Option<&str>) -> Result<(Decimal, Decimal), RowError> {
    let (from, to) = parse_ratio(ratio).ok_or_else(|| {
        let message = format_args!("ratio {ratio:?} is invalid: write new to old, such as 4:1 or 4.0");
        RowError::new("bad_number", message)
    })?;
    match direction {
        None => Ok((from, to)),
        Some("forward") => Ok((from.min(to), from.max(to))),
        Some("reverse") => Ok((from.max(to), from.min(to))),
        Some(other) => {
            let message = format_args!(
                "direction {other:?} must be forward or reverse: name the words in [aliases.direction]"
            );
            Err(RowError::new("bad_value", message))
        }
    }
}

/// Validates a row and adds it. A row is not added if its value for a column of the map's `skip_without` is missing or
/// zero.
pub(super) fn accept(
    map: &ColumnMap,
    mut values: RowValues<'_>,
    line: u64,
    bytes: usize,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let is_zero = |text: &str| text.bytes().all(|byte| b"-+0.".contains(&byte));
    let has = |name: &&str| values.iter().any(|(known, value)| known == name && !is_zero(value));
    if let Some(name) = map.skip_without.iter().find(|name| !has(name)) {
        rows.stats.count_skipped(without_value(name));
        return Ok(());
    }
    if !map.units.is_empty() && !values.iter().any(|(name, _)| *name == CURRENCY) {
        let message =
            "the number has no unit of the map's [units]: add the unit there, or set constants.currency";
        return Err(RowError::new("bad_value", message));
    }
    let currency = if map.kind == Kind::Price { take_currency(&mut values)? } else { None };
    let symbol = values.iter().find(|(name, _)| *name == "symbol").map(|(_, symbol)| symbol.to_string());
    let direction =
        values.iter().find(|(name, _)| *name == DIRECTION).map(|(_, value)| value.to_ascii_lowercase());
    let mut draft = RecordBuilder::new(map.kind);
    for (name, value) in values {
        draft = match name {
            RATIO => draft.with_shares(split_sides(&value, direction.as_deref())?),
            DIRECTION => draft,
            name => draft.with_value(name, Some(value)),
        };
    }
    draft.validate_into(line, bytes, rows)?;
    rows.stats.records += 1;
    if let (Some(currency), Some(symbol)) = (currency, symbol.and_then(|symbol| Symbol::parse(&symbol).ok()))
    {
        rows.evidence.add_price_currency(&symbol, &currency);
        rows.stats.currencies.add_price_currency(&symbol, &currency);
    }
    Ok(())
}

/// Reason of a skipped row, for the summary of a load.
pub(super) fn without_value(name: &str) -> String {
    format!("without {name}")
}

/// Reads the records of a JSON file.
pub(super) fn read_json(
    map: &ColumnMap,
    is_reject_export: bool,
    owner: &RowOwner<'_>,
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let mut paths = Vec::new();
    for (name, location) in &map.columns {
        // In exported rejects, an unnamed column has its number as name.
        paths.push(match location {
            ColumnLocation::Name(path) => (*name, Cow::Borrowed(path.as_str())),
            ColumnLocation::Number(_) if !is_reject_export => {
                let message = format!("is JSON, which has no column numbers: columns.{name} must be a name");
                return Err(FeedReadError::Refused(message));
            }
            ColumnLocation::Number(number) => (*name, Cow::Owned(number.to_string())),
        });
    }
    let take = |object: RawJson<'_>, wrapper: Option<RawJson<'_>>, line: u64, rows: &mut RowAccumulator| {
        let is_selected = |selection: &&RowSelection| {
            let ColumnLocation::Name(path) = &selection.column else { return false };
            let found = member(object, path).or_else(|| member(wrapper?, path)).and_then(RawJson::text);
            found.is_some_and(|cell| selection.selects(&cell))
        };
        if let Some(selection) = map.only.iter().find(|selection| !is_selected(selection)) {
            return rows.stats.count_skipped(selection.reason.clone());
        }
        let original_file = object.get(FILE_FIELD).and_then(RawJson::text);
        let read = owner
            .value(original_file.as_deref())
            .and_then(|owner| object_values(map, &paths, owner, object, wrapper))
            .and_then(|values| accept(map, values, line, object.raw().len(), rows));
        if let Err(fault) = read {
            rows.stats.records += 1;
            rows.add_reject(line, object.raw().as_bytes(), fault);
        }
    };
    // Exported rejects are single objects, so the path `file.records` does not apply to them.
    let Some(path) = map.records.as_deref().filter(|_| !is_reject_export) else {
        return read_objects(file, rows, take);
    };
    let by_line = file.encoding == Encoding::Ndjson;
    let mut number = 0;
    read_documents(file, rows, |document, line, rows| {
        records_at(document, Some(path), None, &mut |object, page| {
            number += 1;
            take(object, page, if by_line { line } else { number }, rows);
        });
    })?;
    match number {
        0 => Err(FeedReadError::Refused(format!(
            "has no records at {path:?}, the path of the map's file.records"
        ))),
        _ => Ok(()),
    }
}

/// Calls `each` for every record at a path such as `data.rows`. The second argument of `each` is the object that
/// contains the record. Lists on the path are expanded into their items.
fn records_at<'a>(
    value: RawJson<'a>,
    path: Option<&str>,
    page: Option<RawJson<'a>>,
    each: &mut impl FnMut(RawJson<'a>, Option<RawJson<'a>>),
) {
    // A list inside a list is passed as a whole, and rejected because it is not an object.
    let items = if value.is_list() { value.items() } else { vec![value] };
    let step = path.map(|path| path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest))));
    for item in items {
        match step {
            None => each(item, page),
            Some((name, rest)) => {
                if let Some(inner) = item.get(name) {
                    records_at(inner, rest, Some(item), each);
                }
            }
        }
    }
}

/// Values of an object at the paths in the map. A value missing in the object is taken from the enclosing object.
fn object_values<'a>(
    map: &'a ColumnMap,
    paths: &[(&'static str, Cow<'_, str>)],
    owner: Option<(&'static str, String)>,
    object: RawJson<'a>,
    wrapper: Option<RawJson<'a>>,
) -> Result<RowValues<'a>, RowError> {
    if !object.is_object() {
        return Err(RowError::new("malformed_row", "is not a JSON object"));
    }
    let mut values = constants(map, owner);
    for (name, path) in paths {
        let found = member(object, path).or_else(|| member(wrapper?, path)).and_then(RawJson::text);
        if let Some(text) = found {
            let (text, currency) = map.split_currency_unit(name, &text);
            if let Some(value) = map.convert_cell(name, text, None)? {
                push(map, name, Cow::Owned(value.into_owned()), currency, &mut values)?;
            }
        }
    }
    Ok(values)
}

/// Finds a member by name or by path, for example `quote.close`.
fn member<'a>(object: RawJson<'a>, path: &str) -> Option<RawJson<'a>> {
    object.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        member(object.get(first)?, rest)
    })
}

/// Symbol of a file with this name, for a map without a symbol column.
pub(super) fn symbol_of_file(
    map: &ColumnMap,
    label: &str,
    options: &ReaderOptions,
) -> Result<Option<Symbol>, String> {
    let symbol_from = options.symbol_from.clone().or_else(|| map.file_name.clone());
    let options = ReaderOptions { symbol_from, ..options.clone() };
    let symbol = file_symbol::resolve_file_symbol(label, SymbolScope::File, &options)?;
    symbol.map(|symbol| map.apply_aliases(symbol)).transpose()
}

/// Symbol of the rows of a file, for a map without a symbol column.
pub(super) struct RowOwner<'a> {
    map: &'a ColumnMap,
    options: &'a ReaderOptions,
    /// Symbol of all rows. In a file of exported rejects, each row may have the symbol of its original file.
    pub(super) symbol: Option<String>,
    has_original_files: bool,
}

impl<'a> RowOwner<'a> {
    pub(super) fn new(
        map: &'a ColumnMap,
        options: &'a ReaderOptions,
        symbol: Option<&Symbol>,
        is_reject_export: bool,
    ) -> Self {
        let symbol = symbol.map(ToString::to_string);
        let has_original_files = is_reject_export && symbol.is_none() && !map.has_symbol_column();
        Self { map, options, symbol, has_original_files }
    }

    /// Symbol of a row with its canonical column. `original_file` is the row's cell of the column [`FILE_FIELD`].
    pub(super) fn value(
        &self,
        original_file: Option<&str>,
    ) -> Result<Option<(&'static str, String)>, RowError> {
        let Some(column) = self.map.symbol_column() else { return Ok(None) };
        if !self.has_original_files {
            return Ok(self.symbol.clone().map(|symbol| (column, symbol)));
        }
        let label = original_file.ok_or_else(|| RowError::missing_value(FILE_FIELD))?;
        let symbol = symbol_of_file(self.map, label, self.options)
            .map_err(|reason| RowError::new("bad_symbol", format_args!("{FILE_FIELD} {label:?} {reason}")))?;
        Ok(symbol.map(|symbol| (column, symbol.to_string())))
    }
}
