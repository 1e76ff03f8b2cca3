//! Rust types of table columns. Each type has a Postgres type, and a function that hashes its values. Changed rows are
//! found by comparing hashes.

use std::hash::{Hash, Hasher};

use bytes::BytesMut;
use chrono::{DateTime, NaiveDate, Utc};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::decimal::ExactDecimal;

/// Rust type of a table column.
pub trait ColumnType: ToSql + Sync + Fingerprint {
    /// Postgres type of the column.
    const TYPE: Type;
}

/// Value that can be hashed to detect changes. Decimals with different trailing zeros, for example 1.1 and 1.10, have
/// different fingerprints. Their hashes by the trait [`Hash`] are equal.
pub trait Fingerprint {
    /// Adds the value to a hash.
    fn hash_into(&self, state: &mut impl Hasher);
}

macro_rules! column {
    ($($rust:ty => $pg:ident),* $(,)?) => { $(
        impl ColumnType for $rust { const TYPE: Type = Type::$pg; }
        impl Fingerprint for $rust {
            fn hash_into(&self, state: &mut impl Hasher) {
                self.hash(state);
            }
        }
    )* };
}
column! {
    String => TEXT, bool => BOOL, i32 => INT4, i64 => INT8, NaiveDate => DATE, DateTime<Utc> => TIMESTAMPTZ,
    Vec<u8> => BYTEA, &str => TEXT, &[u8] => BYTEA,
}
impl ColumnType for ExactDecimal {
    const TYPE: Type = Type::NUMERIC;
}
impl Fingerprint for ExactDecimal {
    fn hash_into(&self, state: &mut impl Hasher) {
        self.0.hash_into(state);
    }
}
impl Fingerprint for Decimal {
    fn hash_into(&self, state: &mut impl Hasher) {
        state.write_u128(u128::from_le_bytes(self.serialize()));
    }
}
impl<T: ColumnType> ColumnType for Option<T> {
    const TYPE: Type = T::TYPE;
}
impl<T: Serialize + Sync + std::fmt::Debug> ColumnType for JsonColumn<T> {
    const TYPE: Type = Type::JSON;
}
impl<T: Serialize> Fingerprint for JsonColumn<T> {
    fn hash_into(&self, state: &mut impl Hasher) {
        // A value that cannot be serialized cannot be written to the table either. Its fingerprint is therefore never
        // used.
        serde_json::to_vec(&self.0).ok().hash(state);
    }
}
impl<T: Fingerprint> Fingerprint for Option<T> {
    fn hash_into(&self, state: &mut impl Hasher) {
        self.is_some().hash(state);
        if let Some(value) = self {
            value.hash_into(state);
        }
    }
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
    fn values_that_are_written_otherwise_are_others() {
        use std::hash::{DefaultHasher, Hasher};

        fn mark(value: &impl Fingerprint) -> u64 {
            let mut state = DefaultHasher::new();
            value.hash_into(&mut state);
            state.finish()
        }
        let exact = |text: &str| text.parse().map(ExactDecimal).unwrap();
        assert_eq!(mark(&exact("1.10")), mark(&exact("1.10")));
        // Equal numbers, but different digits in a response.
        assert_ne!(mark(&exact("1.10")), mark(&exact("1.1")));
        assert_ne!(mark(&exact("1.1")), mark(&exact("-1.1")));
        assert_ne!(mark(&Some(exact("0"))), mark(&None::<ExactDecimal>));
        assert_ne!(mark(&Some(String::new())), mark(&None::<String>));
        assert_ne!(mark(&JsonColumn(vec![exact("1.0")])), mark(&JsonColumn(vec![exact("1")])));
    }

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
