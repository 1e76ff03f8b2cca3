//! Command line of the ingest: arguments, logging and exit codes.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ingest::generate::GenerateArgs;
use ingest::load::{LoadArgs, load};
use ingest::log::LogError;
use ingest::show::{RejectsArgs, RunsArgs, ShowArgs};
use schema::process::{Shutdown, init_logging};
use schema::stream::StreamSettings;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Brings market data feeds into the log.
///
/// Every row of a feed becomes an event of the log or a reject with its reason; nothing is dropped. The projector
/// turns the log into tables, from which the API answers.
#[derive(Debug, Parser)]
#[command(name = "ingest", version)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Load(Box<LoadArgs>),
    Runs(RunsArgs),
    Rejects(RejectsArgs),
    Show(ShowArgs),
    Generate(GenerateArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    init_logging("warn,ingest=info");
    let Cli { stream, command } = Cli::parse();
    match command {
        Command::Load(args) => run_load(&args, &stream).await,
        Command::Runs(args) => read(ingest::show::runs(&args, &stream).await),
        Command::Rejects(args) => read(ingest::show::rejects(&args, &stream).await),
        Command::Show(args) => read(ingest::show::show(&args, &stream).await),
        Command::Generate(args) => match ingest::generate::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(format_args!("{error:#}"), 2),
        },
    }
}

async fn run_load(args: &LoadArgs, stream: &StreamSettings) -> ExitCode {
    let shutdown = match Shutdown::listen() {
        Ok(shutdown) => shutdown,
        Err(error) => return failed(format_args!("cannot listen for signals: {error}"), 2),
    };
    match load(args, stream, &shutdown).await {
        Ok(summary) => {
            summary.print(args.json);
            ExitCode::from(summary.exit_code())
        }
        Err(error) => failed(format_args!("{error}"), error.exit_code()),
    }
}

fn read(result: Result<(), LogError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ LogError::NoMessage(_)) => failed(format_args!("{error}"), 2),
        Err(error) => failed(format_args!("{error}"), 3),
    }
}

fn failed(message: std::fmt::Arguments<'_>, code: u8) -> ExitCode {
    tracing::error!("{message}");
    ExitCode::from(code)
}
