//! Arguments of `projector quarantine`.

use chrono::NaiveDate;
use clap::{Args, Subcommand};
use event_log::stream::StreamSettings;
use market::event::Kind;
use market::row::HoldReason;
use market::symbol::Symbol;

/// What is done about held rows.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List the rows that are held back from every figure
    List(ListQuarantineArgs),
    /// Say that a held row is right: it counts from now on
    ///
    /// Only rows that their neighbours or a price contradict can be released; what a row shows by itself to be impossible
    /// is mended by loading a correction. A vendor's correction of the row is another row, and judged again.
    Release(DecideArgs),
    /// Say that a held row is wrong: it stays held, also when its neighbours change
    Confirm(DecideArgs),
    /// Take a decision back: the rules alone judge the row again
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub struct ListQuarantineArgs {
    /// Only rows of this security
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// Only rows held for this reason, for example amount_outlier
    #[arg(long)]
    pub reason: Option<HoldReason>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which rows of a security are meant.
#[derive(Debug, Args)]
pub struct RowSelector {
    /// The security
    #[arg(value_parser = Symbol::parse)]
    pub symbol: Symbol,
    /// price, dividend or split
    #[arg(long)]
    pub kind: Option<Kind>,
    /// Ex-date or session of the row
    #[arg(long)]
    pub date: Option<NaiveDate>,
    /// Feed the row came from
    #[arg(long)]
    pub source: Option<String>,
    /// Vendor's id of the row
    #[arg(long)]
    pub id: Option<String>,
    /// All that match, where several do
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct DecideArgs {
    #[command(flatten)]
    pub which: RowSelector,
    /// Why; kept in the log, and shown wherever the figure is explained, to clients too
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub note: String,
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RevokeArgs {
    #[command(flatten)]
    pub which: RowSelector,
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A sentence that Postgres can store and a line can show.
fn parse_note(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > 1000 || text.contains(char::is_control) {
        return Err("a line of 1 to 1000 characters".to_owned());
    }
    Ok(text.to_owned())
}
