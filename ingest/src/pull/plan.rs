//! Plan of a sync run: one request per symbol or trading session. The bookmark of a request stores the last day that
//! was fetched.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Days, NaiveDate, Timelike, Utc};
use chrono_tz::America::New_York;
use market::event::Bookmark;
use market::metrics::calendar::{is_session, previous_session, session_on_or_before};
use market::symbol::Symbol;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

use super::args::{PullArgs, PullError};
use super::connector::{Connector, RequestTemplate};

/// Number of days to fetch for a request without a bookmark, if no first day is configured.
const FIRST_DAYS: u64 = 30;
/// Hour in New York (17:00) from which the data of today's session can be fetched.
const AFTER_CLOSE: u32 = 17;

/// Characters that are percent-encoded in a path: all except the unreserved characters of RFC 3986. AWS signatures
/// require this encoding.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Scope of a sync run: symbols, days and bookmarks.
pub(super) struct SyncScope<'a> {
    pub symbols: &'a [Symbol],
    /// First day to fetch (`--since`). `None` to continue from the bookmarks.
    pub since: Option<NaiveDate>,
    pub today: NaiveDate,
    pub bookmarks: &'a BTreeMap<String, Bookmark>,
    /// Most recent scheduled time of the pull. Requests that got a response after this time are skipped, because an
    /// earlier sync run already sent them. `None` to send all requests.
    pub fresh_since: Option<DateTime<Utc>>,
}

/// One request with its parameters. Its response may have several pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedRequest {
    /// Name under which the bookmark of the request is stored, for example `eod/KO`.
    pub key: String,
    pub url: Url,
    /// File name of the stored response, for example `KO.json`. If the response has several pages, each page is stored
    /// under this name in a separate folder.
    pub file: String,
    /// Last day that the response covers. The bookmark of the response stores this day.
    pub through: NaiveDate,
    /// Bookmark of the previous response to this request. `etag` and `last_modified` are `None` if the URL changes with
    /// the requested days.
    pub known: Option<Bookmark>,
    /// Meaning of a 404 response to this request.
    pub not_found: NotFoundMeaning,
}

/// Meaning of a 404 response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFoundMeaning {
    /// The symbol or the path is wrong.
    Wrong,
    /// The data of the day are not available yet.
    NotYet,
    /// The vendor will never have the data of the day. The day is so old that the vendor would already have published
    /// the data.
    Never,
}

/// Newest day for which vendors may have data.
pub(super) fn newest_day(now: DateTime<Utc>) -> NaiveDate {
    let local = now.with_timezone(&New_York);
    let today = local.date_naive();
    if local.hour() >= AFTER_CLOSE { today } else { today.pred_opt().unwrap_or(today) }
}

/// Request templates that the command line selects; all templates of the connector if it selects none.
pub(super) fn select_templates<'a>(
    args: &PullArgs,
    connector: &'a Connector,
) -> Result<Vec<&'a RequestTemplate>, PullError> {
    let known = |name: &String| connector.requests.iter().any(|template| template.name == *name);
    if let Some(unknown) = args.requests.iter().find(|name| !known(name)) {
        let names: Vec<&str> = connector.requests.iter().map(|template| template.name.as_str()).collect();
        let reason = format!("has no request {unknown}; it has {}", names.join(", "));
        return Err(connector.unusable(reason));
    }
    let is_wanted =
        |template: &&RequestTemplate| args.requests.is_empty() || args.requests.contains(&template.name);
    Ok(connector.requests.iter().filter(is_wanted).collect())
}

/// Plans the requests of a template for all symbols and sessions. Requests without an earlier response come first, then
/// those with the oldest response.
pub(super) fn plan_requests(
    connector: &Connector,
    template: &RequestTemplate,
    scope: &SyncScope<'_>,
) -> Result<Vec<PlannedRequest>, PullError> {
    if template.has_placeholder("symbol") && scope.symbols.is_empty() {
        let name = &template.name;
        return Err(connector.unusable(format!(
            "request {name} needs symbols: name them with --symbols, or in the manifest"
        )));
    }
    let symbols = scope.symbols.iter().map(Some).collect::<Vec<_>>();
    let symbols = if template.has_placeholder("symbol") { symbols } else { vec![None] };
    let mut requests = Vec::new();
    for symbol in symbols {
        let key = std::iter::once(template.name.as_str()).chain(symbol.map(Symbol::as_str));
        let key = key.collect::<Vec<_>>().join("/");
        if ["date", "year", "month"].iter().any(|placeholder| template.has_placeholder(placeholder)) {
            for day in days_to_fetch(connector, template, scope, &key) {
                let key = format!("{key}/{day}");
                requests.push(build_request(connector, template, scope, key, symbol, Some(day))?);
            }
        } else {
            requests.push(build_request(connector, template, scope, key, symbol, None)?);
        }
    }
    let fetched =
        |request: &PlannedRequest| scope.bookmarks.get(&request.key).map(|bookmark| bookmark.fetched);
    requests.retain(|request| scope.fresh_since.is_none() || fetched(request) < scope.fresh_since);
    requests.sort_by_key(fetched);
    Ok(requests)
}

