//! `projector quarantine`: rows that are held back, and what people decide about them.
//!
//! A decision is an event of the log like any other: export, import and every rebuild keep it, and it is taken back by
//! another one. The projector that follows the log derives the security again.

mod args;
mod decide;
mod list;
mod publish;

use market::event::Verdict;
use telemetry::outln;
use tokio_postgres::Client;

use crate::report;

pub use args::QuarantineCommand;

/// Does what is asked for.
pub async fn run_quarantine(client: &mut Client, command: QuarantineCommand) -> anyhow::Result<()> {
    let (decided, json) = match command {
        QuarantineCommand::List(args) => return list::print_quarantine(client, &args).await,
        QuarantineCommand::Release(args) => {
            (decide::decide_rows(client, &args, Verdict::Release).await?, args.json)
        }
        QuarantineCommand::Confirm(args) => {
            (decide::decide_rows(client, &args, Verdict::Confirm).await?, args.json)
        }
        QuarantineCommand::Revoke(args) => (decide::revoke_decisions(client, &args).await?, args.json),
    };
    if json {
        return report::print_json(&decided);
    }
    for one in &decided {
        outln!("{}", decide::describe_report(one));
    }
    outln!("it is in the log; the projector that follows it derives the security again");
    Ok(())
}
