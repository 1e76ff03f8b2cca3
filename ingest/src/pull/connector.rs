//! Connector: the requests to one vendor, described in a TOML manifest.
//!
//! Schedule of a connector: a cron expression in New York time.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::America::New_York;
use croner::Cron;
use reqwest::Url;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::args::{PullError, parse_symbols};
use super::credential::CredentialSpec;
use super::state_log::CallBudget;
use crate::load::LoadArgs;
use crate::load::event_sender::FetchedDataset;
use crate::source::file_access::{Links, read_small_text};
use market::event::parse_source_name;

/// Shipped manifests, by name.
pub(super) const SHIPPED: [(&str, &str); 6] = [
    ("alphavantage", include_str!("../../connectors/alphavantage.toml")),
    ("eodhd", include_str!("../../connectors/eodhd.toml")),
    ("massive", include_str!("../../connectors/massive.toml")),
    ("massive-flatfiles", include_str!("../../connectors/massive-flatfiles.toml")),
    ("tiingo", include_str!("../../connectors/tiingo.toml")),
    ("url", include_str!("../../connectors/url.toml")),
];

/// Placeholders in a path or query, which are written in braces: `{symbol}`.
const PLACEHOLDERS: [&str; 6] = ["symbol", "since", "until", "date", "year", "month"];
/// File name endings from which `ingest load` recognizes the format of the text.
const ENDINGS: [&str; 3] = ["csv", "json", "ndjson"];

/// Manifest of a connector.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Connector {
    /// Name of the connector. Its budget and bookmarks are stored under this name.
    pub name: String,
    /// Name of the feed to which the rows belong; default: the name of the connector.
    #[serde(default)]
    source: Option<String>,
    #[serde(deserialize_with = "address")]
    pub base_url: Url,
    /// Further hosts of the vendor, besides the host of `base_url`. The credential may be sent to these hosts. They may
    /// have private IP addresses.
    #[serde(default)]
    pub hosts: Vec<String>,
    #[serde(default)]
    pub credential: Option<CredentialSpec>,
    #[serde(default, rename = "budget")]
    pub budgets: Vec<CallBudget>,
    #[serde(default)]
    pub schedule: Option<PullSchedule>,
    /// First day to fetch for a request without a bookmark; default: 30 days ago.
    #[serde(default)]
    pub since: Option<NaiveDate>,
    /// Symbols to fetch, if the command line has none.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Separator between root and share class in the vendor's symbols: `-` for `BRK-B`; default: `.`.
    #[serde(default = "default_separator")]
    pub separator: String,
    /// Options of `ingest load` for loading the responses.
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(rename = "request")]
    pub requests: Vec<RequestTemplate>,
}

/// Template of the requests for one sort of data, such as daily prices.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestTemplate {
    /// Name of the request, unique in the manifest. It is part of bookmarks and file names.
    pub name: String,
    pub path: String,
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// Ending for the file name of the response. It shows the format and the compression: `csv`, `json`, `ndjson`,
    /// `csv.gz` …
    #[serde(default = "default_ending")]
    pub ending: String,
    /// Number of calls that the vendor's budget counts for one request.
    #[serde(default = "default_cost")]
    pub cost: u64,
    /// Number of days that are fetched again, because the vendor may still correct their data. They are the calendar
    /// days before the bookmark. But if each request is for a single date, they are the newest trading sessions.
    #[serde(default = "default_look_back")]
    pub look_back: u64,
    #[serde(default)]
    pub paging: Option<PagingMethod>,
}

/// Method of finding the next page of a response with several pages.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum PagingMethod {
    /// JSON pointer to the URL of the next page.
    NextUrl(String),
    /// JSON pointer to a token in the response. The next request sends the token in the query parameter `parameter`.
    Token { pointer: String, parameter: String },
    /// Query parameter for the page number, from 1. The first page without records ends the response.
    Number(String),
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text).map_err(|error| D::Error::custom(format!("{text:?}: {error}")))
}

fn default_separator() -> String {
    ".".to_owned()
}

fn default_ending() -> String {
    "json".to_owned()
}

fn default_cost() -> u64 {
    1
}

fn default_look_back() -> u64 {
    5
}

impl Connector {
    /// Reads the shipped manifest with this name. If there is none, reads the manifest file with this path.
    pub(super) fn read(name: &str) -> Result<Self, PullError> {
        let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
        let text = match shipped {
            Some((_, text)) => Ok((*text).to_owned()),
            None => read_small_text(Path::new(name), Links::Followed).map_err(|error| {
                let shipped = SHIPPED.map(|(name, _)| name).join(", ");
                format!("{error}; shipped manifests: {shipped}; any other name is a file")
            }),
        };
        let parsed = text.and_then(|text| Self::parse(&text));
        parsed.map_err(|reason| PullError::Manifest { name: name.to_owned(), reason })
    }

