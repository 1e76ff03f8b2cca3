//! HTTP API for the projector's read tables in Postgres.
//!
//! Invariants: every response comes from one generation (set of read tables) and one data version. No input of a client
//! causes a 500.

// A future is copied each time it is passed on, so a large and rare part of a future is boxed.
#![warn(clippy::large_futures)]

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

pub use app::App;
pub use server::serve::serve;
mod admission;
pub mod app;
mod auth;
mod concurrency;
mod render;
mod server;
