//! Report of the explanation of a security.

use market::event::Kind;
use market::metrics::{ExplainedDecision, ExplainedObservation};
use market::row::{QuarantineReason, Quarantined};
use telemetry::report::{Report, ReportTable};

use super::explain::{ChangedMetric, HiddenRun, RunStateChange, SecurityExplanation};

/// Unused observations with the same kind, source and outcome form a group. A group of at most this size is listed
/// completely. Of a larger group, only the first and the last observation are listed.
const MAX_SIMILAR_ROWS: usize = 3;

impl SecurityExplanation {
    pub(crate) fn report(&self) -> Report {
        let Self { explanation, hidden_runs } = self;
        let (symbol, as_of, rules) = (&explanation.symbol, explanation.as_of, &explanation.method_version);
        let mut report = Report::new(format!("{symbol} as of {as_of}, rules {rules}"));
        for metric in &explanation.metrics {
            let value = metric.value.as_deref().unwrap_or("null");
            let rounding = (metric.rounding != "none").then(|| format!("  rounded to {}", metric.rounding));
            let lines = [format!("  {}: {}", metric.rule, metric.formula)].into_iter().chain(rounding);
            let observations = metric.observations.iter().map(describe_observation);
            report.add_table(list(format!("{} = {value}", metric.metric), lines.chain(observations)));
        }
        // Quarantined rows have a separate list.
        let is_held = |row: &&ExplainedObservation| row.outcome.parse::<QuarantineReason>().is_ok();
        let mut unused: Vec<_> = explanation.unused.iter().filter(|row| !is_held(row)).collect();
        let group_of =
            |row: &ExplainedObservation| (row.kind.clone(), row.source.clone(), row.outcome.clone());
        unused.sort_by_key(|row| group_of(row));
        let groups = unused.chunk_by(|one, next| group_of(one) == group_of(next));
        report.add_filled_table(list("not used:", groups.flat_map(describe_unused)));
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

fn describe_unused(group: &[&ExplainedObservation]) -> Vec<String> {
    let (first, last) = (group[0], group[group.len() - 1]);
    if group.len() <= MAX_SIMILAR_ROWS {
        return group.iter().map(|row| describe_observation(row)).collect();
    }
    let between = format!("    … {} more rows of {} ({})", group.len() - 2, first.source, first.outcome);
    vec![describe_observation(first), between, describe_observation(last)]
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
