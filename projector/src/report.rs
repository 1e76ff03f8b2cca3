//! Text and JSON output of the commands.

use market::metrics::rules::RuleParameter;
use market::metrics::{ExplainedDecision, ExplainedObservation, Explanation};
use market::row::{QuarantineReason, Quarantined};
use market::symbol::Symbol;
use serde::Serialize;
use telemetry::outln;

use crate::apply::dead_letters::DeadLetterEntry;
use crate::generations::promote::{GenerationSummary, Switchover};
use crate::policy::{self, PolicyChange, RuleState};
use crate::review::audit::{AuditFinding, AuditReport};

/// Maximum number of securities in one line.
const MAX_NAMED_SECURITIES: usize = 12;

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    outln!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints a line.
pub fn print_line(text: &str) {
    outln!("{text}");
}

/// Prints `projector list`.
pub fn print_generations(listed: &[GenerationSummary]) {
    outln!("generation  state     rules    facts      sequence  lag  as of       ");
    for one in listed {
        let mark = if one.served {
            "served"
        } else if one.previous {
            "previous"
        } else {
            ""
        };
        let as_of = one.as_of.map(|date| date.to_string()).unwrap_or_default();
        outln!(
            "{:<11} {:<9} {:<8} {:<10} {:<9} {:<4} {as_of:<10} {mark}",
            one.generation,
            one.state,
            one.method_version,
            one.fact_set,
            one.sequence,
            one.lag_events
        );
        for (name, value) in &one.rules {
            outln!("    {name} = {value}");
        }
        if let Some(note) = &one.note {
            outln!("    {note}");
        }
    }
}

/// Prints `projector rules`.
pub fn print_rules(parameters: &[RuleParameter]) {
    outln!("{:<34} {:<6} {:>11}  {:<27} meaning", "parameter", "rule", "default", "allowed");
    for one in parameters {
        let allowed = format!("{} to {} {}", one.least, one.most, one.unit);
        outln!(
            "{:<34} {:<6} {:>11}  {allowed:<27} {}",
            one.name,
            one.rule,
            one.default.to_string(),
            one.meaning
        );
    }
}

/// Prints `projector audit`.
pub fn print_audit(audit: &AuditReport) {
    outln!(
        "generation {} as of {} at sequence {}, rules {}, {} securities",
        audit.generation,
        audit.as_of,
        audit.sequence,
        audit.method_version,
        audit.securities
    );
    let (found, nothing): (Vec<&AuditFinding>, Vec<&AuditFinding>) =
        audit.findings.iter().partition(|finding| finding.count > 0);
    for finding in found {
        let topic = finding.topic.as_ref().map(|topic| format!(": {topic}")).unwrap_or_default();
        outln!("\n{:>6}  {}{topic}", finding.count, finding.title);
        finding
            .first
            .iter()
            .for_each(|observation| outln!("        {:<10} {}", observation.symbol, observation.seen));
        let shown = i64::try_from(finding.first.len()).unwrap_or(finding.count);
        if finding.count > shown {
            outln!("        … and {} more", finding.count - shown);
        }
        outln!("        → {}", finding.next);
    }
    if !nothing.is_empty() {
        outln!(
            "\nno findings: {}",
            nothing.iter().map(|finding| finding.title).collect::<Vec<_>>().join("; ")
        );
    }
    for source in &audit.adjusted_closes {
        outln!(
            "adjusted closes of {}: {} of {} ex-dates agree with the price factors",
            source.source,
            source.agreeing,
            source.ex_dates
        );
    }
}

/// Prints `projector promote` and `rollback`.
pub fn print_switchover(switched: &Switchover) {
    outln!(
        "generation {} is served at sequence {}; before: {}",
        switched.served,
        switched.sequence,
        switched.before
    );
}

