//! Endpoints of the API. Each endpoint is declared in one file, with its parameters, response, documentation, required
//! tier and handler.

pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod compare;
pub(crate) mod conversion;
pub(crate) mod dividend_calendar;
pub(crate) mod dividend_history;
mod endpoint;
pub(crate) mod etfs;
pub(crate) mod openapi;
mod past;
pub(crate) mod portfolio;
pub(crate) mod prices;
pub(crate) mod provenance;
pub(crate) mod screeners;
pub(crate) mod search;
pub(crate) mod sectors;
pub(crate) mod service;
pub(crate) mod stocks;

pub(crate) use endpoint::{BodyErrorResponses, ErrorResponses, endpoint};
