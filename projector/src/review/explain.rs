//! `projector explain SYMBOL METRIC`: the observations, the chosen source and the formula of a metric.
//!
//! The metric is computed again from the facts, with the inputs of its generation. Runs that are held or excluded are
//! listed with the metrics that would change if they were visible.

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, Utc};
use market::decimal::{ExactDecimal, round};
use market::event::Kind;
use market::identity::SecurityAddress;
use market::metrics;
use market::metrics::{
    DerivationContext, ExplainedDecision, ExplainedMetric, ExplainedObservation, ExplainedYear, Explanation,
    METHOD_VERSION,
};
use market::row::{QuarantineReason, Quarantined};
use market::symbol::Symbol;
use serde::Serialize;
use store::facts::name_files;
use store::ids::GenerationId;
use store::past_facts::FactHistory;
use store::view::View;
use store::{FromRow, sql_row};
use telemetry::report::{Report, ReportTable};
use telemetry::table::output_width;
use tokio_postgres::{Client, Transaction};

use crate::generation::{Generation, KnownAt, begin_snapshot, find_version, load_generation_row};
use crate::review::{SecurityContext, find_symbol};

const ACTIVE: &str = "select generation from active";
const LAST_CHANGES: &str = include_str!("../../queries/run_changes_last.sql");
const MAX_RUNS: usize = 20;

#[derive(Debug, Clone, Default)]
pub(crate) struct ExplainRequest<'a> {
    pub metric: Option<&'a str>,
    /// Trading day whose close is explained; `None` to explain metrics.
    pub session: Option<NaiveDate>,
    pub generation: Option<GenerationId>,
    /// Instant in the past, or an earlier data version. The explanation then uses the facts, policy and rules of that
    /// time. `None` explains the current figures of the generation.
    pub known_at: Option<KnownAt>,
}

pub(crate) async fn explain_security(
    client: &mut Client,
    address: &SecurityAddress,
    request: &ExplainRequest<'_>,
) -> anyhow::Result<Explanation> {
    let known = match request.known_at {
        Some(known_at) => Some(find_version(client, known_at).await?),
        None => None,
    };
    let transaction = begin_snapshot(client).await?;
    let security = match &known {
        Some(version) => {
            let symbol = find_known_symbol(&transaction, address).await?;
            SecurityContext::load_known(&transaction, &symbol, version).await?
        }
        None => load_of_generation(&transaction, address, request.generation).await?,
    };
    let market = security.market();
    let mut explanation = metrics::explain(&security.history, &market);
    if let Some(session) = request.session {
        explanation.metrics = vec![metrics::explain_session(&security.history, &market, session)];
        explanation.limit_to_metrics(|_| true);
    } else if let Some(metric) = request.metric {
        retain_metric(&mut explanation, metric)?;
    }
    name_files(&transaction, "frames", &mut explanation).await?;
    Ok(explanation)
}

/// Symbol of an address for a look-up in an earlier version. An identifier names the security that has it now.
async fn find_known_symbol(
    transaction: &Transaction<'_>,
    address: &SecurityAddress,
) -> anyhow::Result<Symbol> {
    if let Some(symbol) = address.as_symbol() {
        return Ok(symbol);
    }
    Generation::load_served(transaction).await?;
    let found = find_symbol(transaction, address).await?;
    found.with_context(|| format!("security {address} does not exist"))
}

async fn load_of_generation(
    transaction: &Transaction<'_>,
    address: &SecurityAddress,
    generation: Option<GenerationId>,
) -> anyhow::Result<SecurityContext> {
    let id = match generation {
        Some(id) => id,
        None => transaction.query_one(ACTIVE, &[]).await?.try_get("generation")?,
    };
    let row = load_generation_row(transaction, id).await?;
    let version: String = row.try_get("method_version")?;
    if version != METHOD_VERSION {
        bail!(
            "cannot explain generation {id}: it has rules {version}, this program {METHOD_VERSION}; use the version that built it"
        );
    }
    let generation = Generation::from_row(&row)?;
    generation.set_local_search_path(transaction).await?;
    SecurityContext::find(transaction, address, &generation).await
}

/// Removes all metrics except `metric` from an explanation. Fails if the explanation does not contain `metric`.
fn retain_metric(explanation: &mut Explanation, metric: &str) -> anyhow::Result<()> {
    if !explanation.metrics.iter().any(|explained| explained.metric == metric) {
        let nearest = explanation.nearest_metric(metric).unwrap_or("none");
        bail!(
            "metric {metric} does not exist; the nearest is {nearest}; without a metric, all are explained"
        );
    }
    explanation.limit_to_metrics(|explained| explained == metric);
    Ok(())
}

