//! Evidence in the cells and names of a table: currency units, dividend types, zeros, and adjustment for splits.

use super::cell_formats::split_currency_unit;
use super::cell_words::dividend_type;
use super::proposal::Proposal;
use super::table_profile::{ColumnContent, TableProfile};
use crate::format::{normalize_column_name, words_of_topic};

/// Unit of amounts in hundredths of a currency that the name does not tell.
pub(super) const CENTS: &str = "cents";

/// Columns whose cells may contain a currency unit.
const MONEY: [&str; 6] = ["open", "high", "low", "close", "vwap", "amount"];

/// Table, proposed map of the table, and name of the file (`label`).
pub(super) struct TableEvidence<'a> {
    pub(super) profile: &'a TableProfile,
    pub(super) proposal: &'a Proposal,
    pub(super) label: &'a str,
}

impl TableEvidence<'_> {
    /// Currency units in the cells of prices and amounts, in order of appearance.
    pub(super) fn currency_units(&self) -> Vec<&'static str> {
        let mut units = Vec::new();
        let wide = self.proposal.wide.is_some();
        for (index, column) in self.profile.columns.iter().enumerate() {
            let mapped =
                self.proposal.columns.iter().any(|known| known.index == index && MONEY.contains(&known.name));
            if !(mapped || wide && column.content == ColumnContent::Numbers) {
                continue;
            }
            for unit in column.cells.iter().filter_map(|cell| split_currency_unit(cell).1) {
                if !units.contains(&unit) {
                    units.push(unit);
                }
            }
        }
        units
    }

    /// Currency sign that the map can remove from all cells: `$`, `€` or `£`. `None` if the cells have no unit, several
    /// units or any other unit.
    pub(super) fn sign_to_strip(units: &[&'static str]) -> Option<&'static str> {
        match units {
            [unit] if ["$", "€", "£"].contains(unit) => Some(unit),
            _ => None,
        }
    }

    /// True if every word in the column with the dividend types has a known meaning.
    pub(super) fn has_known_types(&self) -> bool {
        let column = self.proposal.column("type").map(|index| &self.profile.columns[index]);
        column.is_some_and(|column| column.cells.iter().all(|cell| dividend_type(cell).is_some()))
    }

    /// True if the column `name`, or any numeric column of a wide table, contains a zero. Some files write a zero for a
    /// day without a dividend or split.
    pub(super) fn has_zeros(&self, name: &str) -> bool {
        let is_zero = |cell: &String| cell.bytes().all(|byte| b"-+0.,".contains(&byte));
        let wide = self.proposal.wide.is_some();
        let column = self.proposal.column(name);
        let columns = self.profile.columns.iter().enumerate();
        columns
            .filter(|(index, column_profile)| {
                Some(*index) == column || wide && column_profile.content == ColumnContent::Numbers
            })
            .any(|(_, column_profile)| column_profile.cells.iter().any(is_zero))
    }

    /// Unit in the name of the amount or the close: EUR for `Dividend (EUR)`, GBX for `close_pence`, and [`CENTS`] for
    /// `Amount (cents)`.
    pub(super) fn unit_in_name(&self) -> Option<&'static str> {
        let value = self.proposal.column("amount").or_else(|| self.proposal.column("close"))?;
        let name = &self.profile.columns[value].name;
        let remark = name.split(['(', '[']).nth(1).map(|remark| remark.trim_end_matches([')', ']', ' ']));
        let parts = name.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '$');
        let unit_of = |text: &str| {
            let mut units = words_of_topic("unit in a name").iter().filter_map(|entry| entry.split_once(' '));
            units.find(|(unit, _)| *unit == text).map(|(_, currency)| currency)
        };
        // A single letter such as p is a unit only as the whole remark.
        let mut words = parts.filter(|part| part.len() > 1 || !part.is_ascii() || *part == "$");
        remark.and_then(unit_of).or_else(|| words.find_map(unit_of))
    }

    /// True for the columns of Yahoo's tables of dividends, whose dates are ex-dates.
    pub(super) fn is_yahoo(&self) -> bool {
        self.profile.columns.iter().any(|column| column.name == "Dividends")
    }

    /// True if the close is probably adjusted for splits. A separate column for the adjusted close, or the
    /// file name, shows this.
    pub(super) fn is_adjusted(&self) -> bool {
        let position = |words: &[&str]| {
            let is_named = |name: &str| {
                name.split('|').any(|part| words.contains(&normalize_column_name(part).as_str()))
            };
            self.profile.columns.iter().position(|column| is_named(&column.name))
        };
        // In Yahoo's older layout, `Adj Close` follows the volume, and the close is raw.
        let adjusted =
            position(&["adjclose"]).filter(|at| position(&["volume"]).is_none_or(|volume| *at < volume));
        adjusted.or_else(|| position(&["closeadj"])).is_some() || self.file_name_says_adjusted()
    }

    /// True if the file's name contains `adj`, which usually means that the values are adjusted.
    pub(super) fn file_name_says_adjusted(&self) -> bool {
        self.label.to_lowercase().contains("adj")
    }
}
