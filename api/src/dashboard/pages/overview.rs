//! `/dashboard`: plan, usage of this month, calls per day and keys. Without an active key, a form for a new key
//! replaces calls and keys.

use chrono::{TimeDelta, Utc};
use maud::{Markup, html};

use crate::account::keys::{ApiKey, list_keys};
use crate::account::statistics::{self, AccountUsage, find_usage};
use crate::dashboard::error::PageResult;
use crate::dashboard::pages::keys::{self, KeyFormValues};
use crate::dashboard::pages::plans::plan_title;
use crate::dashboard::pages::usage::render_month_usage;
use crate::dashboard::session::visitor::AccountHolder;
use crate::dashboard::view::chart;
use crate::dashboard::view::layout::{Section, format_count};

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
                div.heading { h2 id="keys" { (format_count(active.iter().map(|_| 1).sum(), "key", "keys")) } a href="/dashboard/keys" { "Manage keys" } }
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
