//! The Rust types that are columns, the Postgres types they are stored as, and what tells their values apart.

use std::hash::{Hash, Hasher};

use bytes::BytesMut;
use chrono::{DateTime, NaiveDate, Utc};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::value::Exact;

/// A Rust type that is a column's type.
pub trait Column: ToSql + Sync + Mark {
    /// The Postgres type it is stored as.
    const TYPE: Type;
}

/// A value that is told from others without being encoded: by all that is written of it. Unlike with [`Hash`], a decimal with
/// other zeros at its end is another.
pub trait Mark {
    /// Feeds the value.
    fn mark(&self, state: &mut impl Hasher);
}

macro_rules! column {
    ($($rust:ty => $pg:ident),* $(,)?) => { $(
        impl Column for $rust { const TYPE: Type = Type::$pg; }
        impl Mark for $rust {
            fn mark(&self, state: &mut impl Hasher) {
                self.hash(state);
            }
        }
    )* };
}
column! {
    String => TEXT, bool => BOOL, i32 => INT4, i64 => INT8, NaiveDate => DATE, DateTime<Utc> => TIMESTAMPTZ,
    Vec<u8> => BYTEA, &str => TEXT, &[u8] => BYTEA,
}
impl Column for Exact {
    const TYPE: Type = Type::NUMERIC;
}
impl Mark for Exact {
    fn mark(&self, state: &mut impl Hasher) {
        self.0.mark(state);
    }
}
impl Mark for Decimal {
    fn mark(&self, state: &mut impl Hasher) {
        state.write_u128(u128::from_le_bytes(self.serialize()));
    }
}
impl<T: Column> Column for Option<T> {
    const TYPE: Type = T::TYPE;
}
impl<T: Serialize + Sync + std::fmt::Debug> Column for Json<T> {
    const TYPE: Type = Type::JSON;
}
impl<T: Serialize> Mark for Json<T> {
    fn mark(&self, state: &mut impl Hasher) {
        // A value without text is not written either.
        serde_json::to_vec(&self.0).ok().hash(state);
    }
}
impl<T: Mark> Mark for Option<T> {
    fn mark(&self, state: &mut impl Hasher) {
        self.is_some().hash(state);
        if let Some(value) = self {
            value.mark(state);
        }
    }
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
    fn values_that_are_written_otherwise_are_others() {
        use std::hash::{DefaultHasher, Hasher};

        fn mark(value: &impl Mark) -> u64 {
            let mut state = DefaultHasher::new();
            value.mark(&mut state);
            state.finish()
        }
        let exact = |text: &str| text.parse().map(Exact).unwrap();
        assert_eq!(mark(&exact("1.10")), mark(&exact("1.10")));
        // Equal as numbers, and other digits in an answer.
        assert_ne!(mark(&exact("1.10")), mark(&exact("1.1")));
        assert_ne!(mark(&exact("1.1")), mark(&exact("-1.1")));
        assert_ne!(mark(&Some(exact("0"))), mark(&None::<Exact>));
        assert_ne!(mark(&Some(String::new())), mark(&None::<String>));
        assert_ne!(mark(&Json(vec![exact("1.0")])), mark(&Json(vec![exact("1")])));
    }

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
