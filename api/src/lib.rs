//! The read side: tables to HTTP, behind keys, tiers and limits.
//!
//! Invariants: no route reads facts of the log's server; one answer is one generation and one version; access is in
//! every handler's signature; nothing a client sends makes a 500; clients never see internals.

mod account;
mod answer;
pub mod command;
mod connection;
mod dashboard;
mod error;
mod mcp;
mod metrics;
mod middleware;
mod parameters;
mod read;
mod routes;

pub use app::state::App;
pub use server::router::document;
pub use server::serve::serve;
mod admission;
pub mod app;
mod auth;
mod concurrency;
mod render;
mod server;
