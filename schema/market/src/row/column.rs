//! The Rust types that are columns, and the Postgres types they are stored as.

use bytes::BytesMut;
use chrono::{DateTime, NaiveDate, Utc};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use serde::{Deserialize, Serialize};

use crate::value::Exact;

/// A Rust type that is a column's type.
pub trait Column: ToSql + Sync {
    /// The Postgres type it is stored as.
    const TYPE: Type;
}

macro_rules! column {
    ($($rust:ty => $pg:ident),* $(,)?) => { $(impl Column for $rust { const TYPE: Type = Type::$pg; })* };
}
column! {
    String => TEXT, bool => BOOL, i32 => INT4, i64 => INT8, NaiveDate => DATE, DateTime<Utc> => TIMESTAMPTZ,
    Exact => NUMERIC, Vec<u8> => BYTEA,
}
impl Column for &str {
    const TYPE: Type = Type::TEXT;
}
impl Column for &[u8] {
    const TYPE: Type = Type::BYTEA;
}
impl<T: Column> Column for Option<T> {
    const TYPE: Type = T::TYPE;
}
impl<T: Serialize + Sync + std::fmt::Debug> Column for Json<T> {
    const TYPE: Type = Type::JSON;
}

/// A nested value, stored as a `json` column, digits untouched.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json<T>(pub T);

impl<T: Serialize + std::fmt::Debug> ToSql for Json<T> {
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

impl<'a, T: serde::de::DeserializeOwned> FromSql<'a> for Json<T> {
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
        // Only `json` keeps the text as it was written.
        let fits = |ty| (<Json<Exact> as ToSql>::accepts(&ty), <Json<Exact> as FromSql<'_>>::accepts(&ty));
        assert_eq!(
            [Type::JSON, Type::JSONB, Type::TEXT].map(fits),
            [(true, true), (false, false), (false, false)]
        );
        let (value, mut column) = (Json(Exact("1.10".parse().unwrap())), BytesMut::new());
        let _ = value.to_sql(&Type::JSON, &mut column).unwrap();
        assert_eq!(&column[..], b"1.10");
        assert_eq!(Json::<Exact>::from_sql(&Type::JSON, &column).unwrap(), value);
    }
}
