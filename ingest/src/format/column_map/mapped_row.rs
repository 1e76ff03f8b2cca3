//! Conversion of a row to a canonical record, in a file with a column map.

use std::borrow::Cow;

use market::decimal::parse_decimal;
use market::event::Kind;
use market::metrics::currency::Currency;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::map::{CURRENCY, ColumnMap, DIRECTION, MONEY, RATIO};
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::canonical::RecordBuilder;
use crate::format::split_ratio;
use crate::normalize::{RowError, parse_currency};

/// Values of a row, each with its canonical column name.
pub(super) type RowValues<'a> = Vec<(&'static str, Cow<'a, str>)>;

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
    let (from, to) = split_ratio::parse_ratio(ratio).ok_or_else(|| {
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
