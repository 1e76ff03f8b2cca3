//! Command line of `cargo stack`: arguments and exit codes. [`crate::stack`] executes the commands.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use synthetic_market::GenerateArgs;

use crate::stack::{self, StackOptions};

/// Runs Postgres, NATS, projector and API on this machine. Missing servers are fetched.
#[derive(Debug, Parser)]
#[command(name = "cargo stack", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Port of the API on 127.0.0.1 [default: 8080 or the next free one]
    #[arg(long)]
    port: Option<u16>,
    /// Delete the data of the previous run before the start
    #[arg(long)]
    fresh: bool,
    /// Load no data
    #[arg(long, conflicts_with = "paths")]
    empty: bool,
    /// Number of securities of the demo market
    #[arg(long, value_name = "NUMBER", default_value_t = 300, value_parser = clap::value_parser!(u32).range(30..=5000))]
    symbols: u32,
    /// Years of daily prices of the demo market
    #[arg(long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u32).range(4..=60))]
    years: u32,
    /// Source name of your feeds
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
    /// Fetch the pinned builds of Postgres and nats-server, and print the environment variables with which the stack
    /// uses these builds
    Fetch,
    Generate(GenerateArgs),
    /// Run one Postgres and one NATS for other test processes, and print environment variables with the addresses of
    /// the two servers
    Servers {
        /// Process id; the servers run until this process ends
        #[arg(long = "while", value_name = "PID")]
        run: i32,
    },
}

/// Parses the arguments, executes the command and returns the exit code.
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
        Some(Command::Generate(arguments)) => {
            telemetry::outln!("{}", synthetic_market::generate(&arguments)?);
            return Ok(());
        }
        Some(Command::Env) => return stack::print_environment(),
        Some(Command::Servers { run }) => return runtime.block_on(stack::lend_servers(run)),
        Some(Command::Fetch) => return runtime.block_on(stack::print_pinned_servers()),
        None => {}
    }
    let ended = runtime.block_on(stack::run(StackOptions {
        port: arguments.port,
        fresh: arguments.fresh,
        empty: arguments.empty,
        symbols: arguments.symbols,
        years: arguments.years,
        feeds: arguments.paths,
        source: arguments.source,
    }));
    // An interrupted download may still occupy a thread, so the shutdown has a timeout.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}
