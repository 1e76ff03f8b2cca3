//! `projector expect`: limits of the gate, by source and kind. Without a setting, each expectation has its default.

use std::collections::BTreeMap;

use anyhow::ensure;
use clap::{Args, Subcommand};
use market::decimal::ExactDecimal;
use market::event::{Kind, parse_source_name};
use market::expectation::Expectation;
use rust_decimal::Decimal;
use serde::Serialize;
use store::{FromRow, find_rows, sql_row};
use telemetry::outln;
use telemetry::report::print_json;
use telemetry::table::{Column, ListArgs, Table};
use tokio_postgres::{Client, GenericClient};

const LIMITS: &str = include_str!("../../../queries/gate/limits.sql");
const SET: &str = include_str!("../../../queries/gate/set.sql");
const RESET: &str = include_str!("../../../queries/gate/reset.sql");

#[derive(Debug, Subcommand)]
pub(crate) enum ExpectCommand {
    /// List the expectations with their defaults, and the limits that were set
    List(ListArgs),
    /// Set the limit of an expectation for a source and a kind of rows
    Set {
        #[command(flatten)]
        key: ExpectationKey,
        /// Number, or `off`
        #[arg(value_parser = parse_limit)]
        limit: Limit,
    },
    /// Use the default of an expectation again
    Reset {
        /// Source, as in ingest load --source
        source: String,
        /// Kind of rows; default: all
        kind: Option<Kind>,
        /// Name of the expectation; default: all
        expectation: Option<Expectation>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExpectationKey {
    /// Source, as in ingest load --source
    #[arg(value_parser = parse_source_name)]
    source: String,
    /// Kind of rows, as in the summary of a held load
    kind: Kind,
    /// Name of the expectation
    expectation: Expectation,
}

/// Limit of an expectation; `None` if it is off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(Option<Decimal>);

fn parse_limit(text: &str) -> Result<Limit, String> {
    if text == "off" {
        return Ok(Limit(None));
    }
    let number = text.parse::<Decimal>().map_err(|_| "must be a number or off".to_owned())?;
    Ok(Limit(Some(number)))
}

sql_row! {
    #[derive(Debug, Serialize)]
    struct LimitRow {
        source: String,
        kind: Kind,
        expectation: Expectation,
        limit_value: Option<ExactDecimal>,
    }
}

/// Limits of one source.
pub(crate) struct Limits(BTreeMap<(Kind, Expectation), Option<Decimal>>);

impl Limits {
    pub(crate) async fn load(client: &impl GenericClient, source: &str) -> anyhow::Result<Self> {
        let mut limits = BTreeMap::new();
        for row in client.query(LIMITS, &[&Some(source)]).await? {
            let LimitRow { kind, expectation, limit_value, .. } = LimitRow::from_row(&row)?;
            limits.insert((kind, expectation), limit_value.map(|limit| limit.0));
        }
        Ok(Self(limits))
    }

    /// Limit of an expectation; `None` if it is off.
    pub(crate) fn get(&self, expectation: Expectation, kind: Kind) -> Option<Decimal> {
        let set = self.0.get(&(kind, expectation)).copied();
        set.unwrap_or_else(|| Some(expectation.default_limit()))
    }
}

pub(crate) async fn run_expect(client: &Client, command: ExpectCommand) -> anyhow::Result<()> {
    match command {
        ExpectCommand::List(output) => return list_limits(client, &output).await,
        ExpectCommand::Set { key: ExpectationKey { source, kind, expectation }, limit: Limit(limit) } => {
            let can_be_met =
                expectation.is_maximum() || limit.is_none_or(|limit| limit <= Decimal::ONE_HUNDRED);
            ensure!(can_be_met, "cannot set the limit: {expectation} is a percentage of at most 100");
            let limit = limit.map(ExactDecimal);
            client.execute(SET, &[&source, &kind, &expectation.as_str(), &limit]).await?;
            let limit = limit.map_or("off".to_owned(), |limit| limit.to_string());
            outln!("{expectation} of {kind} from {source}: {limit}");
        }
        ExpectCommand::Reset { source, kind, expectation } => {
            let name = expectation.map(Expectation::as_str);
            let reset = client.execute(RESET, &[&source, &kind.map(Kind::as_str), &name]).await?;
            outln!("{reset} limits of {source} have their defaults again");
        }
    }
    Ok(())
}

async fn list_limits(client: &Client, output: &ListArgs) -> anyhow::Result<()> {
    let set: Vec<LimitRow> = find_rows(client, LIMITS, &[&None::<&str>]).await?;
    let default = |expectation: &Expectation| (*expectation, ExactDecimal(expectation.default_limit()));
    if output.json {
        let defaults: BTreeMap<_, _> = Expectation::ALL.iter().map(default).collect();
        return Ok(print_json(&serde_json::json!({ "defaults": defaults, "set": set }))?);
    }
    let columns = ["expectation", "source", "kind", "limit", "meaning"].map(Column::Text);
    let mut table = Table::new(["limit", "limits"], &columns, output.max_rows());
    for (expectation, limit) in Expectation::ALL.iter().map(default) {
        let name = expectation.to_string();
        table.add_row([
            name,
            "*".to_owned(),
            "*".to_owned(),
            limit.to_string(),
            expectation.meaning().to_owned(),
        ]);
    }
    for LimitRow { source, kind, expectation, limit_value } in set {
        let limit = limit_value.map_or("off".to_owned(), |limit| limit.to_string());
        table.add_row([expectation.to_string(), source, kind.to_string(), limit, String::new()]);
    }
    table.print("no limits");
    Ok(())
}
