//! `/dashboard/usage`: monthly quota, calls by day and endpoint, and refused calls.

use axum::response::Response;
use chrono::{TimeDelta, Utc};
use maud::{Markup, html};

use crate::account::statistics::{self, OfEndpoint, Outcome, Refusal};
use crate::account::usage::{Usage, usage};
use crate::dashboard::error::PageError;
use crate::dashboard::session::visitor::Holder;
use crate::dashboard::view::chart;
use crate::dashboard::view::layout::{Section, grouped, moment};

/// Days in the statistics.
const DAYS: i64 = 30;

pub(crate) async fn show(holder: Holder) -> Result<Response, PageError> {
    let client = holder.client().await?;
    let used = usage(&client, holder.email()).await?;
    let since = Utc::now().date_naive() - TimeDelta::days(DAYS - 1);
    let account = holder.account();
    let days = statistics::by_day(&client, account, since).await?;
    let endpoints = statistics::by_endpoint(&client, account, since).await?;
    let refusals = statistics::refusals(&client, account, since).await?;
    let body = html! {
        h1 { "Usage" }
        (month(&used))
        (refused(&refusals))
        section.panel aria-labelledby="days" {
            h2 id="days" { "Calls a day, last " (DAYS) " days" }
            (chart::of_days(&days, since, DAYS))
        }
        section.panel aria-labelledby="endpoints" {
            h2 id="endpoints" { "By endpoint and key" }
            @if endpoints.is_empty() { p { "No call in these days." } } @else { (by_endpoint(&endpoints)) }
        }
        p.hint { "Calls show up here within seconds. The month's count at the top is exact at once." }
    };
    Ok(holder.page("Usage", Section::Usage, &body))
}

/// Monthly quota as a bar, with its start and end.
pub(crate) fn month(used: &Usage) -> Markup {
    let share = (used.current.saturating_mul(1000) / used.limit.max(1)).clamp(0, 1000);
    let level = if share >= 1000 {
        "over"
    } else if share >= 800 {
        "near"
    } else {
        "fine"
    };
    let label = format!("{} of {} calls used this month", grouped(used.current), grouped(used.limit));
    html! {
        section.panel aria-labelledby="month" {
            h2 id="month" { "This month" }
            p.figure { strong { (grouped(used.current)) } " of " (grouped(used.limit)) " calls" }
            svg class={ "month " (level) } role="img" aria-label=(label) viewBox="0 0 1000 20" preserveAspectRatio="none" {
                rect.track x="0" y="0" width="1000" height="20" {}
                rect.filled x="0" y="0" width=(share) height="20" {}
            }
            div.ends {
                span { "from " (used.month.format("%-d %B")) }
                span { "starts anew " (used.resets_at.format("%-d %B")) ", UTC" }
            }
            @if share >= 1000 {
                p.alert { "The month's calls are used up, so further ones are refused until then. " a href="/dashboard/plan" { "Upgrade to go on now" } "." }
            }
        }
    }
}

fn by_endpoint(rows: &[OfEndpoint]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Calls by endpoint and key" {
            table.stack {
                thead { tr { th scope="col" { "Endpoint" } th scope="col" { "Key" } th.number scope="col" { "Calls" } th.number scope="col" { "Answered" } th scope="col" { "Last" } } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { code { (row.endpoint) } }
                            td.label data-label="Key" { (row.key) @if !row.last_four.is_empty() { " " span.muted { "…" (row.last_four) } } }
                            td.number data-label="Calls" { (grouped(row.calls)) }
                            td.number data-label="Answered" { (grouped(row.answered)) }
                            td data-label="Last" { (moment(row.last_at)) }
                        }
                    }
                }
            }
        }
    }
}

fn refused(rows: &[Refusal]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section.panel aria-labelledby="refused" {
                h2 id="refused" { "Refused calls, and what to do" }
                div.scroll tabindex="0" role="region" aria-label="Refused calls" {
                    table.stack {
                        thead { tr { th scope="col" { "What happened" } th scope="col" { "Endpoint" } th.number scope="col" { "Calls" } th scope="col" { "Last" } th scope="col" { "What to do" } } }
                        tbody {
                            @for row in rows {
                                tr {
                                    th scope="row" { (happened(row.outcome)) }
                                    td data-label="Endpoint" { code { (row.endpoint) } }
                                    td.number data-label="Calls" { (grouped(row.calls)) }
                                    td data-label="Last" { (moment(row.last_at)) }
                                    td.words data-label="What to do" { (advice(row.outcome)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn happened(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "Answered",
        Outcome::NotFound => "Not found (404)",
        Outcome::Mistake => "A mistake in the call (400)",
        Outcome::Plan => "Not in your plan (403)",
        Outcome::Rate => "Too many in a minute (429)",
        Outcome::Quota => "The month is used up (429)",
        Outcome::Failed => "Failed on our side (5xx)",
    }
}

fn advice(outcome: Outcome) -> Markup {
    html! {
        @match outcome {
            Outcome::Answered => "Nothing.",
            Outcome::NotFound => { "Check the symbol or the path against the " a href="/docs" { "reference" } "." },
            Outcome::Mistake => "The answer names the parameter and what it takes.",
            Outcome::Plan => { a href="/dashboard/plan" { "Upgrade" } " for this endpoint or the earlier dates." },
            Outcome::Rate => { "Wait as long as Retry-After says, or " a href="/dashboard/plan" { "upgrade" } "." },
            Outcome::Quota => { a href="/dashboard/plan" { "Upgrade" } " to go on at once, or wait for the next month." },
            Outcome::Failed => "Repeat the call; it was not counted against the month.",
        }
    }
}
