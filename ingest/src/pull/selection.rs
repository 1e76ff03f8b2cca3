//! Selection of the request templates of a pull, and the list of planned requests for a dry run.

use std::collections::BTreeMap;

use chrono::Utc;
use market::event::Bookmark;
use market::symbol::Symbol;

use super::args::PullArgs;
use super::connector::{Connector, RequestTemplate};
use super::error::PullError;
use super::plan::{PlannedRequest, SyncScope, newest_day, plan_requests};
use super::report::{DryRunRequest, PullReport};

/// Planned requests of a sync run, for a dry run.
pub(super) fn plan_dry_run(
    args: &PullArgs,
    connector: &Connector,
    symbols: &[Symbol],
    bookmarks: &BTreeMap<String, Bookmark>,
) -> Result<PullReport, PullError> {
    let today = args.today.unwrap_or_else(|| newest_day(Utc::now()));
    let scope = SyncScope { symbols, since: args.since, today, bookmarks, fresh_since: None };
    let mut pulled = PullReport {
        connector: connector.name.clone(),
        source: connector.source().to_owned(),
        dry_run: true,
        ..PullReport::default()
    };
    for template in select_templates(args, connector)? {
        let requests = plan_template(connector, template, &scope)?;
        pulled.requests += requests.len();
        let planned = |request: &PlannedRequest| DryRunRequest {
            request: request.key.clone(),
            url: request.url.to_string(),
            cost: template.cost,
        };
        pulled.planned.extend(requests.iter().map(planned));
    }
    Ok(pulled)
}

pub(super) fn plan_template(
    connector: &Connector,
    template: &RequestTemplate,
    scope: &SyncScope<'_>,
) -> Result<Vec<PlannedRequest>, PullError> {
    plan_requests(connector, template, scope)
        .map_err(|reason| PullError::Unusable { connector: connector.name.clone(), reason })
}

/// Templates selected on the command line; all templates if none is selected.
pub(super) fn select_templates<'a>(
    args: &PullArgs,
    connector: &'a Connector,
) -> Result<Vec<&'a RequestTemplate>, PullError> {
    let known = |name: &String| connector.requests.iter().any(|template| template.name == *name);
    if let Some(unknown) = args.requests.iter().find(|name| !known(name)) {
        let names: Vec<&str> = connector.requests.iter().map(|template| template.name.as_str()).collect();
        let reason = format!("has no request {unknown}; it has {}", names.join(", "));
        return Err(PullError::Unusable { connector: connector.name.clone(), reason });
    }
    let is_wanted =
        |template: &&RequestTemplate| args.requests.is_empty() || args.requests.contains(&template.name);
    Ok(connector.requests.iter().filter(is_wanted).collect())
}