/// Prints `projector policy list`.
pub fn print_policy(listed: &[policy::ListedRule]) {
    if listed.is_empty() {
        outln!("no policy: the newest source wins");
    }
    for policy::ListedRule { rule, standing } in listed {
        let day = |date: Option<chrono::NaiveDate>| date.map_or("…".to_owned(), |date| date.to_string());
        let standing = match standing {
            RuleState::Served => "",
            RuleState::Waits => "  followed by the next generation",
            RuleState::Ends => "  removed with the next generation",
        };
        outln!(
            "{:<13} {:<20} {} to {}  rank {}{standing}",
            rule.kind,
            rule.source,
            day(rule.from),
            day(rule.to),
            rule.rank
        );
    }
}

/// Prints `projector policy set` and `remove`.
pub fn print_policy_change(change: &PolicyChange) {
    let first: Vec<&str> = change.securities.iter().take(MAX_NAMED_SECURITIES).map(Symbol::as_str).collect();
    let more = if change.securities.len() > MAX_NAMED_SECURITIES { ", …" } else { "" };
    match (change.securities.len(), change.applied) {
        (0, _) => {
            tracing::warn!("no published row changes: no security has differing rows from several sources")
        }
        (count, true) => outln!("{count} securities change: {}{more}", first.join(", ")),
        (count, false) => outln!("{count} securities would change: {}{more}", first.join(", ")),
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

/// Prints `projector dead-letters list` and `show`.
pub fn print_dead_letters(letters: &[DeadLetterEntry], whole: bool) {
    if letters.is_empty() {
        outln!("no dead letters");
    }
    for one in letters {
        let place = [one.source.clone(), one.file.clone(), one.line.map(|line| format!("line {line}"))];
        let place: Vec<String> = place.into_iter().flatten().collect();
        outln!(
            "{}/{} {} {} [{}] {}",
            one.sequence,
            one.item,
            one.status,
            one.code,
            place.join(" "),
            one.reason
        );
        if whole {
            outln!("    {}", one.payload);
        }
    }
}

/// Prints `projector explain`.
pub fn print_explanation(explanation: &Explanation) {
    outln!("{} as of {}, rules {}", explanation.symbol, explanation.as_of, explanation.method_version);
    for metric in &explanation.metrics {
        outln!("\n{} = {}", metric.metric, metric.value.as_deref().unwrap_or("null"));
        outln!("  {}: {}", metric.rule, metric.formula);
        outln!("  {}", metric.rounding);
        metric.observations.iter().for_each(print_observation);
    }
    // Quarantined rows are listed separately.
    let is_held = |row: &&ExplainedObservation| row.outcome.parse::<QuarantineReason>().is_ok();
    let unused: Vec<_> = explanation.unused.iter().filter(|row| !is_held(row)).collect();
    if !unused.is_empty() {
        outln!("\nnot used:");
        unused.into_iter().for_each(print_observation);
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
}

/// Prints one quarantined row.
pub(crate) fn print_quarantined(row: &Quarantined) {
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    outln!(
        "    {:<10} {:<8} {date:<10} {:<20} {} (source {}, line {}{id})",
        row.symbol,
        row.kind,
        row.reason,
        row.message,
        row.source,
        row.line
    );
}

fn print_decision(decision: &ExplainedDecision) {
    let date = decision.date.map(|date| date.to_string()).unwrap_or_default();
    let id = decision.id.as_ref().map(|id| format!(" (id {id})")).unwrap_or_default();
    let revoked = if decision.revoked { ", revoked" } else { "" };
    outln!(
        "    {} {} {date} {} from {}{id}, quarantined as {}{revoked}: {}",
        decision.verdict,
        decision.kind,
        decision.value,
        decision.source,
        decision.reason,
        decision.note
    );
}

fn print_observation(observation: &ExplainedObservation) {
    let amount = observation.amount.as_ref().map(ToString::to_string).unwrap_or_default();
    let date = observation.date.map(|date| date.to_string()).unwrap_or_default();
    outln!(
        "    {:<12} {date:<10} {amount:>12} {} from {} (id {}, revision {}): {}",
        observation.kind,
        observation.currency.as_deref().unwrap_or_default(),
        observation.source,
        observation.id.as_deref().unwrap_or("none"),
        observation.revision,
        observation.reason
    );
}
