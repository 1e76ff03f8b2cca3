//! Errors of an export.

use std::path::PathBuf;

use codec::bars::PackedBarsError;
use parquet::errors::ParquetError;
use store::db::DbError;
use store::ids::GenerationId;

use crate::error::from_statement;

/// Reason for the failure of an export.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("cannot export generation {0}: it does not exist; see projector list")]
    NoGeneration(GenerationId),
    #[error("cannot export generation {0}: it is still being built; finish it with projector rebuild")]
    Building(GenerationId),
    #[error("cannot create {}: the folder is not empty; name a new folder, or remove this one", .0.display())]
    Taken(PathBuf),
    #[error("cannot create {0}: an unfinished or running export uses it; remove it, then try again")]
    Unfinished(PathBuf),
    #[error("cannot create {}: the path has no folder name", .0.display())]
    NoName(PathBuf),
    #[error("interrupted; the incomplete export was removed")]
    Interrupted,
    #[error("cannot write {}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", .path.display())]
    Parquet { path: PathBuf, source: ParquetError },
    #[error(
        "cannot export {value} in column {column}: decimals have 38 digits, {scale} of them after the point"
    )]
    Decimal { column: String, value: String, scale: u32 },
    #[error("cannot export column {column} of {table}: type {found} is not supported")]
    Type { table: &'static str, column: String, found: String },
    #[error("cannot unpack the prices of {symbol} in {year}: {source}")]
    Bars { symbol: String, year: i32, source: PackedBarsError },
    #[error("cannot encode the manifest: {0}")]
    Manifest(#[from] serde_json::Error),
    #[error("cannot finish a reader task: {0}")]
    Ended(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Db(#[from] DbError),
}

from_statement!(ExportError);
