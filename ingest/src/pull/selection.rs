//! Selection of requests: command-line filters, and the requests of one sync run.

use std::collections::BTreeMap;

use chrono::Utc;
use market::event::Bookmark;
use market::symbol::Symbol;

use super::args::PullArgs;
use super::connector::{Connector, Request};
use super::error::PullError;
use super::plan::{Scope, Unit, newest_day, units};
use super::report::{Planned, Pulled};

/// Planned requests of a round, for a dry run.
pub(super) fn would_ask(
    args: &PullArgs,
    connector: &Connector,
    symbols: &[Symbol],
    bookmarks: &BTreeMap<String, Bookmark>,
) -> Result<Pulled, PullError> {
    let today = args.today.unwrap_or_else(|| newest_day(Utc::now()));
    let scope = Scope { symbols, since: args.since, today, bookmarks, fresh_since: None };
    let mut pulled = Pulled {
        connector: connector.name.clone(),
        source: connector.source().to_owned(),
        dry_run: true,
        ..Pulled::default()
    };
    for request in wanted(args, connector)? {
        let units = planned(connector, request, &scope)?;
        pulled.requests += units.len();
        let planned = |unit: &Unit| Planned {
            request: unit.key.clone(),
            url: unit.url.to_string(),
            cost: request.cost,
        };
        pulled.planned.extend(units.iter().map(planned));
    }
    Ok(pulled)
}

/// Units of a request.
pub(super) fn planned(
    connector: &Connector,
    request: &Request,
    scope: &Scope<'_>,
) -> Result<Vec<Unit>, PullError> {
    units(connector, request, scope)
        .map_err(|reason| PullError::Unusable { connector: connector.name.clone(), reason })
}

/// Requests selected on the command line, or all.
pub(super) fn wanted<'a>(args: &PullArgs, connector: &'a Connector) -> Result<Vec<&'a Request>, PullError> {
    let known = |name: &String| connector.requests.iter().any(|request| request.name == *name);
    if let Some(unknown) = args.requests.iter().find(|name| !known(name)) {
        let names: Vec<&str> = connector.requests.iter().map(|request| request.name.as_str()).collect();
        let reason = format!("has no request {unknown}; it has {}", names.join(", "));
        return Err(PullError::Unusable { connector: connector.name.clone(), reason });
    }
    let is_wanted = |request: &&Request| args.requests.is_empty() || args.requests.contains(&request.name);
    Ok(connector.requests.iter().filter(is_wanted).collect())
}