/// Sessions to fetch. With `--since`, all sessions from that day are fetched. Otherwise, every session without a
/// bookmark is fetched. The newest sessions are fetched even if they have a bookmark, because vendors may replace
/// recent data.
fn days_to_fetch(
    connector: &Connector,
    template: &RequestTemplate,
    scope: &SyncScope<'_>,
    key: &str,
) -> Vec<NaiveDate> {
    let last = session_on_or_before(scope.today);
    let recent = newest_settled_day(template, last);
    let fetched = |day: NaiveDate| scope.bookmarks.contains_key(&format!("{key}/{day}"));
    // The days begin no later than the oldest bookmarked session, so that no session since then is left out.
    let prefix = format!("{key}/");
    let oldest = scope.bookmarks.range(prefix.clone()..).next().filter(|(name, _)| name.starts_with(&prefix));
    let first = match oldest.filter(|_| scope.since.is_none()) {
        Some((_, bookmark)) => first_day(connector, scope).min(bookmark.through),
        None => first_day(connector, scope),
    };
    let days = first.iter_days().take_while(|day| *day <= last);
    days.filter(|day| is_session(*day))
        .filter(|day| scope.since.is_some() || *day > recent || !fetched(*day))
        .collect()
}

/// Newest session with final data. Later sessions are fetched again, because vendors may still replace their data.
fn newest_settled_day(template: &RequestTemplate, last: NaiveDate) -> NaiveDate {
    (0..template.look_back).fold(last, |day, _| previous_session(day))
}

fn first_day(connector: &Connector, scope: &SyncScope<'_>) -> NaiveDate {
    let back = || scope.today.checked_sub_days(Days::new(FIRST_DAYS)).unwrap_or(scope.today);
    scope.since.or(connector.since).unwrap_or_else(back)
}

