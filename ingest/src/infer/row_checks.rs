//! Checks of a reading against the rows of the table: products of share counts and amounts, the order of the prices of a
//! bar, and closes that contradict each other.

use std::collections::BTreeMap;

use market::decimal::parse_figure;
use rust_decimal::Decimal;

use super::cell_formats::split_currency_unit;
use super::table_profile::TableProfile;
use crate::price::conflicting_prices::{are_in_conflict, column_of_words};

/// Maximum percentage of rows that may contradict a reading.
const MAX_CONTRADICTIONS_PERCENT: usize = 10;
/// Tolerances of a product: relative, and absolute for a total that is rounded to cents.
const PRODUCT_TOLERANCE: Decimal = Decimal::from_parts(5, 0, 0, false, 3);
const CENT_TOLERANCE: Decimal = Decimal::from_parts(6, 0, 0, false, 3);
/// Smallest share of a total that is left after taxes.
const LEAST_AFTER_TAX: Decimal = Decimal::from_parts(6, 0, 0, false, 1);
/// Tolerance of the order of a bar's prices, for rounded digits.
const BAR_TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 3);

/// Columns of an amount of one share, the number of shares, and the total of all shares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub(super) quantity: usize,
    pub(super) amount: usize,
    pub(super) total: usize,
}

/// Rows with two closes for one symbol and day.
pub(super) struct RepeatedDays {
    pub(super) rows: usize,
    /// Column whose words differ between the rows, and its words in file order.
    pub(super) column: Option<(String, Vec<String>)>,
}

impl TableProfile {
    pub(super) fn row_count(&self) -> usize {
        self.columns.iter().map(|column| column.rows.len()).max().unwrap_or_default()
    }

    /// Number in a cell, by the notation of the table.
    pub(super) fn number(&self, column: usize, row: usize) -> Option<Decimal> {
        let cell = self.columns.get(column)?.rows.get(row)?;
        let (bare, _) = split_currency_unit(cell.trim_matches(['-', '+', ' ']));
        let (decimal, thousands) = (if self.notation.comma { ',' } else { '.' }, self.notation.thousands);
        let grouped = |c: &char| Some(*c) == thousands || thousands == Some(' ') && c.is_whitespace();
        let plain: String =
            bare.chars().filter(|c| !grouped(c)).map(|c| if c == decimal { '.' } else { c }).collect();
        parse_figure(&plain).ok().map(|number| number.value)
    }

    /// True if a column has a value above zero in at least half of the rows.
    pub(super) fn has_values(&self, column: usize, rows: &[usize]) -> bool {
        let valued = |row: &&usize| self.number(column, **row).is_some_and(|number| number > Decimal::ZERO);
        !rows.is_empty() && rows.iter().filter(valued).count() * 2 >= rows.len()
    }

    /// True if the total is the product in every row that has the three numbers. With `is_taxed`, the total may also be
    /// smaller by taxes. A row with one share proves nothing.
    pub(super) fn is_product(&self, product: Product, rows: &[usize], is_taxed: bool) -> bool {
        let mut proofs = 0;
        for row in rows {
            let number = |column: usize| self.number(column, *row).filter(|number| !number.is_zero());
            let (Some(quantity), Some(amount), Some(total)) =
                (number(product.quantity), number(product.amount), number(product.total))
            else {
                continue;
            };
            let Some(expected) = quantity.checked_mul(amount) else { return false };
            let tolerance = total * PRODUCT_TOLERANCE + CENT_TOLERANCE;
            let is_after_tax = is_taxed && total < expected && total >= expected * LEAST_AFTER_TAX;
            if (expected - total).abs() > tolerance && !is_after_tax {
                return false;
            }
            proofs += usize::from(quantity != Decimal::ONE);
        }
        proofs > 0
    }

    /// True if the texts of most rows name an amount `per share`, but another than the column has.
    pub(super) fn has_other_amount_in_text(&self, amount: usize) -> bool {
        let (mut named, mut others) = (0, 0);
        for row in 0..self.row_count() {
            let Some(expected) = self.number(amount, row) else { continue };
            let cells = self.columns.iter().filter_map(|column| column.rows.get(row));
            let texts = cells.map(|cell| cell.to_lowercase()).filter(|cell| cell.contains("per share"));
            for text in texts {
                let mut numbers = text
                    .split(|c: char| !c.is_ascii_digit() && c != '.')
                    .filter_map(|part| parse_figure(part.trim_matches('.')).ok());
                named += 1;
                others += usize::from(!numbers.any(|number| number.value == expected));
            }
        }
        named > 0 && others * 2 > named
    }

    /// True if open and close are between low and high in nearly all rows. `bar` has the columns of open, high, low and
    /// close.
    pub(super) fn is_bar(&self, bar: [usize; 4]) -> bool {
        let (mut rows, mut contradictions) = (0, 0);
        for row in 0..self.row_count() {
            let number = |column: usize| self.number(column, row).filter(|number| !number.is_zero());
            let [Some(open), Some(high), Some(low), Some(close)] = bar.map(number) else { continue };
            let slack = high * BAR_TOLERANCE;
            let is_within = |price: Decimal| price >= low - slack && price <= high + slack;
            rows += 1;
            contradictions += usize::from(high < low || !is_within(open) || !is_within(close));
        }
        contradictions * 100 <= rows * MAX_CONTRADICTIONS_PERCENT
    }

    /// Rows whose close differs by more than 0.5 % from an earlier row of the same symbol and day; `None` without such
    /// rows.
    pub(super) fn repeated_days(
        &self,
        symbol: Option<usize>,
        date: usize,
        close: usize,
    ) -> Option<RepeatedDays> {
        let mut first_rows: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut pairs: Vec<[usize; 2]> = Vec::new();
        for row in 0..self.row_count() {
            let cell = |column: usize| self.columns[column].rows.get(row).map_or("", String::as_str);
            let first = *first_rows.entry((symbol.map_or("", cell), cell(date))).or_insert(row);
            if let (Some(one), Some(other)) = (self.number(close, first), self.number(close, row))
                && are_in_conflict(one, other)
            {
                pairs.push([first, row]);
            }
        }
        let record = |row: usize| -> Vec<String> {
            self.columns.iter().map(|column| column.rows.get(row).cloned().unwrap_or_default()).collect()
        };
        let records: Vec<[Vec<String>; 2]> = pairs.iter().map(|pair| pair.map(record)).collect();
        let records: Vec<[&[String]; 2]> =
            records.iter().map(|[one, other]| [one.as_slice(), other.as_slice()]).collect();
        let column = column_of_words(self.columns.len(), &records).map(|column| {
            let mut words: Vec<String> = Vec::new();
            for record in records.iter().flatten() {
                if !words.contains(&record[column]) {
                    words.push(record[column].clone());
                }
            }
            (self.columns[column].name.clone(), words)
        });
        (!pairs.is_empty()).then_some(RepeatedDays { rows: pairs.len(), column })
    }
}
