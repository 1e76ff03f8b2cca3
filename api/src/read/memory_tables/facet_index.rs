//! Loader of the facet index, which has the names that filters accept.

use crate::parameters::facets::{FacetIndex, FilterField};
use crate::read::{QueryError, ServedGeneration, lookup};

const NAMES: &str = include_str!("../../../queries/filters/names.sql");

/// Reads all names in one statement.
pub(super) async fn load(generation: &ServedGeneration) -> Result<FacetIndex, QueryError> {
    let mut facet_index = FacetIndex::default();
    for row in lookup::run_query(generation, NAMES, &[]).await? {
        let field: Option<FilterField> = row.try_get("field")?;
        if let Some(field) = field {
            facet_index.insert(field, row.try_get("name")?);
        }
    }
    Ok(facet_index)
}
