//! Arguments of `projector audit`.

use std::path::PathBuf;

use clap::Args;
use event_log::stream::StreamSettings;

/// Report and output of an audit. Without a report, the daily checks run.
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// Report of the effect of a load: figures before the first row of RUN (see `ingest runs`) and now
    #[arg(long, value_name = "RUN", group = "report")]
    pub since: Option<String>,
    /// Report on the sources: coverage, freshness, agreement with adjusted closes, readings of dividend rows, and
    /// conflicts
    #[arg(long, group = "report")]
    pub quality: bool,
    /// HTML file for the report, without external resources
    #[arg(long, value_name = "FILE", requires = "report")]
    pub html: Option<PathBuf>,
    /// CSV file for all values that differ since RUN, one per line
    #[arg(long, value_name = "FILE", requires = "since")]
    pub csv: Option<PathBuf>,
    /// Maximum number of printed differences per topic and table since RUN
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Longest wait for the served tables to contain RUN, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600))]
    pub wait: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Connection to the log. The log has the earlier versions of rows that were corrected since.
    #[command(flatten)]
    pub stream: StreamSettings,
}
