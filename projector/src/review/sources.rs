//! `projector source`: licences of the sources. A statement of a licence is appended, and the newest one of a source counts.

use anyhow::ensure;
use chrono::{DateTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use market::event::parse_source_name;
use serde::Serialize;
use store::{find_rows, sql_row};
use tokio_postgres::Client;

const LIST: &str = include_str!("../../queries/sources/list.sql");
const SET: &str = include_str!("../../queries/sources/set.sql");
/// Maximum length of each text of a licence, in characters.
const MAX_TEXT: usize = 500;
/// Notification that makes every API instance read the licences at once.
const NOTIFY: &str = "select pg_notify('projection', 'licences')";

/// Licence of a source.
#[derive(Debug, Args)]
pub(crate) struct LicenceArgs {
    /// Source, as in ingest load --source
    #[arg(value_parser = parse_source_name)]
    pub source: String,
    /// Name of the licence
    #[arg(long)]
    pub licence: String,
    /// Address of the licence text
    #[arg(long)]
    pub url: Option<String>,
    /// Text that names the source wherever its data is shown
    #[arg(long)]
    pub attribution: Option<String>,
    /// Redistribution of the data. With `no`, bulk answers, exports and pages without a key leave out the securities
    /// that rest on the source
    #[arg(long, action = ArgAction::Set, value_parser = PossibleValuesParser::new(["yes", "no"]).map(|word| word == "yes"))]
    pub redistribution: bool,
}

sql_row! {
    /// Source with its licence.
    #[derive(Debug, Serialize)]
    pub(crate) struct ListedSource {
        pub source: String,
        pub kinds: Vec<String>,
        pub licence: Option<String>,
        pub url: Option<String>,
        pub attribution: Option<String>,
        pub redistribution: Option<bool>,
        pub stated_at: Option<DateTime<Utc>>,
        pub stated_by: Option<String>,
    }
}

pub(crate) async fn list_sources(client: &Client) -> anyhow::Result<Vec<ListedSource>> {
    Ok(find_rows(client, LIST, &[]).await?)
}

/// Appends a licence. The API follows it from its next response on.
pub(crate) async fn state_licence(client: &Client, stated: &LicenceArgs) -> anyhow::Result<()> {
    let LicenceArgs { source, licence, url, attribution, redistribution } = stated;
    let is_link = url.as_deref().is_none_or(|url| url.starts_with("https://") || url.starts_with("http://"));
    ensure!(!licence.trim().is_empty(), "cannot state the licence: --licence is empty");
    let is_short = [licence, url.as_ref().unwrap_or(licence), attribution.as_ref().unwrap_or(licence)]
        .iter()
        .all(|text| text.chars().count() <= MAX_TEXT);
    ensure!(is_short, "cannot state the licence: a text has more than {MAX_TEXT} characters");
    ensure!(is_link, "cannot state the licence: --url is not a web address; begin it with https://");
    client.execute(SET, &[source, licence, url, attribution, redistribution]).await?;
    client.execute(NOTIFY, &[]).await?;
    Ok(())
}
