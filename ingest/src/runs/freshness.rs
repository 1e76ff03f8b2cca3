//! `ingest freshness`: age of the newest data of every feed. Only the hours of trading days count.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::America::New_York;
use clap::Args;
use event_log::stream::StreamSettings;
use market::event::{Kind, RunChange, RunState, RunVisibility};
use market::metrics::calendar::{is_session, new_york_date, sessions_between};
use serde::Serialize;
use telemetry::table::{Column, ListArgs, Table};

use crate::load::parse_observation_time;
use crate::log::reader::{Log, LogError};
use crate::log::run_states::{Runs, StoredManifest};
use telemetry::command_line::parse_duration;

/// Reports the age of the newest data of every feed.
///
/// The age of prices and sessions is the time since the end of their newest day. The age of other kinds is the time
/// since their last load. Only the hours of trading days count: a price of Friday has age 0 on Sunday, and 10 hours on
/// Monday at 10:00 in New York. Undone runs and held runs are ignored; held runs are listed.
///
/// Exit codes: 0 all feeds are fresh; 1 some are older than --warn, or a run is held; 2 some are older than --error, or
/// nothing was loaded; 3 NATS unreachable.
#[derive(Debug, Clone, Args)]
pub struct FreshnessArgs {
    /// Name of the feed; default: all feeds
    #[arg(long)]
    pub source: Option<String>,
    /// Kinds of rows whose age affects the exit code
    #[arg(long = "kind", value_name = "KIND", default_values = ["price", "session"])]
    pub kinds: Vec<Kind>,
    /// Age above which a feed gets a warning, for example 26h, 90m or 2d
    #[arg(long, default_value = "26h", value_parser = parse_duration)]
    pub warn: Duration,
    /// Age above which a feed gets an error, for example 2d
    #[arg(long, default_value = "50h", value_parser = parse_duration)]
    pub error: Duration,
    /// Time at which the ages are measured (RFC 3339); default: now
    #[arg(long, value_parser = parse_observation_time)]
    pub at: Option<DateTime<Utc>>,
    /// Limit and format of the list.
    #[command(flatten)]
    pub output: ListArgs,
}

/// Freshness verdict of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshnessVerdict {
    /// No older than `--warn`.
    Fresh,
    /// Older than `--warn`, no older than `--error`.
    Warn,
    /// Older than `--error`.
    Error,
}

/// Newest data of one source and kind.
#[derive(Debug, Clone, Serialize)]
pub struct FeedAge {
    /// Name of the source.
    pub source: String,
    /// Kind of the rows. The kinds `reject` and `evidence` are not listed.
    pub kind: Kind,
    /// Newest date in the rows; absent for rows without a date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<NaiveDate>,
    /// Time at which the log stored the completion manifest of the last load with rows of this kind.
    pub loaded: DateTime<Utc>,
    /// Age in hours. Only the hours of trading days are counted.
    pub age_hours: f64,
    /// Number of trading sessions after the newest data.
    pub age_sessions: i32,
    /// Comparison of the age with `--warn` and `--error`. It is also computed for kinds that do not affect the exit
    /// code.
    pub verdict: FreshnessVerdict,
    /// True if the verdict of this feed affects the exit code.
    pub judged: bool,
}

/// Ages of the newest data of all feeds.
#[derive(Debug, Clone, Serialize)]
pub struct FreshnessReport {
    /// Time at which the ages are measured.
    pub at: DateTime<Utc>,
    /// Ages of the feeds, sorted by source and kind. Empty if no run matches the arguments.
    pub feeds: Vec<FeedAge>,
    /// Last changes of the runs that are held. Absent without held runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<RunChange>,
    /// All sources of the log, if no feed matches the requested source; otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_sources: Vec<String>,
}

/// Newest day in the rows of a feed, and time of the last load of the feed.
type NewestData = (Option<NaiveDate>, DateTime<Utc>);

