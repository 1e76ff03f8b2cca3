//! Building blocks of pages: layout, numbers, charts, tables, static assets, text and the live example.

pub(crate) mod chart;
pub(crate) mod layout;
pub(crate) mod live_example;
pub(crate) mod markdown;
pub(crate) mod numbers;
pub(crate) mod plot;
