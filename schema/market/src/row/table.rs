//! Traits of table rows, and the `table_row!` macro. Columns are in field order. They are read by name and written by
//! position.

use postgres_types::{FromSql, ToSql, Type};

/// Source from which a row reads column values by name.
pub trait ColumnReader {
    /// Error if a column cannot be read.
    type Error;
    /// Value of the column `name`.
    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Self::Error>;
}

/// Struct that is a row of a table. Columns are in field order. They are read by name and written by position.
pub trait TableRow: Sized {
    /// Names of the columns, in field order.
    const COLUMNS: &'static [&'static str];
    /// Postgres types of the columns, in field order.
    fn types() -> &'static [Type];
    /// Reads the row from its columns by name.
    fn from_columns<C: ColumnReader>(columns: &C) -> Result<Self, C::Error>;
    /// Values of the columns, in field order, for binary COPY.
    fn values(&self) -> Vec<&(dyn ToSql + Sync)>;
    /// Name of each column and its description in the OpenAPI document, in field order.
    fn descriptions() -> Vec<(&'static str, String)>;
}

/// Pairs of a property name and the description of this property in the OpenAPI schema of `T`. The description is empty
/// if the schema has none.
pub fn describe_properties<T: utoipa::PartialSchema>(
    properties: &[&'static str],
) -> Vec<(&'static str, String)> {
    let schema = serde_json::to_value(T::schema()).unwrap_or_default();
    let describe = |name: &str| {
        // The schema of a row that contains other rows combines several objects. One of these objects has the property.
        let property = alternatives(&schema).find_map(|object| object["properties"].get(name))?;
        // The schema of an optional type combines `null` with another schema, which has the description.
        let text = alternatives(property).find_map(|schema| schema["description"].as_str())?;
        Some(text.replace('\n', " "))
    };
    properties.iter().map(|name| (*name, describe(name).unwrap_or_default())).collect()
}

/// A schema, followed by its parts: the schemas in its `allOf`, `oneOf` and `anyOf`.
fn alternatives(schema: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    let combined = ["allOf", "oneOf", "anyOf"].map(|name| schema[name].as_array());
    std::iter::once(schema).chain(combined.into_iter().flatten().flatten())
}

/// Declares a row struct. A field is declared as `"column" field: Type`. The text `column` is the column's name and the
/// JSON key.
///
/// A contained row is declared as `..listed: StockRow` before all fields. Its columns come first.
#[macro_export]
macro_rules! table_row {
    ($(#[$meta:meta])* pub struct $name:ident {
        $(..$part:ident: $row:ty,)*
        $($(#[$fmeta:meta])* $column:literal $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, utoipa::ToSchema)]
        pub struct $name {
            $(#[doc = concat!("The columns of `", stringify!($row), "`.")] #[serde(flatten)] pub $part: $row,)*
            $($(#[$fmeta])* #[serde(rename = $column)] pub $field: $type),*
        }

        impl $crate::row::TableRow for $name {
            const COLUMNS: &'static [&'static str] = {
                const PARTS: &[&[&str]] = &[$(<$row as $crate::row::TableRow>::COLUMNS,)* &[$($column),*]];
                &$crate::row::join_columns::<{ $crate::row::count_columns(PARTS) }>(PARTS)
            };
            fn types() -> &'static [postgres_types::Type] {
                static TYPES: std::sync::LazyLock<Vec<postgres_types::Type>> = std::sync::LazyLock::new(|| {
                    let own = vec![$(<$type as $crate::row::ColumnType>::TYPE),*];
                    [$(<$row as $crate::row::TableRow>::types(),)* own.as_slice()].concat()
                });
                &TYPES
            }
            fn from_columns<C: $crate::row::ColumnReader>(columns: &C) -> Result<Self, C::Error> {
                Ok(Self {
                    $($part: <$row as $crate::row::TableRow>::from_columns(columns)?,)*
                    $($field: columns.column($column)?),*
                })
            }
            fn values(&self) -> Vec<&(dyn postgres_types::ToSql + Sync)> {
                let mut values = Vec::with_capacity(Self::COLUMNS.len());
                $(values.extend($crate::row::TableRow::values(&self.$part));)*
                let own: [&(dyn postgres_types::ToSql + Sync); _] = [$(&self.$field),*];
                values.extend(own);
                values
            }
            fn descriptions() -> Vec<(&'static str, String)> {
                let parts: Vec<Vec<(&'static str, String)>> = vec![
                    $(<$row as $crate::row::TableRow>::descriptions(),)*
                    $crate::row::describe_properties::<Self>(&[$($column),*]),
                ];
                parts.concat()
            }
        }
    };
}

/// Total number of columns of a row. `parts` has the columns of each contained row, followed by the row's own columns.
pub const fn count_columns(parts: &[&[&str]]) -> usize {
    let (mut length, mut at) = (0, 0);
    while at < parts.len() {
        length += parts[at].len();
        at += 1;
    }
    length
}

/// Columns of all `parts` in one array, in order. `N` is the result of [`count_columns`].
pub const fn join_columns<const N: usize>(parts: &[&[&'static str]]) -> [&'static str; N] {
    let (mut joined, mut filled, mut part) = ([""; N], 0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            joined[filled] = parts[part][at];
            filled += 1;
            at += 1;
        }
        part += 1;
    }
    joined
}
