//! `cargo stack`: the whole service on this machine, with a market in it. Arguments and exit codes only; the work
//! is in [`crate::stack`].

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::stack::{self, StackOptions};

/// Runs Postgres, NATS, projector and API on this machine, fetching what is missing.
#[derive(Debug, Parser)]
#[command(name = "cargo stack", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Port of the API on 127.0.0.1 [default: 8080 or the next free one]
    #[arg(long)]
    port: Option<u16>,
    /// Start from nothing instead of the data of the last time
    #[arg(long)]
    fresh: bool,
    /// Load nothing
    #[arg(long, conflicts_with = "paths")]
    empty: bool,
    /// Source name under which your feeds are loaded
    #[arg(long, default_value = "local", requires = "paths")]
    source: String,
    /// Your own feed files or folders, loaded instead of the demo market
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print shell lines that export the running stack's addresses and keys
    Env,
    /// Fetch the pinned builds of Postgres and nats-server, and print the variables that select them
    Fetch,
    /// Run one Postgres and one NATS for tests that are processes of their own, and print the variables that name them
    Servers {
        /// Process whose end ends the servers
        #[arg(long = "while", value_name = "PID")]
        run: i32,
    },
}

/// Runs the program.
pub fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    match arguments.command {
        Some(Command::Env) => return stack::print_environment(),
        Some(Command::Servers { run }) => return runtime.block_on(stack::lend_servers(run)),
        Some(Command::Fetch) => return runtime.block_on(stack::print_pinned_servers()),
        None => {}
    }
    let ended = runtime.block_on(stack::run(StackOptions {
        port: arguments.port,
        fresh: arguments.fresh,
        empty: arguments.empty,
        feeds: arguments.paths,
        source: arguments.source,
    }));
    // A download that was interrupted may sit in a thread that nobody waits for any more.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}
