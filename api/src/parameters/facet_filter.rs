//! Filters by name, such as sector, industry and exchange. The client's spelling is mapped to the name that responses
//! use.

use serde_json::json;

use super::{ParameterError, ParameterReader};
use crate::parameters::facets::FilterField;

/// Maximum length of a list of names, in characters.
const MAX_LENGTH: usize = 512;

impl ParameterReader<'_> {
    /// Reads the comma-separated names of `field`, and maps them to the names in responses. With a cursor, or without a
    /// facet index, unknown names are accepted.
    pub(crate) fn read_names(&mut self, field: FilterField) -> Option<Vec<String>> {
        let text = self.read_text(field.as_str(), MAX_LENGTH)?;
        let as_written = || text.split(',').map(|name| name.trim().to_owned()).collect();
        let Some(facet_index) = self.facet_index else {
            self.properties.needs_facet_index = true;
            return Some(as_written());
        };
        match facet_index.resolve(field, &text) {
            Ok(names) => Some(names),
            Err(_) if facet_index.is_empty() || self.is_given("cursor") => Some(as_written()),
            Err(unknown) => {
                self.errors.push(ParameterError::unknown_value(field.as_str(), unknown));
                None
            }
        }
    }

    /// Reads `currency`: a comma-separated list of ISO 4217 codes, returned in upper case.
    pub(crate) fn read_currencies(&mut self) -> Option<Vec<String>> {
        let schema = || json!({ "type": "array", "minItems": 1, "items": { "type": "string", "pattern": "^[A-Za-z]{3}$" } });
        let text = self.read_value("currency", schema)?;
        let codes: Vec<String> = text.split(',').map(|code| code.trim().to_uppercase()).collect();
        let shaped = codes.iter().all(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()));
        self.require(shaped, "currency", "has an item that is not a currency code of three letters");
        Some(codes)
    }
}

/// True if a row with this value passes the filter `wanted`. Without a filter (`None`), every row passes. With a
/// filter, a row with an unknown value (`None`) does not pass.
pub(crate) fn is_among<T: PartialEq>(wanted: Option<&Vec<T>>, value: Option<&T>) -> bool {
    wanted.is_none_or(|wanted| value.is_some_and(|value| wanted.contains(value)))
}
