//! Why an export could not be written.

use std::path::PathBuf;

use market::bars::BarsError;
use parquet::errors::ParquetError;
use store::db::DbError;

/// Why an export could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("there is no generation {0}; see: projector list")]
    NoGeneration(i32),
    #[error("generation {0} is still being built; run: projector rebuild")]
    Building(i32),
    #[error("{} is there already and not empty: name a folder that is not there, or remove it", .0.display())]
    Taken(PathBuf),
    #[error(
        "{0} is left of an export that did not end, or of one that is being written: remove it, then try again"
    )]
    Unfinished(PathBuf),
    #[error("{} names no folder", .0.display())]
    NoName(PathBuf),
    #[error("interrupted; nothing is left of it")]
    Interrupted,
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Parquet { path: PathBuf, source: ParquetError },
    #[error("column {column} has {value}, which is no decimal of 38 digits, {scale} of them after the point")]
    Decimal { column: String, value: String, scale: u32 },
    #[error("the column {column} of {table} is of the type {found}, which an export does not know")]
    Type { table: &'static str, column: String, found: String },
    #[error("the prices of {symbol} in {year}: {source}")]
    Bars { symbol: String, year: i32, source: BarsError },
    #[error("the manifest cannot be written: {0}")]
    Manifest(#[from] serde_json::Error),
    #[error("an export's thread ended: {0}")]
    Ended(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<tokio_postgres::Error> for ExportError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}
