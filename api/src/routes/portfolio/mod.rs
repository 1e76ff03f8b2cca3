//! Endpoints over the holdings of a portfolio.

pub(crate) mod income;
mod position;
mod totals;
