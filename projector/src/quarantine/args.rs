//! Arguments of `projector quarantine`.

use chrono::NaiveDate;
use clap::{Args, Subcommand};
use event_log::stream::StreamSettings;
use market::event::Kind;
use market::row::QuarantineReason;
use market::symbol::Symbol;
use telemetry::table::ListArgs;

/// Subcommand of `projector quarantine`.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List the quarantined rows, which no metric uses
    List(ListQuarantineArgs),
    /// Release a quarantined row, so that metrics use it from now on
    ///
    /// A row can be released only if its values are possible, for example if it conflicts with other rows or with a
    /// price. For a row with impossible values, load a correction. If the vendor later corrects a released row, the
    /// corrected row is checked again, because the release does not apply to it.
    Release(DecideArgs),
    /// Confirm that a quarantined row is wrong; the row then stays quarantined, even if other rows of the security
    /// change
    Confirm(DecideArgs),
    /// Revoke a decision; afterwards the row is quarantined only if the rules require it
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListQuarantineArgs {
    /// Symbol of the security; default: all securities
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// Reason for the quarantine, for example amount_outlier; default: all reasons
    #[arg(long)]
    pub reason: Option<QuarantineReason>,
    /// Print CSV with all rows
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Limit and format of the list.
    #[command(flatten)]
    pub output: ListArgs,
}

/// Filter that selects quarantined rows of one security.
#[derive(Debug, Args)]
pub(crate) struct RowSelector {
    /// Symbol of the security
    #[arg(value_parser = Symbol::parse)]
    pub symbol: Symbol,
    /// Kind: price, dividend or split
    #[arg(long)]
    pub kind: Option<Kind>,
    /// Date of the row: the ex-date of a dividend or split, or the session of a price
    #[arg(long)]
    pub date: Option<NaiveDate>,
    /// Source of the row
    #[arg(long)]
    pub source: Option<String>,
    /// Vendor's id of the row
    #[arg(long)]
    pub id: Option<String>,
    /// Select all matching rows; without this flag, exactly one row must match
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    #[command(flatten)]
    pub which: RowSelector,
    /// Reason for the decision. It is stored in the log, and clients see it in explanations
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub note: String,
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub which: RowSelector,
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses a note: one line of 1 to 1000 bytes without control characters.
fn parse_note(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > 1000 || text.contains(char::is_control) {
        return Err("a note is one line of 1 to 1000 bytes".to_owned());
    }
    Ok(text.to_owned())
}
