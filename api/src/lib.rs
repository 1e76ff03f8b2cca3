//! HTTP API that serves the projector's read tables from Postgres, with API keys, tiers and rate limits.
//!
//! Invariants: no route needs the log server (NATS) for its data. Every response comes from one generation (one set of
//! read tables) and one data version (one state of these tables). The required tier is part of every handler's
//! signature. No input of a client causes a 500. Clients never see internal details.

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
pub use server::serve::serve;
mod admission;
pub mod app;
mod auth;
mod concurrency;
mod render;
mod server;
