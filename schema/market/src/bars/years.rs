//! Division of bars by calendar year. Bars are stored in units of one year.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use chrono::Datelike;

use super::columns::Bars;
use crate::day::{date_of, days_of_year};

impl Bars {
    /// Groups the bars by calendar year. The years are in order of first appearance.
    pub fn by_year(&self) -> Vec<(i32, Self)> {
        let mut years: Vec<(i32, Self)> = Vec::new();
        for (year, range) in self.years() {
            match years.iter().position(|(known, _)| *known == year) {
                Some(position) => years[position].1.extend(self, range),
                None => years.push((year, self.slice(range))),
            }
        }
        years
    }

    /// Hashes the values of the bars in a range of indexes. Versions are not hashed.
    pub fn hash_range(&self, range: Range<usize>, state: &mut impl Hasher) {
        (self.scale, &self.day[range.clone()], &self.close[range.clone()]).hash(state);
        for column in self.columns() {
            column.present_values_in(range.clone()).hash(state);
        }
    }

    /// Divides the bars into ranges of consecutive bars with the same calendar year. If the bars are sorted, each year
    /// has one range.
    pub fn years(&self) -> Vec<(i32, Range<usize>)> {
        let (mut years, mut start, is_sorted) = (Vec::new(), 0, self.day.is_sorted());
        while let Some(day) = self.day.get(start) {
            let date = date_of(*day);
            let days = days_of_year(date);
            let rest = &self.day[start..];
            let same = match is_sorted {
                true => rest.partition_point(|day| days.contains(day)),
                false => rest.iter().take_while(|day| days.contains(day)).count(),
            };
            // A day number outside the calendar has no year. Each such day is a separate range.
            let end = start + same.max(1);
            years.push((date.year(), start..end));
            start = end;
        }
        years
    }
}
