//! Column of integers, for example scaled prices. Absent values at the start of the column are not stored, only
//! counted.

use std::iter::repeat_n;
use std::ops::{Index, IndexMut, Range};

/// Marker of an absent value in a column.
pub const MISSING: i64 = i64::MIN;

/// Column of integers, for example scaled prices. An absent value is [`MISSING`]. Absent values at the start of the
/// column are not stored, only counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BarColumn {
    absent: usize,
    values: Vec<i64>,
}

impl BarColumn {
    /// Column of `count` absent values.
    pub fn absent(count: usize) -> Self {
        Self { absent: count, values: Vec::new() }
    }

    /// Number of values, including absent values.
    pub fn len(&self) -> usize {
        self.absent + self.values.len()
    }

    /// True if the length of the column is 0. A column of absent values is not empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values, including absent values.
    pub fn iter(&self) -> impl Iterator<Item = &i64> {
        repeat_n(&MISSING, self.absent).chain(&self.values)
    }

    /// All values from the first present value to the end of the column. Absent values among them are [`MISSING`].
    pub fn values_from_first_present(&self) -> &[i64] {
        &self.values
    }

    /// Mutable slice of all values from the first present value to the end of the column. Absent values among them are
    /// [`MISSING`].
    pub fn values_from_first_present_mut(&mut self) -> &mut [i64] {
        &mut self.values
    }

    /// Values in a range of indexes. Absent values at the start of the column are left out; later ones are [`MISSING`].
    pub fn present_values_in(&self, range: Range<usize>) -> &[i64] {
        &self.values[range.start.saturating_sub(self.absent)..range.end.saturating_sub(self.absent)]
    }

    /// Copy of the values in a range of indexes.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut column = Self::default();
        column.extend(self, range);
        column
    }

    /// Appends a value.
    pub fn push(&mut self, value: i64) {
        if value == MISSING && self.values.is_empty() {
            self.absent += 1;
        } else {
            self.values.push(value);
        }
    }

    /// Appends the values in a range of indexes of another column.
    pub fn extend(&mut self, other: &Self, range: Range<usize>) {
        let mut values = other.present_values_in(range.clone());
        if self.values.is_empty() {
            let first = values.iter().position(|value| *value != MISSING);
            values = &values[first.unwrap_or(values.len())..];
        }
        self.extend_absent(range.len() - values.len());
        self.values.extend_from_slice(values);
    }

    /// Appends absent values.
    pub fn extend_absent(&mut self, count: usize) {
        if self.values.is_empty() {
            self.absent += count;
        } else {
            self.values.resize(self.values.len() + count, MISSING);
        }
    }

    /// Reserves capacity for `values` more values. A column with only absent values needs no capacity.
    pub fn reserve(&mut self, values: usize) {
        if !self.values.is_empty() || self.absent == 0 {
            self.values.reserve_exact(values);
        }
    }
}

impl From<Vec<i64>> for BarColumn {
    fn from(values: Vec<i64>) -> Self {
        match values.iter().position(|value| *value != MISSING) {
            Some(0) => Self { absent: 0, values },
            Some(absent) => Self { absent, values: values[absent..].to_vec() },
            None => Self::absent(values.len()),
        }
    }
}

impl Index<usize> for BarColumn {
    type Output = i64;

    fn index(&self, index: usize) -> &i64 {
        if index < self.absent { &MISSING } else { &self.values[index - self.absent] }
    }
}

impl IndexMut<usize> for BarColumn {
    fn index_mut(&mut self, index: usize) -> &mut i64 {
        if index < self.absent {
            self.values.splice(..0, repeat_n(MISSING, self.absent));
            self.absent = 0;
        }
        &mut self.values[index - self.absent]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Vec<i64>> {
        let one = prop_oneof![Just(MISSING), 0i64..5];
        (0usize..4, prop::collection::vec(one, 0..6))
            .prop_map(|(absent, values)| [vec![MISSING; absent], values].concat())
    }

    proptest! {
        #[test]
        fn a_column_is_the_row_of_its_values(one in values(), other in values(), cut in any::<[prop::sample::Index; 2]>()) {
            let mut cut = cut.map(|cut| cut.index(other.len() + 1));
            cut.sort_unstable();
            let range = cut[0]..cut[1];
            let (mut column, from) = (BarColumn::from(one.clone()), BarColumn::from(other.clone()));
            prop_assert_eq!(from.slice(range.clone()), BarColumn::from(other[range.clone()].to_vec()));
            let known = other[range.clone()].iter().filter(|value| **value != MISSING).count();
            prop_assert_eq!(from.present_values_in(range.clone()).iter().filter(|value| **value != MISSING).count(), known);
            column.extend(&from, range.clone());
            column.extend_absent(cut[0]);
            other.iter().for_each(|value| column.push(*value));
            let expected = [&one[..], &other[range], &vec![MISSING; cut[0]], &other].concat();
            prop_assert_eq!(column.len(), expected.len());
            prop_assert!(column.iter().eq(&expected) && (0..expected.len()).all(|index| column[index] == expected[index]));
            for (index, value) in expected.iter().enumerate() {
                let mut changed = column.clone();
                changed[index] = 7;
                prop_assert_eq!(changed == column, *value == 7);
                prop_assert_eq!(changed[index], 7);
            }
            prop_assert_eq!(column.iter().copied().collect::<Vec<i64>>(), expected);
        }
    }
}
