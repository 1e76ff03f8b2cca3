//! Selection of the requests to make, and their list for a dry run.

use std::collections::BTreeMap;

use chrono::Utc;
use market::event::Bookmark;
use market::symbol::Symbol;

use super::args::PullArgs;
use super::connector::{Connector, RequestTemplate};
use super::error::PullError;
use super::plan::{RequestUnit, SyncScope, newest_day, plan_units};
use super::report::{PlannedCall, PullReport};

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
    for request in select_requests(args, connector)? {
        let units = plan_request(connector, request, &scope)?;
        pulled.requests += units.len();
        let planned = |unit: &RequestUnit| PlannedCall {
            request: unit.key.clone(),
            url: unit.url.to_string(),
            cost: request.cost,
        };
        pulled.planned.extend(units.iter().map(planned));
    }
    Ok(pulled)
}

/// Units of a request template.
pub(super) fn plan_request(
    connector: &Connector,
    request: &RequestTemplate,
    scope: &SyncScope<'_>,
) -> Result<Vec<RequestUnit>, PullError> {
    plan_units(connector, request, scope)
        .map_err(|reason| PullError::Unusable { connector: connector.name.clone(), reason })
}

/// Requests that the command line selects; all requests without a selection.
pub(super) fn select_requests<'a>(
    args: &PullArgs,
    connector: &'a Connector,
) -> Result<Vec<&'a RequestTemplate>, PullError> {
    let known = |name: &String| connector.requests.iter().any(|request| request.name == *name);
    if let Some(unknown) = args.requests.iter().find(|name| !known(name)) {
        let names: Vec<&str> = connector.requests.iter().map(|request| request.name.as_str()).collect();
        let reason = format!("has no request {unknown}; it has {}", names.join(", "));
        return Err(PullError::Unusable { connector: connector.name.clone(), reason });
    }
    let is_wanted =
        |request: &&RequestTemplate| args.requests.is_empty() || args.requests.contains(&request.name);
    Ok(connector.requests.iter().filter(is_wanted).collect())
}
