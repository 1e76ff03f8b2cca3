//! In-memory facet values of the filters.

use crate::parameters::facets::{Field, Vocabulary};
use crate::read::ReadError;
use crate::read::lookup;
use crate::read::projection::Generation;

const NAMES: &str = include_str!("../../../queries/filters/names.sql");

/// Reads all names in one statement.
pub(super) async fn load(generation: &Generation) -> Result<Vocabulary, ReadError> {
    let mut vocabulary = Vocabulary::default();
    for row in lookup::query(generation, NAMES, &[]).await? {
        let field: Option<Field> = row.try_get("field")?;
        if let Some(field) = field {
            vocabulary.insert(field, row.try_get("name")?);
        }
    }
    Ok(vocabulary)
}
