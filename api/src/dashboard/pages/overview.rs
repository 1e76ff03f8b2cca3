//! `/dashboard`: plan, usage of this month, calls per day and keys. `/dashboard/usage`: all usage and refused calls.

use chrono::{TimeDelta, Utc};
use maud::{Markup, html};

use super::keys::{self, KeyFormValues};
use super::plans::plan_title;
use crate::account::keys::{ApiKey, list_keys};
use crate::account::statistics::{self, AccountUsage, CallOutcome, EndpointCalls, RefusedCalls, find_usage};
use crate::dashboard::error::PageResult;
use crate::dashboard::form::PageNotice;
use crate::dashboard::view::layout::{
    Number, Section, Text, Words, format_time, stacked_rows, stacked_table, success_message,
};
use crate::dashboard::view::{chart, format_count, format_grouped};
use crate::dashboard::visitor::AccountHolder;

/// Number of days in the chart of calls per day.
const DAYS: i64 = 14;

pub(crate) async fn show_overview(holder: AccountHolder) -> PageResult {
    let client = holder.database_client().await?;
    let used = find_usage(&client, holder.email()).await?;
    let keys = list_keys(&client, holder.account_id()).await?;
    let active: Vec<&ApiKey> = keys.iter().filter(|key| key.status == "active").collect();
    let since = Utc::now().date_naive() - TimeDelta::days(DAYS - 1);
    let calls = statistics::count_by_day(&client, holder.account_id(), since).await?;
    let body = html! {
        h1 { "Overview" }
        (success_message(PageNotice::message_for_query(&holder.visitor.query)))
        @if active.is_empty() { (first_step(&holder, keys.is_empty())) }
        div.columns {
            (plan(&used))
            (render_month_usage(&used))
        }
        @if !active.is_empty() {
            section.panel aria-labelledby="calls" {
                div.heading { h2 id="calls" { "Calls, last " (DAYS) " days" } a href="/dashboard/usage" { "All usage" } }
                @if calls.is_empty() {
                    p { "No call yet. The page of a new key shows a call that works." }
                } @else {
                    (chart::render_calls_chart(&calls, since, DAYS))
                }
            }
            section.panel aria-labelledby="keys" {
                div.heading { h2 id="keys" { (format_count(active.len(), "key", "keys")) } a href="/dashboard/keys" { "Manage keys" } }
                (keys::render_key_table(&active, false))
            }
        }
    };
    Ok(holder.render_page("Overview", Section::Overview, &body))
}

/// Panel with a form that creates a key. It is shown if the account has no active key. `is_new` is true if the account
/// has no keys at all.
fn first_step(holder: &AccountHolder, is_new: bool) -> Markup {
    html! {
        section.panel.first aria-labelledby="first" {
            h2 id="first" { @if is_new { "Create your first key" } @else { "No key is active" } }
            p { "Every call needs a key. Name the key after the program that will use it. Its secret is shown only once." }
            (keys::render_key_form(holder, None, KeyFormValues::with_name("My first key")))
        }
    }
}

fn plan(used: &AccountUsage) -> Markup {
    html! {
        section.panel aria-labelledby="plan" {
            div.heading { h2 id="plan" { (plan_title(used.tier)) " plan" } a href="/dashboard/plan" { "Change" } }
            dl {
                div { dt { "Calls a minute" } dd { (used.rate_per_minute) } }
                div { dt { "Burst" } dd { (used.burst) } }
                div { dt { "Available now" } dd { (used.available) } }
            }
        }
    }
}

/// Number of days in the statistics.
const USAGE_DAYS: i64 = 30;

