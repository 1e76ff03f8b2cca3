//! Values of a derived row, in the form in which its table stores them.

use bytes::BytesMut;
use market::row::TableRow;
use tokio_postgres::types::IsNull;

use super::cell::{CellValue, PostgresCell};

/// Decodes the values of a row, in the order of the columns.
pub(crate) fn read_cells<T: TableRow>(row: &T) -> anyhow::Result<Vec<CellValue>> {
    let mut cells = Vec::with_capacity(T::COLUMNS.len());
    for (value, ty) in row.values().into_iter().zip(T::types()) {
        let mut bytes = BytesMut::new();
        let cell = match value.to_sql_checked(ty, &mut bytes).map_err(|error| anyhow::anyhow!(error))? {
            IsNull::Yes => PostgresCell(None),
            IsNull::No => PostgresCell(Some(&bytes)),
        };
        cells.push(CellValue::decode(ty, cell).map_err(|error| anyhow::anyhow!(error))?);
    }
    Ok(cells)
}
