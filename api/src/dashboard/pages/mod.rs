//! Pages of the dashboard, one file each: handler, form and template.

pub(crate) mod account;
pub(crate) mod keys;
pub(crate) mod landing;
pub(crate) mod link;
pub(crate) mod methods;
pub(crate) mod overview;
pub(crate) mod plans;
pub(crate) mod portfolios;
pub(crate) mod reference;
mod schema_fields;
pub(crate) mod sign_in;
pub(crate) mod status;
