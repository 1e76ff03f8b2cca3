//! The read tables' rows: one struct is table row, JSON body and OpenAPI schema.
//!
//! Percent fields are percent points, amounts are in the row's `currency`, dates are exchange-local days,
//! unknown is `null`. Rounding has happened: amounts 6 places, percents and ratios 4, factors 12.

mod dividend;
mod etf;
mod flag;
mod fundamentals;
mod metrics;
mod quarantine;
mod quote;
mod sector;
mod split;
mod stock;

pub use dividend::{AmountStatus, DividendRow, DividendStatus};
pub use etf::{CountryWeight, EtfRow, HoldingRow, SectorWeight};
pub use flag::{Flag, Flags, HoldReason};
pub use fundamentals::FundamentalsRow;
pub use metrics::{
    AnnualTotal, DividendState, ForwardBasis, ListTier, Metrics, NextDividend, NextStatus, Safety, YieldBasis,
};
pub use quarantine::Quarantined;
pub use quote::{Quote, QuoteSource};
pub use sector::{Industry, SectorRow};
pub use split::{SplitRow, SplitStatus, SplitType};
pub use stock::{Company, Coverage, Identifiers, LastDividend, Pricing, Stock, StockDividends, StockRow};

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
    crate::event::Kind => TEXT, crate::event::RunState => TEXT, crate::event::SecurityType => TEXT, crate::event::DividendType => TEXT, crate::event::Frequency => TEXT,
    DividendStatus => TEXT, AmountStatus => TEXT, SplitType => TEXT, SplitStatus => TEXT, YieldBasis => TEXT, ForwardBasis => TEXT,
    DividendState => TEXT, ListTier => TEXT, Safety => TEXT, QuoteSource => TEXT,
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

/// The columns of one row of a table, wherever it was read from.
pub trait Columns {
    /// Why a column cannot be read.
    type Error;
    /// The value of the column of this name.
    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Self::Error>;
}

/// A struct that is a row: its columns in order, reading by name, writing by position.
pub trait TableRow: Sized {
    /// Column names, in field order.
    const COLUMNS: &'static [&'static str];
    /// Column types, in field order.
    const TYPES: &'static [Type];
    /// Reads the columns by name.
    fn from_columns<C: Columns>(columns: &C) -> Result<Self, C::Error>;
    /// The values, in field order, for binary COPY.
    fn values(&self) -> Vec<&(dyn ToSql + Sync)>;
}

/// Declares a row struct. Keywords are written raw (`r#type`); the column and JSON key drop the prefix.
#[macro_export]
macro_rules! row {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* $column:literal $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub struct $name { $($(#[$fmeta])* #[serde(rename = $column)] pub $field: $type),* }

        impl $crate::row::TableRow for $name {
            const COLUMNS: &'static [&'static str] = &[$($column),*];
            const TYPES: &'static [postgres_types::Type] = &[$(<$type as $crate::row::Column>::TYPE),*];
            fn from_columns<C: $crate::row::Columns>(columns: &C) -> Result<Self, C::Error> {
                Ok(Self { $($field: columns.column($column)?),* })
            }
            fn values(&self) -> Vec<&(dyn postgres_types::ToSql + Sync)> {
                vec![$(&self.$field),*]
            }
        }
    };
}
