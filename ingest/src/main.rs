//! Command line of the ingest: arguments, logging and exit codes.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ingest::archive::{ArchiveError, Copied, ExportArgs, ImportArgs};
use ingest::generate::GenerateArgs;
use ingest::load::{LoadArgs, load};
use ingest::log::LogError;
use ingest::report::{Summary, print};
use ingest::show::{RejectsArgs, RunsArgs, ShowArgs};
use ingest::verify::{ResumeArgs, VerifyArgs};
use ingest::{archive, verify};
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
    Verify(VerifyArgs),
    Resume(ResumeArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Rejects(RejectsArgs),
    Show(ShowArgs),
    Generate(GenerateArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    init_logging("warn,ingest=info");
    let Cli { stream, command } = Cli::parse();
    let shutdown = match Shutdown::listen() {
        Ok(shutdown) => shutdown,
        Err(error) => return failed(format_args!("cannot listen for signals: {error}"), 2),
    };
    match command {
        Command::Load(args) => match load(&args, &stream, &shutdown).await {
            Ok(summary) => {
                print(&summary, &summary.text(), args.json);
                ExitCode::from(summary.exit_code())
            }
            Err(error) => failed(format_args!("{error}"), error.exit_code()),
        },
        Command::Resume(args) => match verify::resume(&args, &stream, &shutdown).await {
            Ok(summaries) => {
                summaries.iter().for_each(|summary| print(summary, &summary.text(), args.json));
                ExitCode::from(summaries.iter().map(Summary::exit_code).max().unwrap_or_default())
            }
            Err(error) => failed(format_args!("{error}"), error.exit_code()),
        },
        Command::Verify(args) => match verify::verify(&args, &stream, &shutdown).await {
            Ok(findings) => {
                print(&findings, &findings.text(), args.json);
                ExitCode::from(findings.exit_code())
            }
            Err(error) => failed(format_args!("{error}"), 3),
        },
        Command::Export(args) => copied(archive::export(&args, &stream).await, args.json),
        Command::Import(args) => copied(archive::import(&args, &stream).await, args.json),
        Command::Runs(args) => read(ingest::show::runs(&args, &stream).await),
        Command::Rejects(args) => read(ingest::show::rejects(&args, &stream).await),
        Command::Show(args) => read(ingest::show::show(&args, &stream).await),
        Command::Generate(args) => match ingest::generate::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(format_args!("{error:#}"), 2),
        },
    }
}

fn copied(result: Result<Copied, ArchiveError>, json: bool) -> ExitCode {
    match result {
        Ok(copied) => {
            print(&copied, &copied.text(), json);
            ExitCode::SUCCESS
        }
        Err(error @ (ArchiveError::Log(_) | ArchiveError::Stream(_) | ArchiveError::Publish { .. })) => {
            failed(format_args!("{error}"), 3)
        }
        Err(error) => failed(format_args!("{error}"), 2),
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
