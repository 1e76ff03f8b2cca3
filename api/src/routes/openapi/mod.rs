//! OpenAPI document of the API, with its examples and code samples, and the endpoint that serves it.

pub(crate) mod code_samples;
pub(crate) mod document;
pub(crate) mod endpoint;
mod examples;
