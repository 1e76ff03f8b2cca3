//! Rust types of table columns. Each type has a Postgres type.

use bytes::BytesMut;
use chrono::{DateTime, NaiveDate, Utc};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use serde::{Deserialize, Serialize};

use crate::decimal::ExactDecimal;

/// Rust type of a table column.
pub trait ColumnType: ToSql + Sync {
    /// Postgres type of the column.
    const TYPE: Type;
}

macro_rules! column {
    ($($rust:ty => $pg:ident),* $(,)?) => { $(
        impl ColumnType for $rust { const TYPE: Type = Type::$pg; }
    )* };
}
column! {
    String => TEXT, bool => BOOL, i32 => INT4, i64 => INT8, NaiveDate => DATE, DateTime<Utc> => TIMESTAMPTZ,
    Vec<u8> => BYTEA, &str => TEXT, &[u8] => BYTEA,
}
impl ColumnType for ExactDecimal {
    const TYPE: Type = Type::NUMERIC;
}
impl<T: ColumnType> ColumnType for Option<T> {
    const TYPE: Type = T::TYPE;
}
impl<T: Serialize + Sync + std::fmt::Debug> ColumnType for JsonColumn<T> {
    const TYPE: Type = Type::JSON;
}

/// Value of a `json` column. Postgres stores `json`, unlike `jsonb`, as the original text, so decimals keep all their
/// digits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonColumn<T>(pub T);

impl<T: Serialize + std::fmt::Debug> ToSql for JsonColumn<T> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&serde_json::to_vec(&self.0)?);
        Ok(IsNull::No)
    }
    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSON
    }
    to_sql_checked!();
}

impl<'a, T: serde::de::DeserializeOwned> FromSql<'a> for JsonColumn<T> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(serde_json::from_slice(raw)?))
    }
    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSON
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_value_fits_a_column_that_keeps_its_digits() {
        // Only `json` preserves the original text.
        let fits = |ty| {
            (
                <JsonColumn<ExactDecimal> as ToSql>::accepts(&ty),
                <JsonColumn<ExactDecimal> as FromSql<'_>>::accepts(&ty),
            )
        };
        assert_eq!(
            [Type::JSON, Type::JSONB, Type::TEXT].map(fits),
            [(true, true), (false, false), (false, false)]
        );
        let (value, mut column) = (JsonColumn(ExactDecimal("1.10".parse().unwrap())), BytesMut::new());
        let _ = value.to_sql(&Type::JSON, &mut column).unwrap();
        assert_eq!(&column[..], b"1.10");
        assert_eq!(JsonColumn::<ExactDecimal>::from_sql(&Type::JSON, &column).unwrap(), value);
    }
}
