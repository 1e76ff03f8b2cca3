//! Positions of a column map's columns in one file. The file's header determines the positions.

use std::collections::{BTreeSet, HashMap};

use market::symbol::Symbol;
use rust_decimal::Decimal;
use telemetry::list_names;

use super::map::{ColumnMap, MONEY, WideNames};
use super::map_definition::ColumnLocation;
use super::name_pattern::NameParts;
use crate::format::canonical::kind_layout::{CanonicalColumnType, EXPORT_FIELDS, canonical_column_type};
use crate::format::file_head::{meaning_of, normalize_column_name};
use crate::normalize::RowError;

/// Canonical columns, each with the position of its cell in the record.
type CellPositions = Vec<(&'static str, usize)>;

/// Rows and cells to read from each record of a file.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    /// Cells with values that belong to all rows of a record, such as the date.
    pub(super) common: CellPositions,
    /// Rows made from one record: one row, or in a wide table one row per symbol or date.
    pub(super) rows: Vec<PlannedRow>,
    /// Position of the column of each [`ColumnMap::only`].
    pub(super) selecting: Vec<usize>,
    /// Factors in the names of columns that the map does not scale: 1000 for `Vol (k)`.
    factors: Vec<(&'static str, Decimal)>,
}

/// A row to build from each record.
#[derive(Debug, Default)]
pub(super) struct PlannedRow {
    /// Values that the column names contain, such as a symbol, each with the name of its canonical column.
    pub(super) constants: Vec<(&'static str, String)>,
    pub(super) cells: CellPositions,
}

impl ColumnPlan {
    /// Finds each column of a map by its name in the header, or by its number. Fails with a message if a column is
    /// missing.
    pub(super) fn resolve(map: &ColumnMap, names: &[String]) -> Result<Self, String> {
        let mut common = CellPositions::new();
        let mut fields = Vec::new();
        let mut factors = Vec::new();
        for (name, location) in &map.columns {
            match location {
                ColumnLocation::Number(number) => common.push((*name, number - 1)),
                ColumnLocation::Name(wanted) => match find(names, &format!("columns.{name}"), wanted)? {
                    Some(index) => {
                        common.push((*name, index));
                        let factor =
                            factor_in_name(name, &names[index]).filter(|_| !map.scale.contains_key(name));
                        factors.extend(factor.map(|factor| (*name, factor)));
                    }
                    None => fields.push((*name, wanted.as_str())),
                },
            }
        }
        let selecting = map.only.iter().map(|selection| match &selection.column {
            ColumnLocation::Number(number) => Ok(number - 1),
            ColumnLocation::Name(wanted) => {
                find(names, "rows.only", wanted)?.ok_or_else(|| no_column("rows.only", wanted, names))
            }
        });
        let selecting = selecting.collect::<Result<Vec<usize>, String>>()?;
        let Some(wide) = &map.wide else {
            return match fields.first() {
                Some((name, wanted)) => Err(no_column(&format!("columns.{name}"), wanted, names)),
                None => Ok(Self { common, rows: vec![PlannedRow::default()], selecting, factors }),
            };
        };
        let rows = wide_rows(map, wide, names, &common, &fields, &selecting)?;
        Ok(Self { common, rows, selecting, factors })
    }

    /// Factor in the name of the file's column for a canonical column.
    pub(super) fn factor(&self, name: &str) -> Option<Decimal> {
        self.factors.iter().find(|(known, _)| *known == name).map(|(_, factor)| *factor)
    }
}

/// Factor of the numbers of a column that its name states in brackets: 1000 for `Vol (k)`, a million for `Volume (m)`.
/// `None` for prices and amounts of one share, whose names state currencies.
pub(crate) fn factor_in_name(canonical: &str, name: &str) -> Option<Decimal> {
    let scales =
        canonical_column_type(canonical) == CanonicalColumnType::Number && !MONEY.contains(&canonical);
    let (_, remark) = name.split_once(['(', '[']).filter(|_| scales)?;
    let remark =
        remark.trim_end_matches([')', ']', ' ']).trim().trim_start_matches('\'').to_ascii_lowercase();
    meaning_of("factor in a name", &remark)?.parse().ok()
}

/// Position of the column with the name `wanted`. If no name is exactly equal, names that differ only in case and
/// punctuation are accepted. Fails if two columns fit.
fn find(names: &[String], column: &str, wanted: &str) -> Result<Option<usize>, String> {
    let positions = |same: &dyn Fn(&String) -> bool| -> Vec<usize> {
        names.iter().enumerate().filter(|(_, name)| same(name)).map(|(index, _)| index).collect()
    };
    let mut found = positions(&|name| name == wanted);
    if found.is_empty() && !normalize_column_name(wanted).is_empty() {
        found = positions(&|name| normalize_column_name(name) == normalize_column_name(wanted));
    }
    match found.as_slice() {
        [first, second, ..] => {
            Err(format!("has the column {wanted:?} twice: write {column} = {} or {}", first + 1, second + 1))
        }
        found => Ok(found.first().copied()),
    }
}

fn no_column(name: &str, wanted: &str, names: &[String]) -> String {
    let listed = list_names(names, MAX_LISTED, names.len());
    format!("has no column {wanted:?} ({name} of the map); its columns are: {listed}")
}

/// Maximum number of column names in an error message.
const MAX_LISTED: usize = 20;

/// Rows to build from each record of a wide table (symbols or dates in the column names). Columns with the same symbol
/// and date form one row.
fn wide_rows(
    map: &ColumnMap,
    wide: &WideNames,
    names: &[String],
    common: &CellPositions,
    fields: &[(&'static str, &str)],
    selecting: &[usize],
) -> Result<Vec<PlannedRow>, String> {
    let field_of = |text: &str| {
        let known = fields.iter().find(|(_, wanted)| {
            *wanted == text || normalize_column_name(wanted) == normalize_column_name(text)
        });
        known.map(|(name, _)| *name)
    };
    let wanted = |parts: &NameParts<'_>| parts.field.is_none_or(|field| field_of(field).is_some());
    let mut rows: Vec<PlannedRow> = Vec::new();
    let mut by_constants: HashMap<Vec<(&str, String)>, usize> = HashMap::new();
    let mut used = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let excluded = common.iter().any(|(_, position)| *position == index)
            || wide.skip.contains(name)
            || selecting.contains(&index)
            || EXPORT_FIELDS.contains(&name.as_str());
        let Some(parts) = wide.pattern.read(name, &wanted).filter(|_| !excluded && !name.is_empty()) else {
            continue;
        };
        let Some(column) = parts.field.map_or(wide.value, field_of) else { continue };
        let constants = values_of_name(map, name, &parts)?;
        used.insert(column);
        let row_index = *by_constants.entry(constants.clone()).or_insert(rows.len());
        if row_index == rows.len() {
            rows.push(PlannedRow { constants, cells: CellPositions::new() });
        }
        let cells = &mut rows[row_index].cells;
        if cells.iter().any(|(known, _)| *known == column) {
            return Err(format!("has two columns of {name:?}: name one of them in wide.skip"));
        }
        cells.push((column, index));
    }
    if let Some((name, wanted)) = fields.iter().find(|(name, _)| !used.contains(name)) {
        return Err(no_column(&format!("columns.{name}"), wanted, names));
    }
    if rows.is_empty() {
        return Err(format!(
            "has no column whose name fits wide.name; its columns are: {}",
            list_names(names, MAX_LISTED, names.len())
        ));
    }
    Ok(rows)
}

/// Symbol and date in a column name, each with its canonical column. Fails if one of them is invalid.
fn values_of_name(
    map: &ColumnMap,
    name: &str,
    parts: &NameParts<'_>,
) -> Result<Vec<(&'static str, String)>, String> {
    let mut constants = Vec::new();
    let value = |column, text| {
        let value = map.convert_cell(column, text, None).map_err(|RowError { message, .. }| message)?;
        Ok::<_, String>(value.map(std::borrow::Cow::into_owned))
    };
    if let (Some(text), Some(owner)) = (parts.symbol, map.symbol_column()) {
        let symbol = value(owner, text)?.filter(|symbol| Symbol::parse(symbol).is_ok());
        let mixed = text.contains(|c: char| c.is_lowercase()) && text.contains(|c: char| c.is_uppercase());
        let symbol = symbol.filter(|symbol| !mixed || symbol != text);
        constants.push((owner, symbol.ok_or_else(|| {
            format!("has the column {name:?}, which is not a symbol: list it in wide.skip = [{name:?}], or give its symbol in [aliases.{owner}]")
        })?));
    }
    if let Some(text) = parts.date {
        let column = map.day_column();
        let date = value(column, text)?;
        constants.push((column, date.ok_or_else(|| format!("has the column {name:?} without a date"))?));
    }
    Ok(constants)
}
