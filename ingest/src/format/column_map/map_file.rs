//! Column maps: those that ship with the program, and those in files of the user.

use std::path::Path;
use std::sync::Arc;

use super::map::ColumnMap;
use super::map_definition::ColumnLocation;
use crate::source::regular_file::{Links, read_small_text};

/// Maps that ship with the program, each with its name and its TOML text.
pub const SHIPPED: [(&str, &str); 6] = [
    ("german-broker", include_str!("shipped/german-broker.toml")),
    ("investing", include_str!("shipped/investing.toml")),
    ("lean", include_str!("shipped/lean.toml")),
    ("nasdaq", include_str!("shipped/nasdaq.toml")),
    ("stooq", include_str!("shipped/stooq.toml")),
    ("yfinance-wide", include_str!("shipped/yfinance-wide.toml")),
];

/// Name of the first shipped map that fits a header. A map fits if the header contains all columns of the map. Maps of
/// wide tables are not considered.
pub(crate) fn find_shipped_map(columns: &[String]) -> Option<&'static str> {
    let fits = |(_, text): &&(&str, &str)| {
        ColumnMap::parse(text).is_ok_and(|map| {
            let named =
                |(_, location): &(_, ColumnLocation)| matches!(location, ColumnLocation::Name(name) if columns.contains(name));
            map.wide.is_none() && map.columns.iter().all(named)
        })
    };
    SHIPPED.iter().find(fits).map(|(name, _)| *name)
}

/// Map with its name on the command line.
#[derive(Debug, Clone)]
pub struct MapFile {
    /// Absolute path, or the name of a shipped map.
    pub name: String,
    /// The validated map.
    pub map: Arc<ColumnMap>,
}

impl MapFile {
    /// Reads the shipped map with this name, or else the map file at this path. A symbolic link is refused.
    ///
    /// # Errors
    /// The file cannot be read, or the map has a mistake.
    pub fn open(name_or_path: &str) -> Result<Self, String> {
        let shipped = SHIPPED.iter().find(|(known, _)| *known == name_or_path);
        let (name, text) = match shipped {
            Some((name, text)) => ((*name).to_owned(), (*text).to_owned()),
            None => {
                let text = read_small_text(Path::new(name_or_path), Links::Refused).map_err(|error| {
                    let known: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                    format!("cannot be read: {error}; maps that ship with the program: {}", known.join(", "))
                })?;
                let path = std::path::absolute(name_or_path).map_err(|error| error.to_string())?;
                (path.display().to_string(), text)
            }
        };
        let map = ColumnMap::parse(&text).map_err(|error| error.to_string())?;
        Ok(Self { name, map: Arc::new(map) })
    }
}
