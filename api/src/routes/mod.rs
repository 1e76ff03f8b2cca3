//! Endpoints, one file region each: parameters, response, documentation, required tier, handler.

pub(crate) mod bulk;
mod changes;
pub(crate) mod compare;
pub(crate) mod dividends;
pub(crate) mod docs;
pub(crate) mod document;
pub(crate) mod etfs;
mod examples;
mod failures;
pub(crate) mod health;
pub(crate) mod method;
pub(crate) mod prices;
pub(crate) mod screeners;
pub(crate) mod search;
pub(crate) mod sectors;
pub(crate) mod stocks;

pub(crate) use failures::Failures;
