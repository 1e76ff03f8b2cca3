//! `/screener` and `/sectors`: securities by their figures.

mod choice;
pub(crate) mod page;
pub(crate) mod sectors;
mod table;
