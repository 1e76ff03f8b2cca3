//! Types of exported columns and their names in Postgres, Parquet and the manifest.

use tokio_postgres::Column;
use tokio_postgres::types::Type;

/// Decimal places of an exported numeric column that has no declared scale. Factors have the most decimal places: 12.
pub(super) const SCALE: u32 = 12;
/// Offset that Postgres adds to the type modifier of a numeric column.
const MODIFIER: i32 = 4;
/// Number of bytes of a decimal with 38 digits.
pub(super) const DECIMAL_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    Flag,
    Integer,
    Date,
    Long,
    Instant,
    /// Decimal with the given number of decimal places.
    Decimal(u32),
}

impl ColumnType {
    /// Type for a Postgres column. JSON values become text. `None` for a column type that cannot be exported.
    pub(super) fn from_postgres(column: &Column) -> Option<Self> {
        Some(match *column.type_() {
            Type::TEXT | Type::JSON => Self::Text,
            Type::BOOL => Self::Flag,
            Type::INT4 => Self::Integer,
            Type::DATE => Self::Date,
            Type::INT8 => Self::Long,
            Type::TIMESTAMPTZ => Self::Instant,
            Type::NUMERIC => Self::Decimal(match column.type_modifier() - MODIFIER {
                said @ 0.. => (said & 0x7ff).unsigned_abs(),
                _ => SCALE,
            }),
            _ => return None,
        })
    }

    /// Declaration of a column in a Parquet schema.
    pub(super) fn parquet_declaration(self, name: &str) -> String {
        match self {
            Self::Text => format!("optional byte_array {name} (utf8);"),
            Self::Flag => format!("optional boolean {name};"),
            Self::Integer => format!("optional int32 {name};"),
            Self::Date => format!("optional int32 {name} (date);"),
            Self::Long => format!("optional int64 {name};"),
            Self::Instant => format!("optional int64 {name} (timestamp(micros,true));"),
            Self::Decimal(scale) => {
                format!("optional fixed_len_byte_array({DECIMAL_BYTES}) {name} (decimal(38,{scale}));")
            }
        }
    }

    /// Name of the type in SQL.
    pub(super) fn sql_name(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Flag => "boolean".to_owned(),
            Self::Integer => "integer".to_owned(),
            Self::Date => "date".to_owned(),
            Self::Long => "bigint".to_owned(),
            Self::Instant => "timestamp with time zone".to_owned(),
            Self::Decimal(scale) => format!("decimal(38,{scale})"),
        }
    }
}
