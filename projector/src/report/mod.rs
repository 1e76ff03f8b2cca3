//! Output of the commands, as text and JSON.

pub mod lists;

use market::event::Kind;
use market::metrics::{ExplainedDecision, ExplainedObservation};
use market::row::{QuarantineReason, Quarantined};
use market::symbol::Symbol;
use serde::Serialize;
use telemetry::{counted, outln};

use crate::generations::promote::Switchover;
use crate::policy::PolicyChange;
use crate::review::audit::{
    AuditFinding, AuditReport, CoveredSecurity, CoveredSource, FindingExample, SourceAgreement,
};
use crate::review::hidden_runs::{ChangedMetric, HiddenRun, RunStateChange, SecurityExplanation};

/// Maximum number of securities that are listed for a policy change. If more changed, `…` follows them.
const MAX_NAMED_SECURITIES: usize = 12;

/// Unused observations with the same kind, source and outcome form a group. A group of at most this size is printed
/// completely. Of a larger group, only the first and the last observation are printed.
const MAX_SIMILAR_ROWS: usize = 3;

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    outln!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints a result: as JSON if `json` is true, otherwise as text by calling `print_text`.
pub fn print_result<T: Serialize>(json: bool, result: &T, print_text: impl FnOnce(&T)) -> anyhow::Result<()> {
    if json {
        return print_json(result);
    }
    print_text(result);
    Ok(())
}

/// Prints the result of `projector audit`.
pub fn print_audit(audit: &AuditReport) {
    let AuditReport { generation, sequence, as_of, method_version, .. } = audit;
    let securities = counted(audit.securities, "security");
    outln!(
        "generation {generation} as of {as_of} at sequence {sequence}, rules {method_version}, {securities}"
    );
    let (found, nothing): (Vec<&AuditFinding>, Vec<&AuditFinding>) =
        audit.findings.iter().partition(|finding| finding.count > 0);
    for finding in found {
        let topic = finding.topic.as_ref().map(|topic| format!(": {topic}")).unwrap_or_default();
        outln!("\n{:>6}  {}{topic}", finding.count, finding.title);
        for FindingExample { symbol, seen } in &finding.first {
            outln!("        {symbol:<10} {seen}");
        }
        let shown = i64::try_from(finding.first.len()).unwrap_or(finding.count);
        if finding.count > shown {
            outln!("        … and {} more", finding.count - shown);
        }
        outln!("        → {}", finding.next);
    }
    if !nothing.is_empty() {
        let titles: Vec<&str> = nothing.iter().map(|finding| finding.title).collect();
        outln!("\nno findings: {}", titles.join("; "));
    }
    for SourceAgreement { source, ex_dates, agreeing } in &audit.adjusted_closes {
        outln!("adjusted closes of {source}: {agreeing} of {ex_dates} ex-dates agree with the price factors");
    }
    for CoveredSource { kind, source, by, rows, securities, first } in &audit.covered {
        let (rows, of) = (counted(rows, "row"), counted(securities, "security"));
        let worst: Vec<String> =
            first.iter().map(|CoveredSecurity { symbol, rows }| format!("{symbol} {rows}")).collect();
        outln!("{by} covers {kind} rows of {source}: {rows} of {of}; most: {}", worst.join(", "));
    }
}

/// Prints the result of `projector promote` or `projector rollback`.
pub fn print_switchover(switched: &Switchover) {
    let Switchover { served, before, sequence } = switched;
    outln!("generation {served} is served at sequence {sequence}; before: {before}");
}

/// Prints the result of `projector policy set` or `projector policy remove`.
pub fn print_policy_change(change: &PolicyChange) {
    let first: Vec<&str> = change.securities.iter().take(MAX_NAMED_SECURITIES).map(Symbol::as_str).collect();
    let more = if change.securities.len() > MAX_NAMED_SECURITIES { ", …" } else { "" };
    match (change.securities.len(), change.applied) {
        (0, _) => {
            tracing::warn!("no published row changes: no security has differing rows from several sources")
        }
        (count, true) => outln!("changes {}: {}{more}", counted(count, "security"), first.join(", ")),
        (count, false) => outln!("would change {}: {}{more}", counted(count, "security"), first.join(", ")),
    }
    match (change.applied, change.dry_run) {
        (true, _) => outln!("the projector changes them with its next transaction"),
        (false, false) => {
            outln!(
                "the next generation follows the change (projector rebuild, diff, promote); to apply it at once, use --now"
            )
        }
        (false, true) => {}
    }
}

