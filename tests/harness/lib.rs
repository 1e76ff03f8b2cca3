//! One harness for the tests and for `cargo stack`: a private Postgres and a private NATS, the service's own
//! binaries, and what a test needs to drive them.
//!
//! Invariants: servers listen on 127.0.0.1 and free ports only; nothing started here outlives the process that
//! started it, `kill -9` included; tests share two servers but never a database, a stream or a subject.

mod api;
mod app;
mod binaries;
mod endpoints;
mod environment;
mod eventually;
mod fetch;
mod folder;
mod nats;
mod port;
mod postgres;
mod process;
mod release;
mod server_user;
mod servers;
pub mod stack;

pub use api::{Api, Reply};
pub use app::{TestApp, TestAppBuilder};
pub use binaries::{Binaries, Program};
pub use endpoints::Endpoints;
pub use eventually::eventually;
pub use nats::NatsServer;
pub use postgres::PostgresServer;
pub use process::{Daemon, Output, Signal};
pub use servers::Servers;