/// Computes the age of every feed in the log.
pub async fn check_freshness(
    args: &FreshnessArgs,
    settings: &StreamSettings,
) -> Result<FreshnessReport, LogError> {
    let at = args.at.unwrap_or_else(Utc::now);
    let runs = match Log::open_existing(settings).await {
        Err(error) if error.is_absence() => Runs::default(),
        log => Runs::read(&log?).await?,
    };
    let completed = runs.manifests.iter().filter(|stored| {
        let run = &stored.manifest;
        run.state == RunState::Completed && runs.states.is_visible(&run.run)
    });
    let mut newest: BTreeMap<(&str, Kind), NewestData> = BTreeMap::new();
    for StoredManifest { stored_at: loaded, manifest: run, .. } in completed {
        let kinds = run.frames.iter().map(|frames| frames.kind);
        for kind in kinds.filter(|kind| !matches!(kind, Kind::Evidence | Kind::Reject)) {
            let feed = newest.entry((run.source.as_str(), kind)).or_insert((None, *loaded));
            *feed = (feed.0.max(run.newest.get(&kind).copied()), feed.1.max(*loaded));
        }
    }
    let wanted = |source: &str| args.source.as_deref().is_none_or(|wanted| wanted == source);
    let feeds: Vec<FeedAge> = newest
        .iter()
        .filter(|((source, _), _)| wanted(source))
        .map(|((source, kind), (newest, loaded))| FeedAge::new(args, source, *kind, *newest, *loaded, at))
        .collect();
    let mut sources: BTreeMap<&str, &str> = BTreeMap::new();
    sources.extend(runs.manifests().map(|run| (run.run.as_str(), run.source.as_str())));
    let held = sources.iter().filter(|(_, source)| wanted(source));
    let held = held.filter_map(|(run, _)| runs.states.last_change(run));
    let held = held.filter(|change| change.new_state == RunVisibility::Held).cloned().collect();
    let mut known_sources: Vec<String> = newest.keys().map(|(source, _)| (*source).to_owned()).collect();
    known_sources.dedup();
    Ok(FreshnessReport {
        at,
        held,
        known_sources: if feeds.is_empty() { known_sources } else { Vec::new() },
        feeds,
    })
}

impl FeedAge {
    fn new(
        args: &FreshnessArgs,
        source: &str,
        kind: Kind,
        newest: Option<NaiveDate>,
        loaded: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Self {
        let session = newest.filter(|_| matches!(kind, Kind::Price | Kind::Session));
        let age = session_time(session.map_or(loaded, end_of), at);
        let verdict = match age.to_std().unwrap_or_default() {
            age if age > args.error => FreshnessVerdict::Error,
            age if age > args.warn => FreshnessVerdict::Warn,
            _ => FreshnessVerdict::Fresh,
        };
        #[expect(clippy::cast_precision_loss, reason = "an age for people")]
        let age_hours = age.num_minutes() as f64 / 60.0;
        Self {
            source: source.to_owned(),
            kind,
            newest,
            loaded,
            age_hours,
            age_sessions: sessions_between(session.unwrap_or(new_york_date(loaded)), new_york_date(at)),
            verdict,
            judged: args.kinds.contains(&kind),
        }
    }
}

impl FreshnessReport {
    /// Exit code: 0 fresh, 1 warning or a held run, 2 error or no feed to evaluate.
    pub fn exit_code(&self) -> u8 {
        let judged = self.feeds.iter().filter(|feed| feed.judged);
        let oldest = judged.map(|feed| feed.verdict as u8).max().unwrap_or(FreshnessVerdict::Error as u8);
        oldest.max(u8::from(!self.held.is_empty()))
    }

