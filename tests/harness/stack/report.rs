//! What the stack prints for its user: addresses, keys, calls to try.

#![expect(clippy::print_stdout, reason = "the report is the program's output")]

use std::io::Write;

use anyhow::Result;
use reqwest::StatusCode;
use serde_json::Value;
use store::db::ANALYST_ROLE;

use super::folder::environment_of_running_stack;
use super::keys::{Keys, TIERS};
use crate::api::Api;
use crate::endpoints::Endpoints;
use crate::port;

/// How many symbols are tried for one that pays dividends.
const CANDIDATES: usize = 10;

/// Prints shell lines that export the running stack's addresses and keys.
pub fn print_environment() -> Result<()> {
    for (name, value) in environment_of_running_stack()? {
        println!("export {name}='{}'", value.replace('\'', r"'\''"));
    }
    Ok(())
}

/// The ports on which the programs tell their figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    pub(super) api: u16,
    pub(super) projector: u16,
}

impl Figures {
    pub(super) fn on_free_ports() -> Result<Figures> {
        Ok(Figures { api: port::free()?, projector: port::free()? })
    }
}

pub(super) fn environment(
    endpoints: &Endpoints,
    api: &Api,
    figures: &Figures,
    keys: &Keys,
) -> Result<Vec<(String, String)>> {
    let mut environment = endpoints.environment();
    environment.push(("ANALYST_DATABASE_URL".to_owned(), endpoints.database_url_of(ANALYST_ROLE)?));
    environment.push(("API_URL".to_owned(), api.base_url.clone()));
    for (name, port) in [("API_METRICS", figures.api), ("PROJECTOR_METRICS", figures.projector)] {
        environment.push((name.to_owned(), format!("127.0.0.1:{port}")));
    }
    for (tier, secret) in keys {
        environment.push((format!("KEY_{}", tier.to_uppercase()), secret.clone()));
    }
    Ok(environment)
}

/// Ends with the line that says that everything serves.
pub(super) async fn print(api: &Api, keys: &Keys) -> Result<()> {
    let key = keys.get("professional").map(String::as_str).unwrap_or_default();
    let calls = calls_to_try(api, key).await?;
    println!("\ndashboard: {}  (sign up there)", api.base_url);
    println!("base URL:  {}/v1\n\nAPI keys:", api.base_url);
    for tier in TIERS {
        println!("  {tier:<13} {}", keys.get(tier).map(String::as_str).unwrap_or_default());
    }
    println!("\ntry:");
    for path in calls {
        println!("  curl -s -H 'Authorization: Bearer {key}' '{}{path}'", api.base_url);
    }
    println!("\n`cargo stack env` prints these for a shell; Ctrl-C stops everything.");
    println!("ready: {}", api.base_url);
    std::io::stdout().flush()?;
    Ok(())
}

/// Calls that were answered with 200 just now.
async fn calls_to_try(api: &Api, key: &str) -> Result<Vec<String>> {
    let listed = api.get(&format!("/v1/stocks?limit={CANDIDATES}"), Some(key)).await?;
    let mut found = Vec::new();
    if listed.status == StatusCode::OK {
        collect_symbols(&listed.json()?, &mut found);
    }
    let mut answering = None;
    for symbol in found {
        let calls = ["quote", "metrics", "dividends"].map(|what| format!("/v1/stocks/{symbol}/{what}"));
        match pays_dividends(api, key, &calls).await? {
            Some(true) => return Ok(calls.to_vec()),
            Some(false) => answering = answering.or(Some(calls.to_vec())),
            None => {}
        }
    }
    Ok(answering.unwrap_or_else(|| vec!["/v1/health".to_owned(), "/v1/stocks".to_owned()]))
}

/// Whether the last call's answer holds an amount; none when not every call is answered.
async fn pays_dividends(api: &Api, key: &str, calls: &[String]) -> Result<Option<bool>> {
    let mut last = String::new();
    for call in calls {
        let reply = api.get(call, Some(key)).await?;
        if reply.status != StatusCode::OK {
            return Ok(None);
        }
        last = reply.text();
    }
    Ok(Some(last.contains("\"amount\"")))
}

fn collect_symbols(answer: &Value, found: &mut Vec<String>) {
    match answer {
        Value::Object(fields) => {
            found.extend(fields.get("symbol").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect_symbols(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_symbols(value, found)),
        _ => {}
    }
}
