//! Dates of records, read from their text or from the number of their day.

use std::fmt;

use chrono::NaiveDate;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::bars::date_of;

/// By this name a date is asked for that may come as the number of its day: packed records have no texts of dates.
pub(crate) const DAY: &str = "Day";

/// Reads a field that may be absent.
pub(super) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NaiveDate>, D::Error> {
    deserializer.deserialize_option(Optional)
}

struct Optional;

impl<'de> Visitor<'de> for Optional {
    type Value = Option<NaiveDate>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a date, or nothing")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_newtype_struct(DAY, Day).map(Some)
    }
}

struct Day;

impl<'de> Visitor<'de> for Day {
    type Value = NaiveDate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a date")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<NaiveDate, D::Error> {
        NaiveDate::deserialize(deserializer)
    }

    fn visit_i32<E: Error>(self, day: i32) -> Result<NaiveDate, E> {
        Ok(date_of(day))
    }
}