fn build_request(
    connector: &Connector,
    template: &RequestTemplate,
    scope: &SyncScope<'_>,
    key: String,
    symbol: Option<&Symbol>,
    day: Option<NaiveDate>,
) -> Result<PlannedRequest, PullError> {
    let known = scope.bookmarks.get(&key);
    let fetched_through = known.filter(|_| scope.since.is_none()).map(|known| known.through);
    let back = |day: NaiveDate| day.checked_sub_days(Days::new(template.look_back));
    let since = fetched_through.and_then(back).unwrap_or_else(|| first_day(connector, scope));
    let through = day.unwrap_or(scope.today);
    let spelled = symbol.map(|symbol| symbol.as_str().replace('.', &connector.separator));
    let placeholders = [
        ("symbol", spelled.unwrap_or_default()),
        ("since", since.to_string()),
        ("until", scope.today.to_string()),
        ("date", through.to_string()),
        ("year", through.year().to_string()),
        ("month", format!("{:02}", through.month())),
    ];
    let fill = |template: &str, encode: &dyn Fn(&str) -> String| {
        let substitute = |text: String, (name, value): &(&str, String)| {
            text.replace(&format!("{{{name}}}"), &encode(value))
        };
        placeholders.iter().fold(template.to_owned(), substitute)
    };
    let path = fill(&template.path, &|value| utf8_percent_encode(value, ENCODED).to_string());
    let base = connector.base_url.as_str().trim_end_matches('/');
    let url = format!("{base}{path}");
    let mut url = Url::parse(&url).map_err(|error| connector.unusable(format!("{url}: {error}")))?;
    for (name, value) in &template.query {
        url.query_pairs_mut().append_pair(name, &fill(value, &str::to_owned));
    }
    let name = match (symbol, day) {
        (Some(symbol), _) => symbol.to_string(),
        (None, Some(day)) => format!("{}-{day}", template.name),
        (None, None) => template.name.clone(),
    };
    // Validators apply only to the same URL. The content hash stays, because it shows if the rows of the response have
    // changed.
    let same_url = !template.has_placeholder("since") && !template.has_placeholder("until");
    let unvalidated = |known: Bookmark| Bookmark { etag: None, last_modified: None, ..known };
    let known = known.cloned().map(|known| if same_url { known } else { unvalidated(known) });
    Ok(PlannedRequest {
        key,
        url,
        file: format!("{name}.{}", template.ending),
        through,
        known,
        not_found: match day {
            None => NotFoundMeaning::Wrong,
            Some(day) if day > newest_settled_day(template, session_on_or_before(scope.today)) => {
                NotFoundMeaning::NotYet
            }
            Some(_) => NotFoundMeaning::Never,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn bookmark(through: &str) -> Bookmark {
        let (etag, last_modified) = (Some("\"1\"".to_owned()), None);
        Bookmark { through: day(through), fetched: DateTime::UNIX_EPOCH, etag, last_modified, content: None }
    }

    fn plan(template: &str, since: Option<&str>, bookmarks: &[(&str, &str)]) -> Vec<PlannedRequest> {
        let text = format!(
            "name = \"x\"\nbase_url = \"https://example.com/api/\"\nsince = \"2024-03-01\"\nseparator = \"-\"\n[[request]]\n{template}"
        );
        let connector = Connector::parse(&text).unwrap();
        let symbols = [Symbol::parse("KO").unwrap(), Symbol::parse("BRK.B").unwrap()];
        let bookmarks =
            bookmarks.iter().map(|(key, through)| ((*key).to_owned(), bookmark(through))).collect();
        let since = since.map(day);
        let scope = SyncScope {
            symbols: &symbols,
            since,
            today: day("2024-03-15"),
            bookmarks: &bookmarks,
            fresh_since: None,
        };
        plan_requests(&connector, &connector.requests[0], &scope).unwrap()
    }

    #[test]
    fn symbols_are_asked_for_from_their_bookmarks_on() {
        let template = "name = \"eod\"\npath = \"/{symbol}.US\"\nquery = { from = \"{since}\" }";
        let found = plan(template, None, &[("eod/KO", "2024-03-14")]);
        let urls: Vec<&str> = found.iter().map(|request| request.url.as_str()).collect();
        // A symbol that was never fetched comes first.
        let expected = [
            "https://example.com/api/BRK-B.US?from=2024-03-01",
            "https://example.com/api/KO.US?from=2024-03-09",
        ];
        assert_eq!(urls, expected);
        let (keys, files): (Vec<&str>, Vec<&str>) =
            found.iter().map(|request| (request.key.as_str(), request.file.as_str())).unzip();
        assert_eq!((keys, files), (vec!["eod/BRK.B", "eod/KO"], vec!["BRK.B.json", "KO.json"]));
        // Another date range has another URL.
        let validated =
            |request: &PlannedRequest| request.known.as_ref().is_some_and(|known| known.etag.is_some());
        assert!(found.iter().all(|request| !validated(request) && request.through == day("2024-03-15")));
        assert!(found[0].known.is_none() && found[1].known.is_some());
        assert!(
            plan(template, Some("2020-01-01"), &[("eod/KO", "2024-03-14")])[1]
                .url
                .as_str()
                .ends_with("2020-01-01")
        );
    }

    #[test]
    fn sessions_are_asked_for_once_and_the_newest_again() {
        let template =
            "name = \"day\"\npath = \"/{year}/{month}/{date}.csv.gz\"\nending = \"csv.gz\"\nlook_back = 2";
        let dates = |requests: &[PlannedRequest]| {
            requests.iter().map(|request| request.through.day()).collect::<Vec<_>>()
        };
        let all = plan(template, None, &[]);
        assert_eq!(dates(&all), [1, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15]);
        assert_eq!(all[0].url.path(), "/api/2024/03/2024-03-01.csv.gz");
        let fetched: Vec<(String, String)> = (1..=14)
            .filter(|day| *day != 6)
            .map(|day| (format!("day/2024-03-{day:02}"), format!("2024-03-{day:02}")))
            .collect();
        let fetched: Vec<(&str, &str)> =
            fetched.iter().map(|(key, day)| (key.as_str(), day.as_str())).collect();
        let again = plan(template, None, &fetched);
        assert_eq!(dates(&again), [6, 15, 14], "the one that is missing, and the newest two");
        assert!(again[2].known.is_some() && again[0].known.is_none());
        assert_eq!(
            (again[0].not_found, again[1].not_found),
            (NotFoundMeaning::Never, NotFoundMeaning::NotYet)
        );
        assert_eq!(dates(&plan(template, Some("2024-03-12"), &fetched)), [15, 12, 13, 14]);
    }

    #[test]
    fn a_day_has_data_after_its_close() {
        assert_eq!(newest_day("2024-03-15T20:59:00Z".parse().unwrap()), day("2024-03-14"));
        assert_eq!(newest_day("2024-03-15T21:00:00Z".parse().unwrap()), day("2024-03-15"));
    }
}
