//! Origin of the data: sources with their licences, quality by month, and published files.

pub(crate) mod files;
pub(crate) mod quality;
pub(crate) mod sources;