sql_row! {
    #[derive(Debug, Serialize)]
    pub struct RunStateChange {
        pub run: String,
        pub state: String,
        pub reason: String,
        pub at: DateTime<Utc>,
        pub operator: String,
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ChangedMetric {
    pub metric: String,
    /// Value with the run, as text; null if unknown.
    pub value: Option<String>,
}

/// Run with observations of a security that do not count.
#[derive(Debug, Serialize)]
pub(crate) struct HiddenRun {
    #[serde(flatten)]
    pub change: RunStateChange,
    /// Metrics of the explanation that would change if the run were visible.
    pub would_change: Vec<ChangedMetric>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SecurityExplanation {
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Runs that are held or excluded and have observations of the security.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden_runs: Vec<HiddenRun>,
}

/// Finds the hidden runs with observations of the explained security, in the served generation.
pub(crate) async fn find_hidden_runs(
    client: &mut Client,
    explanation: &Explanation,
) -> anyhow::Result<Vec<HiddenRun>> {
    let transaction = begin_snapshot(client).await?;
    let generation = Generation::load_served(&transaction).await?;
    let symbol: Symbol = explanation.symbol.parse().map_err(anyhow::Error::msg)?;
    let history = FactHistory::load_once(&transaction, &generation.fact_set, &[symbol.as_str()]).await?;
    let mut runs = history.hidden_runs();
    runs.truncate(MAX_RUNS);
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let security = SecurityContext::load(&transaction, &symbol, &generation).await?;
    let market = security.market();
    let mut found = Vec::new();
    for row in transaction.query(LAST_CHANGES, &[&runs]).await? {
        let change = RunStateChange::from_row(&row)?;
        let view = View::newest().with_run(&change.run);
        let facts = history.at(&view, market.policy)?;
        let with_run = match facts.identity(symbol.as_str()) {
            Some(identity) => {
                let market = DerivationContext { rates: facts.rates(), ..market };
                metrics::explain(&facts.history(identity)?, &market).metrics
            }
            None => Vec::new(),
        };
        let differing = with_run.into_iter().filter(|with_run| {
            let same = explanation.metrics.iter().find(|metric| metric.metric == with_run.metric);
            same.is_some_and(|metric| metric.value != with_run.value)
        });
        let changed = differing.map(|metric| ChangedMetric { metric: metric.metric, value: metric.value });
        found.push(HiddenRun { change, would_change: changed.collect() });
    }
    Ok(found)
}

/// Observations with the same kind, source and outcome form a group. A group of at most this size is listed completely.
/// Of a larger group, only the first and the last observation are listed.
const MAX_SIMILAR_ROWS: usize = 3;
/// Maximum width of the columns of years.
const YEARS_WIDTH: usize = 80;
/// Minimum number of blanks between two columns of years.
const YEAR_GAP: usize = 3;

impl SecurityExplanation {
    /// Report as text. Without `has_all_rows`, only the first and the last of many similar observations are listed.
    pub(crate) fn report(&self, has_all_rows: bool) -> Report {
        let Self { explanation, hidden_runs } = self;
        let (symbol, as_of, rules) = (&explanation.symbol, explanation.as_of, &explanation.method_version);
        let years_width = output_width().map_or(YEARS_WIDTH, |width| width.min(YEARS_WIDTH));
        let most = if has_all_rows { usize::MAX } else { MAX_SIMILAR_ROWS };
        let mut report = Report::new(format!("{symbol} as of {as_of}, rules {rules}"));
        for metric in &explanation.metrics {
            let value = metric.value.as_deref().unwrap_or("null");
            let rounding = (metric.rounding != "none").then(|| format!("  rounded to {}", metric.rounding));
            let lines = [format!("  {}: {}", metric.rule, metric.formula)].into_iter().chain(rounding);
            let lines = lines.chain(describe_years(metric, years_width));
            let observations = describe_groups(metric.observations.iter().collect(), most);
            report.add_table(list(format!("{} = {value}", metric.metric), lines.chain(observations)));
        }
        // Quarantined rows have a separate list.
        let is_held = |row: &&ExplainedObservation| row.outcome.parse::<QuarantineReason>().is_ok();
        let unused: Vec<_> = explanation.unused.iter().filter(|row| !is_held(row)).collect();
        report.add_filled_table(list("not used:", describe_groups(unused, most)));
        if explanation.older_unused > 0 {
            let older = explanation.older_unused;
            report.add_fact(format!("    {older} more rows are older or of another kind"));
        }
        report
            .add_filled_table(list("quarantined:", explanation.quarantined.iter().map(describe_quarantined)));
        report.add_filled_table(list("decided:", explanation.decisions.iter().map(describe_decision)));
        if !explanation.flags.is_empty() {
            report.add_table(list(format!("flags: {}", explanation.flags.join(", ")), []));
        }
        report.add_filled_table(list("not visible:", hidden_runs.iter().flat_map(describe_hidden_run)));
        report
    }
}

fn list(title: impl Into<String>, lines: impl IntoIterator<Item = String>) -> ReportTable {
    let mut table = ReportTable::new(title, &[]);
    lines.into_iter().for_each(|line| table.add_row([line], []));
    table
}

fn describe_hidden_run(hidden: &HiddenRun) -> Vec<String> {
    let RunStateChange { run, state, reason, at, operator } = &hidden.change;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let since = at.format("%Y-%m-%d %H:%M UTC");
    let mut lines = vec![format!("    run {run}: {state} since {since} by {operator}{reason}")];
    for ChangedMetric { metric, value } in &hidden.would_change {
        lines.push(format!("        with it, {metric} would be {}", value.as_deref().unwrap_or("null")));
    }
    lines
}

fn describe_quarantined(row: &Quarantined) -> String {
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    let Quarantined { symbol, kind, reason, message, source, line, .. } = row;
    format!("    {symbol:<10} {kind:<8} {date:<10} {reason:<20} {message} (source {source}, line {line}{id})")
}

fn describe_decision(decision: &ExplainedDecision) -> String {
    let date = decision.date.map(|date| date.to_string()).unwrap_or_default();
    let id = decision.id.as_ref().map(|id| format!(" (id {id})")).unwrap_or_default();
    let revoked = if decision.revoked { ", revoked" } else { "" };
    let ExplainedDecision { verdict, kind, value, source, reason, note, .. } = decision;
    format!("    {verdict} {kind} {date} {value} from {source}{id}, quarantined as {reason}{revoked}: {note}")
}

/// Lists observations by group. Of a group with more than `most` observations, only the first and the last are listed.
/// Observations with a note form groups of their own.
fn describe_groups(mut rows: Vec<&ExplainedObservation>, most: usize) -> Vec<String> {
    let group_of = |row: &ExplainedObservation| {
        (row.kind.clone(), row.source.clone(), row.outcome.clone(), row.reason.is_empty())
    };
    if rows.len() > most {
        rows.sort_by_cached_key(|row| group_of(row));
    }
    let mut lines = Vec::new();
    for group in rows.chunk_by(|one, next| group_of(one) == group_of(next)) {
        match group {
            [first, between @ .., last] if group.len() > most => {
                let hidden =
                    format!("    … {} more rows of {} ({})", between.len(), first.source, first.outcome);
                lines.extend([describe_observation(first), hidden, describe_observation(last)]);
            }
            _ => lines.extend(group.iter().map(|row| describe_observation(row))),
        }
    }
    lines
}

/// Lists years with their totals and changes, newest first, in as many columns as fit into `width`. An asterisk marks
/// counted years. The status of the other years follows.
fn describe_years(metric: &ExplainedMetric, width: usize) -> Vec<String> {
    let text = |value: Option<ExactDecimal>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let years: Vec<_> = metric.years.iter().rev().collect();
    let longest = years.iter().map(|year| text(year.total).len()).max().unwrap_or_default();
    let describe = |year: &&ExplainedYear| {
        let (total, mark) = (text(year.total), if year.counted { '*' } else { ' ' });
        let change =
            year.change_percent.map_or(String::new(), |change| format!("{:+} %", round(change.0, 2)));
        format!("{}{mark} {total:>longest$} {change:>9}", year.year)
    };
    let cells: Vec<String> = years.iter().map(describe).collect();
    let Some(cell) = cells.first().map(String::len) else { return Vec::new() };
    let columns = ((width + YEAR_GAP).saturating_sub(4) / (cell + YEAR_GAP)).max(1);
    let height = cells.len().div_ceil(columns);
    let line = |row: usize| {
        let cells: Vec<&str> = cells.iter().skip(row).step_by(height).map(String::as_str).collect();
        format!("    {}", cells.join(&" ".repeat(YEAR_GAP))).trim_end().to_owned()
    };
    let mut lines: Vec<String> = (0..height).map(line).collect();
    let uncounted = years.iter().filter(|year| !year.counted);
    let uncounted: Vec<String> = uncounted.map(|year| format!("{} {}", year.year, year.status)).collect();
    let mut notes = vec!["* counted".to_owned()];
    notes.extend((metric.older_years > 0).then(|| format!("{} earlier years", metric.older_years)));
    notes.extend((!uncounted.is_empty()).then(|| format!("not counted: {}", uncounted.join(", "))));
    lines.push(format!("    {}", notes.join("; ")));
    lines
}

fn describe_observation(observation: &ExplainedObservation) -> String {
    let currency = observation.currency.as_deref().unwrap_or_default();
    let amount = observation.amount.as_ref().map(|amount| format!("{amount} {currency}")).unwrap_or_default();
    let date = observation.date.map(|date| date.to_string()).unwrap_or_default();
    let mut line = format!("    {:<12} {date:<10} {:>16}", observation.kind, amount.trim());
    line += &format!(" from {}", observation.source);
    let origin = match (&observation.file, observation.line) {
        // For a price observation, only the first line of its record batch is known.
        (Some(file), 1..) if observation.kind == Kind::Price.as_str() => {
            Some(format!("{file}, batch from line {}", observation.line))
        }
        (Some(file), 1..) => Some(format!("{file}:{}", observation.line)),
        // A line number means nothing without the name of its file.
        _ => None,
    };
    let revision = (observation.revision != 0).then(|| format!("revision {}", observation.revision));
    let id = observation.id.as_ref().map(|id| format!("id {id}"));
    let details: Vec<String> = [origin, id, revision].into_iter().flatten().collect();
    if !details.is_empty() {
        line += &format!(" ({})", details.join(", "));
    }
    if !observation.reason.is_empty() {
        line += &format!(": {}", observation.reason);
    }
    line
}
