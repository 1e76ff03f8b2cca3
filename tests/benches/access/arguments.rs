//! Command line of the benchmark.

use std::path::PathBuf;

use clap::Parser;

use crate::counts::Count;
use crate::rivals::RivalArguments;

/// Measures the rate and latency of requests to the API.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Securities of the synthetic market
    #[arg(long, default_value_t = 10_000)]
    pub(crate) symbols: u32,
    /// Years of history of every security
    #[arg(long, default_value_t = 2)]
    pub(crate) years: u32,
    /// Accounts, over all tiers
    #[arg(long, default_value_t = 2_000)]
    pub(crate) accounts: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3)]
    pub(crate) seconds: u64,
    /// Number of repetitions of each measurement; the median is printed
    #[arg(long, default_value_t = 1)]
    pub(crate) rounds: usize,
    /// Measures only the result lines with this text in their name, and the line `static body by axum`
    #[arg(long)]
    pub(crate) only: Option<String>,
    /// Counts the instructions or system calls per request, instead of measuring times; the script
    /// `tests/benches/instructions` uses this option
    #[arg(long, requires = "counts")]
    pub(crate) count: Option<Count>,
    /// Folder for the output files of callgrind and strace
    #[arg(long)]
    pub(crate) counts: Option<PathBuf>,
    /// Sends requests to one server for this number of seconds, instead of the other measurements; fails if the server
    /// uses clearly more memory or open files, or more threads, at the end than at the beginning
    #[arg(long)]
    pub(crate) soak: Option<u64>,
    /// Opens this number of change streams at one server, instead of the other measurements; prints the time from the
    /// end of a data load to the arrival of the event
    #[arg(long)]
    pub(crate) streams: Option<usize>,
    /// Measures the write-ahead log of a call and its replay on a synchronous standby, instead of the other measurements
    #[arg(long)]
    pub(crate) replay: bool,
    /// Delay of each direction between the programs and Postgres, in milliseconds; 0 adds no relay
    #[arg(long, default_value_t = 0)]
    pub(crate) postgres_delay: u64,
    /// Options with which the benchmark starts its own program as a simple server for comparison
    #[command(flatten)]
    pub(crate) rival: RivalArguments,
    /// Given by Cargo
    #[arg(long, hide = true)]
    bench: bool,
}
