//! Sessions of the dashboard: signed-in visitor, CSRF-checked forms, notices.

pub(crate) mod form;
pub(crate) mod notice;
pub(crate) mod visitor;