    /// Prints the feeds as a table. Verdicts that affect the exit code are in capitals.
    pub fn print_table(&self, max_rows: usize) {
        let columns = [
            Column::Text("source"),
            Column::Text("kind"),
            Column::Text("newest"),
            Column::Text("loaded (UTC)"),
            Column::Number("hours"),
            Column::Number("sessions"),
            Column::Text("verdict"),
        ];
        let mut table = Table::new(["feed", "feeds"], &columns, max_rows);
        for feed in &self.feeds {
            let verdict = match feed.verdict {
                FreshnessVerdict::Fresh => "fresh",
                FreshnessVerdict::Warn => "late",
                FreshnessVerdict::Error => "too late",
            };
            table.add_row([
                feed.source.clone(),
                feed.kind.to_string(),
                feed.newest.map_or_else(|| "-".to_owned(), |date| date.to_string()),
                feed.loaded.format("%Y-%m-%d %H:%M").to_string(),
                format!("{:.1}", feed.age_hours),
                feed.age_sessions.to_string(),
                if feed.judged { verdict.to_uppercase() } else { verdict.to_owned() },
            ]);
        }
        let judged: BTreeSet<&str> =
            self.feeds.iter().filter(|feed| feed.judged).map(|feed| feed.kind.as_str()).collect();
        let judged = judged.into_iter().collect::<Vec<_>>().join(" and ");
        match judged.as_str() {
            "" => table.add_note("the exit code is 2: no feed has a kind that --kind names"),
            judged => table.add_note(&format!("the exit code follows {judged}")),
        }
        for RunChange { run, reason, .. } in &self.held {
            table.add_note(&format!("held: run {run} ({reason}); ingest release {run} or ingest undo {run}"));
        }
        match self.known_sources.join(", ").as_str() {
            "" => table.print("no feeds: the log is empty; ingest load FILE --source NAME loads a file"),
            known => table.print(&format!("no feeds: this source has no run in the log; known: {known}")),
        }
    }
}

/// Time from `from` to `to`, counting only trading days in New York. Zero if `from` is later than `to`.
fn session_time(from: DateTime<Utc>, to: DateTime<Utc>) -> TimeDelta {
    let last = new_york_date(to);
    let days = new_york_date(from).iter_days().take_while(|date| *date <= last);
    days.filter(|date| is_session(*date))
        .map(|date| (end_of(date).min(to) - start_of(date).max(from)).max(TimeDelta::zero()))
        .sum()
}

fn end_of(date: NaiveDate) -> DateTime<Utc> {
    start_of(date.succ_opt().unwrap_or(NaiveDate::MAX))
}

/// Midnight in New York at the beginning of a date. Daylight saving never skips midnight in New York.
fn start_of(date: NaiveDate) -> DateTime<Utc> {
    let midnight = date.and_time(NaiveTime::MIN);
    New_York.from_local_datetime(&midnight).earliest().map_or(midnight.and_utc(), |time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(from: &str, to: &str) -> i64 {
        session_time(from.parse().unwrap(), to.parse().unwrap()).num_hours()
    }

    #[test]
    fn a_weekend_makes_nothing_old() {
        let friday = end_of("2024-03-15".parse().unwrap());
        let at = |to: &str| session_time(friday, to.parse().unwrap()).num_hours();
        assert_eq!(at("2024-03-17T20:00:00Z"), 0);
        assert_eq!(at("2024-03-18T14:00:00Z"), 10);
        assert_eq!(at("2024-03-19T14:00:00Z"), 34);
        // Good Friday.
        assert_eq!(hours("2024-03-29T04:00:00Z", "2024-04-01T04:00:00Z"), 0);
        assert_eq!(hours("2024-03-18T14:00:00Z", "2024-03-17T14:00:00Z"), 0);
    }

    #[test]
    fn a_day_is_as_long_as_it_is_when_the_clocks_change() {
        // A Sunday has no session hours. The adjacent days start at midnight in New York.
        assert_eq!(start_of("2024-03-08".parse().unwrap()).to_rfc3339(), "2024-03-08T05:00:00+00:00");
        assert_eq!(start_of("2024-03-11".parse().unwrap()).to_rfc3339(), "2024-03-11T04:00:00+00:00");
    }
}