    /// Parses and validates a manifest. The error names the field and the rule.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let connector: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        connector.validate()?;
        Ok(connector)
    }

    /// Name of the feed.
    pub(super) fn source(&self) -> &str {
        self.source.as_deref().unwrap_or(&self.name)
    }

    /// True if the credential may be sent to the host of a URL.
    pub(super) fn may_receive_credential(&self, url: &Url) -> bool {
        let named = |host: &str| self.hosts.iter().any(|trusted| trusted == host);
        url.origin() == self.base_url.origin()
            || url.scheme() == "https" && url.port().is_none() && url.host_str().is_some_and(named)
    }

    /// True if the manifest names the host of a URL. Such a host may have a private IP address.
    pub(super) fn is_own_host(&self, url: &Url) -> bool {
        let host = url.host_str();
        host == self.base_url.host_str() || self.hosts.iter().any(|own| host == Some(own.as_str()))
    }

    /// Error for a pull that cannot use this connector.
    pub(super) fn unusable(&self, reason: String) -> PullError {
        PullError::Unusable { connector: self.name.clone(), reason }
    }

    fn validate(&self) -> Result<(), String> {
        parse_source_name(&self.name).map_err(|expected| format!("name: {expected}"))?;
        parse_source_name(self.source()).map_err(|expected| format!("source: {expected}"))?;
        parse_symbols(&self.symbols)?;
        let local = matches!(self.base_url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match self.base_url.scheme() {
            "https" => {}
            "http" if local || self.credential.is_none() => {}
            _ => return Err("base_url: must be https if a credential is sent".to_owned()),
        }
        if self.requests.is_empty() {
            return Err("request: at least one [[request]] is required".to_owned());
        }
        if let Some(budget) = self.budgets.iter().find(|budget| budget.calls == 0) {
            return Err(format!("budget: no call a {} is allowed", budget.per.as_str()));
        }
        for (index, request) in self.requests.iter().enumerate() {
            request
                .validate(&self.budgets)
                .map_err(|reason| format!("request {}: {reason}", request.name))?;
            if self.requests[..index].iter().any(|other| other.name == request.name) {
                return Err(format!("two requests are named {}", request.name));
            }
        }
        let args = self.load_args("any.json", &[]).map_err(|error| format!("options: {error}"))?;
        check_options(&args).map_err(|reason| format!("options: {reason}"))
    }

    /// Origin of the responses to a request; `None` if the manifest has no request of this name.
    pub(super) fn dataset(&self, request: &str) -> Option<FetchedDataset> {
        let template = self.requests.iter().find(|template| template.name == request)?;
        let name = format!("{}{}", self.base_url.path().trim_end_matches('/'), template.path);
        Some(FetchedDataset { namespace: self.base_url.origin().ascii_serialization(), name })
    }

    /// Arguments of `ingest load` for fetched files.
    pub(super) fn load_args(&self, path: &str, more: &[String]) -> Result<LoadArgs, clap::Error> {
        LoadArgs::parse_options(path, self.source(), self.options.iter().chain(more))
    }
}

/// Refuses options that a manifest must not set, because the pull itself sets them. An example is the observation time.
fn check_options(args: &LoadArgs) -> Result<(), String> {
    let forbidden = [
        (args.paths.len() != 1, "a path"),
        (args.dry_run, "--dry-run"),
        (args.observed_at.is_some(), "--observed-at"),
        (args.name.is_some() || args.kind.is_some(), "--name or --kind"),
        (args.repair || args.again.is_some(), "--repair or --again"),
    ];
    match forbidden.iter().find(|(is_set, _)| *is_set) {
        Some((_, option)) => {
            Err(format!("{option} is not allowed in a manifest: a pull sets it for the fetched files"))
        }
        None => Ok(()),
    }
}

impl RequestTemplate {
    /// True if the path or the query of the request contains this placeholder.
    pub(super) fn has_placeholder(&self, name: &str) -> bool {
        let placeholder = format!("{{{name}}}");
        self.templates().any(|template| template.contains(&placeholder))
    }

