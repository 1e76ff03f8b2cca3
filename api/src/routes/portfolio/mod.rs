//! Endpoints over the holdings of a portfolio.

pub(crate) mod income;
mod payment;
mod position;
mod totals;