pub(crate) async fn show_usage(holder: AccountHolder) -> PageResult {
    let client = holder.database_client().await?;
    let used = find_usage(&client, holder.email()).await?;
    let since = Utc::now().date_naive() - TimeDelta::days(USAGE_DAYS - 1);
    let account = holder.account_id();
    let days = statistics::count_by_day(&client, account, since).await?;
    let endpoints = statistics::count_by_endpoint(&client, account, since).await?;
    let refusals = statistics::count_refused(&client, account, since).await?;
    let body = html! {
        h1 { "Usage" }
        (render_month_usage(&used))
        (refused(&refusals))
        section.panel aria-labelledby="days" {
            h2 id="days" { "Calls a day, last " (USAGE_DAYS) " days" }
            (chart::render_calls_chart(&days, since, USAGE_DAYS))
        }
        section.panel aria-labelledby="endpoints" {
            h2 id="endpoints" { "By endpoint and key" }
            @if endpoints.is_empty() { p { "No call in these days." } } @else { (by_endpoint(&endpoints)) }
        }
        p.hint { "New calls appear here within seconds. The count of the month at the top is always exact." }
    };
    Ok(holder.render_page("Usage", Section::Usage, &body))
}

/// Renders the used part of the monthly quota as a bar.
fn render_month_usage(used: &AccountUsage) -> Markup {
    let share = (used.used.saturating_mul(1000) / used.monthly_quota.max(1)).clamp(0, 1000);
    let level = match share {
        1000.. => "over",
        800.. => "near",
        _ => "fine",
    };
    let label = format!(
        "{} of {} calls used this month",
        format_grouped(used.used),
        format_grouped(used.monthly_quota)
    );
    html! {
        section.panel aria-labelledby="month" {
            h2 id="month" { "This month" }
            p.figure { strong { (format_grouped(used.used)) } " of " (format_grouped(used.monthly_quota)) " calls" }
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

fn by_endpoint(rows: &[EndpointCalls]) -> Markup {
    html! {
        (stacked_table("Calls by endpoint and key", &[Text("Endpoint"), Text("Key"), Number("Calls"), Number("Answered"), Text("Last")], html! {
            @for row in rows {
                tr {
                    th scope="row" { code { (row.endpoint) } }
                    td.label data-label="Key" { (row.key) @if !row.last_four.is_empty() { " " span.muted { "…" (row.last_four) } } }
                    td.number data-label="Calls" { (format_grouped(row.calls)) }
                    td.number data-label="Answered" { (format_grouped(row.answered)) }
                    td data-label="Last" { (format_time(row.last_at)) }
                }
            }
        }))
    }
}

fn refused(rows: &[RefusedCalls]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section.panel aria-labelledby="refused" {
                h2 id="refused" { "Refused calls, and what to do" }
                (stacked_rows("Refused calls", rows, &[
                    (Text("What happened"), &|row| html! { (happened(row.outcome)) }),
                    (Text("Endpoint"), &|row| html! { code { (row.endpoint) } }),
                    (Number("Calls"), &|row| html! { (format_grouped(row.calls)) }),
                    (Text("Last"), &|row| format_time(row.last_at)),
                    (Words("What to do"), &|row| advice(row.outcome)),
                ]))
            }
        }
    }
}

fn happened(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Answered => "Answered",
        CallOutcome::NotFound => "Not found (404)",
        CallOutcome::ClientError => "A mistake in the call (400)",
        CallOutcome::Plan => "Not in your plan (403)",
        CallOutcome::Rate => "Too many in a minute (429)",
        CallOutcome::Quota => "The month is used up (429)",
        CallOutcome::Failed => "Failed on our side (5xx)",
    }
}

fn advice(outcome: CallOutcome) -> Markup {
    html! {
        @match outcome {
            CallOutcome::Answered => "Nothing.",
            CallOutcome::NotFound => { "Check the symbol or the path against the " a href="/docs" { "reference" } "." },
            CallOutcome::ClientError => "The response names the parameter and its valid values.",
            CallOutcome::Plan => { a href="/dashboard/plan" { "Upgrade" } " for this endpoint or the earlier dates." },
            CallOutcome::Rate => { "Wait as long as Retry-After says, or " a href="/dashboard/plan" { "upgrade" } "." },
            CallOutcome::Quota => { a href="/dashboard/plan" { "Upgrade" } " to go on at once, or wait for the next month." },
            CallOutcome::Failed => "Repeat the call; it was not counted against the month.",
        }
    }
}
