//! `projector quarantine`: quarantined rows and the decisions on them.
//!
//! A decision is an event in the log, so that exports, imports and rebuilds keep it. A later event can revoke the
//! decision. After each of these events, the running projector derives the security again.

mod args;
mod decide;
mod list;
mod publish;

use market::event::DecisionVerdict;
use telemetry::outln;
use tokio_postgres::Client;

use crate::report;

pub use args::QuarantineCommand;

/// Runs a quarantine command.
pub async fn run_quarantine(client: &mut Client, command: QuarantineCommand) -> anyhow::Result<()> {
    let (decided, json) = match command {
        QuarantineCommand::List(args) => return list::print_quarantine(client, &args).await,
        QuarantineCommand::Release(args) => {
            (decide::decide_rows(client, &args, DecisionVerdict::Release).await?, args.json)
        }
        QuarantineCommand::Confirm(args) => {
            (decide::decide_rows(client, &args, DecisionVerdict::Confirm).await?, args.json)
        }
        QuarantineCommand::Revoke(args) => (decide::revoke_decisions(client, &args).await?, args.json),
    };
    if json {
        return report::print_json(&decided);
    }
    for one in &decided {
        outln!("{}", decide::describe_report(one));
    }
    outln!("published; the running projector derives the security again");
    Ok(())
}
