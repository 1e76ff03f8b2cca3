//! The read side: tables to HTTP, behind keys, tiers and limits.
//!
//! Invariants: no route reads facts of the log's server; one answer is one generation and one version; access is in
//! every handler's signature; nothing a client sends makes a 500; clients never see internals.

mod access;
mod account;
mod address;
mod answer;
mod app;
mod cache;
pub mod cli;
pub mod command;
mod connection;
mod cpu_pool;
mod cursor;
mod dashboard;
mod envelope;
mod error;
mod fair_queue;
mod likeness;
mod mcp;
mod metrics;
mod middleware;
mod moments;
mod parameters;
mod pipe;
mod raw_row;
mod read;
mod render;
mod request_id;
mod router;
mod routes;
mod seen;
mod server;
pub mod settings;
mod tasks;
mod tier;
mod vocabulary;

pub use app::App;
pub use router::document;
pub use server::serve;
