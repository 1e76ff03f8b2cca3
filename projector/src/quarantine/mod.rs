//! `projector quarantine`: quarantined rows and the decisions on them.
//!
//! A decision or its revocation is an event in the log. The running projector then derives the security again.

mod args;
mod decide;

use anyhow::Context;
use market::event::DecisionVerdict;
use market::row::{Quarantined, TableRow};
use store::FromRow;
use telemetry::out;
use telemetry::report::Report;
use tokio_postgres::Client;

use crate::generation::{Generation, begin_snapshot};
use crate::report;
use args::ListQuarantineArgs;

pub(crate) use args::QuarantineCommand;

const LIST: &str = include_str!("../../queries/quarantine_list.sql");
const CANONICAL: &str = include_str!("../../queries/symbols_canonical.sql");

pub(crate) async fn run_quarantine(client: &mut Client, command: QuarantineCommand) -> anyhow::Result<()> {
    let (decided, json) = match command {
        QuarantineCommand::List(args) => return print_quarantine(client, &args).await,
        QuarantineCommand::Release(args) => {
            (decide::decide_rows(client, &args, DecisionVerdict::Release).await?, args.json)
        }
        QuarantineCommand::Confirm(args) => {
            (decide::decide_rows(client, &args, DecisionVerdict::Confirm).await?, args.json)
        }
        QuarantineCommand::Revoke(args) => (decide::revoke_decisions(client, &args).await?, args.json),
    };
    report::print_result(json, &decided, |decided| {
        let mut report = Report::new("");
        decided.iter().for_each(|one| report.add_fact(decide::describe_report(one)));
        report.add_fact("published; the running projector derives the security again");
        report
    })
}

async fn print_quarantine(client: &mut Client, args: &ListQuarantineArgs) -> anyhow::Result<()> {
    let transaction = begin_snapshot(client).await?;
    Generation::load_served(&transaction).await?;
    let mut canonical: Option<String> = None;
    if let Some(symbol) = &args.symbol {
        let row = transaction.query_opt(CANONICAL, &[&symbol.as_str()]).await?;
        canonical = row.with_context(|| format!("security {symbol} does not exist"))?.try_get(0)?;
    }
    let reason = args.reason.map(|reason| reason.as_str());
    let rows = transaction.query(LIST, &[&canonical, &reason]).await?;
    let rows: Vec<Quarantined> = rows.iter().map(Quarantined::from_row).collect::<Result<_, _>>()?;
    if !args.csv {
        return report::print_quarantine(&rows, &args.output);
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    if rows.is_empty() {
        writer.write_record(Quarantined::COLUMNS)?;
    }
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    out!("{}", String::from_utf8(writer.into_inner()?)?);
    Ok(())
}
