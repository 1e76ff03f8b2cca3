//! Structs that are rows: their columns in order, read by name, written by position.

use postgres_types::{FromSql, ToSql, Type};

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
macro_rules! table_row {
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
