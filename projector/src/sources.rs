//! `projector source`: licences of the sources. A statement of a licence is appended, and the newest one of a source counts.

use anyhow::ensure;
use chrono::{DateTime, Utc};
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, Subcommand};
use serde::Serialize;
use store::{FromRow, sql_row};
use telemetry::outln;
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use crate::report;

const LIST: &str = include_str!("../queries/sources/list.sql");
const SET: &str = include_str!("../queries/sources/set.sql");
/// Notification that makes every API instance read the licences at once.
const NOTIFY: &str = "select pg_notify('projection', 'licences')";

#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// List the sources with their licences
    List(ListArgs),
    /// State the licence of a source; it takes effect at once, without a new data version
    Set(LicenceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LicenceArgs {
    /// Source, as in ingest load --source
    source: String,
    /// Name of the licence
    #[arg(long)]
    licence: String,
    /// Address of the licence text
    #[arg(long)]
    url: Option<String>,
    /// Text that names the source wherever its data is shown
    #[arg(long)]
    attribution: Option<String>,
    /// Redistribution of the data. With `no`, bulk answers, exports and pages without a key leave out the securities
    /// that rest on the source
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    redistribution: bool,
}

sql_row! {
    #[derive(Debug, Serialize)]
    pub(crate) struct ListedSource {
        pub(crate) source: String,
        pub(crate) kinds: Vec<String>,
        pub(crate) licence: Option<String>,
        pub(crate) url: Option<String>,
        pub(crate) attribution: Option<String>,
        pub(crate) redistribution: Option<bool>,
        pub(crate) stated_at: Option<DateTime<Utc>>,
        pub(crate) stated_by: Option<String>,
    }
}

pub(crate) async fn run_source_command(client: &Client, command: SourceCommand) -> anyhow::Result<()> {
    let LicenceArgs { source, licence, url, attribution, redistribution } = match command {
        SourceCommand::List(output) => {
            let rows = client.query(LIST, &[]).await?;
            let listed = rows.iter().map(ListedSource::from_row).collect::<Result<Vec<_>, _>>()?;
            return report::print_sources(&listed, &output);
        }
        SourceCommand::Set(args) => args,
    };
    let is_link = url.as_deref().is_none_or(|url| url.starts_with("https://") || url.starts_with("http://"));
    ensure!(is_link, "cannot state the licence: --url is not a web address; begin it with https://");
    client.execute(SET, &[&source, &licence, &url, &attribution, &redistribution]).await?;
    client.execute(NOTIFY, &[]).await?;
    let redistribution = if redistribution { "yes" } else { "no" };
    outln!("{source}: {licence}, redistribution {redistribution}");
    Ok(())
}
