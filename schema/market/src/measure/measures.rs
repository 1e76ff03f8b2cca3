//! From figures to rows, all of them or those that are not served yet.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use super::derived::Derived;
use super::market::Market;
use super::measured::{self, Measured};
use super::merge::closes_suffice;
use super::rows;
use crate::history::History;

/// A security's figures, of which rows are made.
#[derive(Debug)]
pub struct Measures<'a>(Measured<'a>);

impl<'a> Measures<'a> {
    /// Measures a security.
    pub fn of(history: &'a History, market: &Market<'a>) -> Self {
        Self(measured::measure(history, market))
    }

    /// Whether the years of which only the closes were read are enough: every row is the same without the rest.
    pub fn closes_suffice(&self) -> bool {
        let basis = &self.0.basis;
        closes_suffice(basis.history, &basis.merged.prices, basis.as_of)
    }

    /// What tells the rows of dividends from others before there are any, by the year of the ex-date: rows of equal marks
    /// have equal bytes.
    pub fn mark_dividends(&self, hashes: &impl BuildHasher) -> BTreeMap<i32, u64> {
        rows::dividend_marks(&self.0, hashes)
    }

    /// All rows.
    pub fn rows(self) -> Derived {
        rows::derived(self.0)
    }

    /// All rows but those of dividends.
    pub fn rows_but_dividends(self) -> Derived {
        rows::but_dividends(self.0)
    }
}