    fn templates(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.path).chain(self.query.values())
    }

    fn validate(&self, budgets: &[CallBudget]) -> Result<(), String> {
        let named = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if self.name.is_empty() || !self.name.chars().all(named) {
            return Err("its name must have only letters, digits, '-' and '_'".to_owned());
        }
        if !self.path.starts_with('/') {
            return Err("its path must begin with /".to_owned());
        }
        let known = |ending: &str| ENDINGS.contains(&ending);
        let plain = [".gz", ".zst"].iter().find_map(|packed| self.ending.strip_suffix(packed));
        if !known(plain.unwrap_or(&self.ending)) {
            return Err(format!("ending: one of {}, also with .gz or .zst", ENDINGS.join(", ")));
        }
        let placeholders = self.templates().flat_map(|template| template.split('{').skip(1));
        let mut names = placeholders.map(|rest| rest.split('}').next().unwrap_or_default());
        if let Some(unknown) = names.find(|name| !PLACEHOLDERS.contains(name)) {
            return Err(format!(
                "{{{unknown}}} is not a placeholder; use one of {}",
                PLACEHOLDERS.join(", ")
            ));
        }
        let smallest = budgets.iter().map(|budget| budget.calls).min();
        if self.cost == 0 || smallest.is_some_and(|calls| self.cost > calls) {
            return Err("its cost must be at least 1 and at most the budget".to_owned());
        }
        Ok(())
    }
}

/// Cron schedule with minute, hour, day of the month, month, and day of the week.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct PullSchedule(Cron);

impl TryFrom<String> for PullSchedule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Cron::from_str(&text).map(Self).map_err(|error| format!("schedule {text:?}: {error}"))
    }
}

impl PullSchedule {
    /// First scheduled time after `time`; `None` if the expression has no later time.
    pub(super) fn next_after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.0.find_next_occurrence(&time.with_timezone(&New_York), false);
        next.ok().map(|next| next.to_utc())
    }

    /// Last scheduled time at or before `time`.
    pub(super) fn last_until(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let last = self.0.find_previous_occurrence(&time.with_timezone(&New_York), true);
        last.ok().map(|last| last.to_utc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "x"
        base_url = "https://example.com"
        [[request]]
        name = "prices"
        path = "/{symbol}"
    "#;

    #[test]
    fn shipped_manifests_are_valid_and_short() {
        for (name, text) in SHIPPED {
            let connector = Connector::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(connector.name, name);
            assert!(text.lines().count() <= 100, "{name}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        let error_of = |text: &str| Connector::parse(text).map(drop).unwrap_err().to_string();
        let with = |from: &str, to: &str| error_of(&SMALL.replace(from, to));
        assert!(Connector::parse(SMALL).is_ok());
        assert!(with("{symbol}", "{sybmol}").contains("{sybmol} is not a placeholder"));
        assert!(with("path", "pth").contains("unknown field `pth`"));
        assert!(with("\"/{", "\"{").contains("must begin with /"));
        assert!(error_of(&format!("{SMALL}\nending = \"xlsx\"")).contains("ending: one of csv"));
        assert!(error_of(&format!("options = [\"--fromat\"]\n{SMALL}")).contains("--fromat"));
        for option in ["--dry-run", "more.csv", "--observed-at=2024-03-15T00:00:00Z", "--again=x"] {
            assert!(
                error_of(&format!("options = [{option:?}]\n{SMALL}")).contains("not allowed in a manifest"),
                "{option}"
            );
        }
        let open = "base_url = \"http://example.com\"\ncredential = { kind = \"query\", variable = \"X\", parameter = \"k\" }";
        assert!(with("base_url = \"https://example.com\"", open).contains("must be https"));
        assert!(
            error_of(&format!("budget = [{{ calls = 5, per = \"day\" }}]\n{SMALL}\ncost = 6"))
                .contains("cost")
        );
    }

    #[test]
    fn the_credential_is_for_the_vendor_s_hosts() {
        let text = format!("hosts = [\"api.example.org\"]\n{SMALL}");
        let connector = Connector::parse(&text).unwrap();
        let trusts = |url: &str| connector.may_receive_credential(&Url::parse(url).unwrap());
        assert!(trusts("https://example.com/next") && trusts("https://api.example.org/next"));
        for other in [
            "http://example.com/",
            "https://example.com:8443/",
            "https://evil.org/",
            "http://api.example.org/",
        ] {
            assert!(!trusts(other), "{other}");
        }
    }
}

#[cfg(test)]
mod schedule_tests {
    use super::*;

    #[test]
    fn the_clock_is_new_york_s_in_summer_and_winter() {
        let schedule = PullSchedule::try_from("30 18 * * mon-fri".to_owned()).unwrap();
        let next = |from: &str| schedule.next_after(from.parse().unwrap()).map(|next| next.to_rfc3339());
        // Friday before the clock change to Monday after it.
        assert_eq!(next("2024-03-08T12:00:00Z").as_deref(), Some("2024-03-08T23:30:00+00:00"));
        assert_eq!(next("2024-03-08T23:30:00Z").as_deref(), Some("2024-03-11T22:30:00+00:00"));
        let last = schedule.last_until("2024-03-10T12:00:00Z".parse().unwrap());
        assert_eq!(last.map(|last| last.to_rfc3339()).as_deref(), Some("2024-03-08T23:30:00+00:00"));
        assert!(PullSchedule::try_from("daily at six".to_owned()).is_err());
    }
}