/// Prints the result of `projector explain`.
pub fn print_explanation(found: &SecurityExplanation) {
    let SecurityExplanation { explanation, hidden_runs } = found;
    outln!("{} as of {}, rules {}", explanation.symbol, explanation.as_of, explanation.method_version);
    for metric in &explanation.metrics {
        outln!("\n{} = {}", metric.metric, metric.value.as_deref().unwrap_or("null"));
        outln!("  {}: {}", metric.rule, metric.formula);
        if metric.rounding != "none" {
            outln!("  rounded to {}", metric.rounding);
        }
        metric.observations.iter().for_each(print_observation);
    }
    // Quarantined rows are printed in a separate list.
    let is_held = |row: &&ExplainedObservation| row.outcome.parse::<QuarantineReason>().is_ok();
    let mut unused: Vec<_> = explanation.unused.iter().filter(|row| !is_held(row)).collect();
    if !unused.is_empty() {
        outln!("\nnot used:");
        let group_of =
            |row: &ExplainedObservation| (row.kind.clone(), row.source.clone(), row.outcome.clone());
        unused.sort_by_key(|row| group_of(row));
        unused.chunk_by(|one, next| group_of(one) == group_of(next)).for_each(print_unused);
    }
    if explanation.older_unused > 0 {
        outln!("    {} more rows are older or of another kind", explanation.older_unused);
    }
    if !explanation.quarantined.is_empty() {
        outln!("\nquarantined:");
        explanation.quarantined.iter().for_each(print_quarantined);
    }
    if !explanation.decisions.is_empty() {
        outln!("\ndecided:");
        explanation.decisions.iter().for_each(print_decision);
    }
    if !explanation.flags.is_empty() {
        outln!("\nflags: {}", explanation.flags.join(", "));
    }
    if !hidden_runs.is_empty() {
        outln!("\nnot visible:");
        hidden_runs.iter().for_each(print_hidden_run);
    }
}

fn print_hidden_run(hidden: &HiddenRun) {
    let RunStateChange { run, state, reason, at, operator } = &hidden.change;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    outln!("    run {run}: {state} since {} by {operator}{reason}", at.format("%Y-%m-%d %H:%M UTC"));
    for ChangedMetric { metric, value } in &hidden.would_change {
        outln!("        with it, {metric} would be {}", value.as_deref().unwrap_or("null"));
    }
}

fn print_quarantined(row: &Quarantined) {
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    let Quarantined { symbol, kind, reason, message, source, line, .. } = row;
    outln!("    {symbol:<10} {kind:<8} {date:<10} {reason:<20} {message} (source {source}, line {line}{id})");
}

fn print_decision(decision: &ExplainedDecision) {
    let date = decision.date.map(|date| date.to_string()).unwrap_or_default();
    let id = decision.id.as_ref().map(|id| format!(" (id {id})")).unwrap_or_default();
    let revoked = if decision.revoked { ", revoked" } else { "" };
    let ExplainedDecision { verdict, kind, value, source, reason, note, .. } = decision;
    outln!("    {verdict} {kind} {date} {value} from {source}{id}, quarantined as {reason}{revoked}: {note}");
}

/// Prints a group of unused observations, which have the same kind, source and outcome. If the group has more than
/// [`MAX_SIMILAR_ROWS`] observations, prints only the first and the last one.
fn print_unused(group: &[&ExplainedObservation]) {
    let (first, last) = match group.len() {
        0..=MAX_SIMILAR_ROWS => (group, &[][..]),
        count => (&group[..1], &group[count - 1..]),
    };
    first.iter().for_each(|row| print_observation(row));
    if !last.is_empty() {
        outln!("    … {} more rows of {} ({})", group.len() - 2, group[0].source, group[0].outcome);
    }
    last.iter().for_each(|row| print_observation(row));
}

fn print_observation(observation: &ExplainedObservation) {
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
    outln!("{line}");
}
