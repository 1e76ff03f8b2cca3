//! `/dashboard/log`: audit log of the account.

use maud::{Markup, html};
use serde_json::Value;

use crate::account::audit::{self, AuditEntry};
use crate::dashboard::error::PageResult;
use crate::dashboard::view::layout::{Section, Text, format_time, stacked_table};
use crate::dashboard::visitor::AccountHolder;

/// Actions in the audit log with their display names.
const ACTIONS: &str = include_str!("audit_actions.csv");

pub(crate) async fn show_audit_log(holder: AccountHolder) -> PageResult {
    let entries = audit::list_recent_entries(&*holder.database_client().await?, holder.account_id()).await?;
    let body = html! {
        h1 { "Log" }
        p.lead { "Changes of this account, its keys and its plan. The log cannot be changed." }
        (stacked_table("Log", &[Text("What"), Text("When"), Text("By"), Text("Details")], html! { @for entry in &entries { (row(entry)) } }))
        p.hint { "The newest " (entries.len()) " entries." }
    };
    Ok(holder.render_page("Log", Section::Log, &body))
}

fn row(entry: &AuditEntry) -> Markup {
    let by = match entry.actor.as_str() {
        "account" => "you",
        "visitor" => "a visitor",
        _ => "the operator",
    };
    html! {
        tr {
            th scope="row" { (action_text(&entry.action)) }
            td data-label="When" { (format_time(entry.at)) }
            td data-label="By" { (by) }
            td data-label="Details" { (describe_details(&entry.details)) }
        }
    }
}

/// Display name of an action. An unknown action is shown by its stored name.
fn action_text(action: &str) -> &str {
    let mut known = ACTIONS.lines().filter_map(|line| line.split_once(','));
    known.find(|(name, _)| *name == action).map_or(action, |(_, text)| text)
}

/// Describes those details of an audit log entry that are useful to the holder.
fn describe_details(details: &Value) -> String {
    let text = |pointer: &str| details.pointer(pointer).and_then(Value::as_str);
    let shown = [
        ("", text("/name")),
        ("…", text("/last_four")),
        ("from ", text("/address")),
        ("", text("/tier")),
        ("from ", text("/before/tier").or(text("/before"))),
        ("to ", text("/after/tier").or(text("/after"))),
        ("then ", text("/after/next_tier").filter(|_| text("/after/paid_until").is_some())),
        ("old key works for ", text("/overlap").filter(|overlap| *overlap != "0")),
    ];
    let shown: Vec<String> =
        shown.into_iter().filter_map(|(before, text)| Some(format!("{before}{}", text?))).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::describe_details;
    use serde_json::json;

    #[test]
    fn details_are_words() {
        let key = json!({ "id": 7, "name": "laptop", "last_four": "a1b2", "overlap": "24h" });
        assert_eq!(describe_details(&key), "laptop, …a1b2, old key works for 24h");
        let plan =
            json!({ "before": { "tier": "free" }, "after": { "tier": "starter", "paid_until": null } });
        assert_eq!(describe_details(&plan), "from free, to starter");
    }
}
