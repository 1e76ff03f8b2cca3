//! Report of a started stack: addresses, keys and example calls.

#![expect(clippy::print_stdout, reason = "the report is the program's output")]

use std::io::Write;

use anyhow::Result;
use reqwest::StatusCode;
use serde_json::Value;
use store::db::ANALYST_ROLE;

use super::folder::{StackFolder, environment_of_running_stack};
use super::keys::{Keys, TIERS};
use super::revisions::{self, FirstVersion};
use crate::api::Api;
use crate::binaries::Binaries;
use crate::endpoints::Endpoints;
use crate::environment;
use crate::port;
use crate::servers::Servers;

/// Maximum number of symbols that the search for a dividend payer tries.
const CANDIDATES: usize = 10;
/// Name of the variable that contains the folder of the service's programs. For this variable, `stack env` prints a
/// shell command that adds the folder to PATH.
const PROGRAMS: &str = "STACK_PROGRAMS";
/// Prefix of the variables with the addresses of the servers that a stack started.
pub(super) const OWN_SERVER: &str = "STACK_OWN_";

/// Prints shell commands that export the running stack's addresses and keys, and that add its programs to PATH.
pub fn print_environment() -> Result<()> {
    for (name, value) in environment_of_running_stack()? {
        let value = quoted(&value);
        match name.as_str() {
            PROGRAMS => {
                println!("case \":$PATH:\" in *:{value}:*) ;; *) export PATH={value}:\"$PATH\" ;; esac")
            }
            _ => println!("export {name}={value}"),
        }
    }
    Ok(())
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

pub(super) fn program_name() -> &'static str {
    if environment::read_variable("CARGO").is_some() { "cargo stack" } else { "stack" }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MetricsPorts {
    pub(super) api: u16,
    pub(super) projector: u16,
    /// Port for the metrics of `ingest watch` or `ingest pull`. The stack does not start these commands, but the user
    /// may start them later.
    pub(super) ingest: u16,
}

impl MetricsPorts {
    pub(super) fn on_free_ports() -> Result<MetricsPorts> {
        Ok(MetricsPorts {
            api: port::find_free()?,
            projector: port::find_free()?,
            ingest: port::find_free()?,
        })
    }
}

pub(super) fn environment(
    endpoints: &Endpoints,
    api: &Api,
    figures: &MetricsPorts,
    keys: &Keys,
    binaries: &Binaries,
) -> Result<Vec<(String, String)>> {
    let mut environment = endpoints.environment();
    if let Some(folder) = binaries.api.parent() {
        environment.push((PROGRAMS.to_owned(), folder.display().to_string()));
    }
    let listen = api.base_url.trim_start_matches("http://");
    environment.push(("API_LISTEN".to_owned(), listen.to_owned()));
    environment.push(("PUBLIC_URL".to_owned(), api.base_url.clone()));
    environment.push(("ANALYST_DATABASE_URL".to_owned(), endpoints.database_url_of(ANALYST_ROLE)?));
    environment.push(("API_URL".to_owned(), api.base_url.clone()));
    let ports = [
        ("API_METRICS", figures.api),
        ("PROJECTOR_METRICS", figures.projector),
        ("INGEST_METRICS", figures.ingest),
    ];
    for (name, port) in ports {
        environment.push((name.to_owned(), format!("127.0.0.1:{port}")));
    }
    for (tier, secret) in keys {
        environment.push((format!("KEY_{}", tier.to_uppercase()), secret.clone()));
    }
    Ok(environment)
}

/// Addresses of the servers that the stack started, under names with the prefix [`OWN_SERVER`].
pub(super) fn own_servers(servers: &Servers, endpoints: &Endpoints) -> Vec<(String, String)> {
    let addresses = [
        ("DATABASE_URL", &endpoints.database_url, servers.postgres.is_own()),
        ("NATS_URL", &endpoints.nats_url, servers.nats.is_own()),
    ];
    let own = addresses.into_iter().filter(|(.., is_own)| *is_own);
    own.map(|(name, address, _)| (format!("{OWN_SERVER}{name}"), address.clone())).collect()
}

/// First version of the demo market, before its revisions, for calls with `data_version` or `known_at`.
pub(super) fn first_version(folder: &StackFolder) -> Vec<(String, String)> {
    let Some(FirstVersion { data_version, known_at }) = folder.read_json(revisions::FILE) else {
        return Vec::new();
    };
    vec![("DEMO_VERSION".to_owned(), data_version), ("DEMO_KNOWN_AT".to_owned(), known_at)]
}

/// Prints the report. Its last line begins with `ready:`.
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
        println!("  curl --fail -s -H 'Authorization: Bearer {key}' '{}{path}'", api.base_url);
    }
    println!("\n`eval \"$({} env)\"` gives a shell these keys, addresses and programs.", program_name());
    println!("Ctrl-C stops everything; the data stays.");
    println!("ready: {}", api.base_url);
    std::io::stdout().flush()?;
    Ok(())
}

/// Example calls for the report. They request data of a symbol for which every call succeeds, preferably a symbol that
/// pays dividends. If the calls succeed for none of the tried symbols, the returned calls need no symbol.
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

/// Sends `calls`. Returns `Some(true)` if the last response contains a dividend amount, and `Some(false)` if it
/// contains none. Returns `None` if a call fails.
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
