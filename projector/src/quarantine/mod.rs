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
pub async fn quarantine(client: &mut Client, command: QuarantineCommand) -> anyhow::Result<()> {
    let (decided, json) = match command {
        QuarantineCommand::List(args) => return list::list(client, &args).await,
        QuarantineCommand::Release(args) => {
            (decide::decide(client, &args, Verdict::Release).await?, args.json)
        }
        QuarantineCommand::Confirm(args) => {
            (decide::decide(client, &args, Verdict::Confirm).await?, args.json)
        }
        QuarantineCommand::Revoke(args) => (decide::revoke(client, &args).await?, args.json),
    };
    if json {
        return report::json(&decided);
    }
    for one in &decided {
        outln!("{}", decide::sentence(one));
    }
    outln!("it is in the log; the projector that follows it derives the security again");
    Ok(())
}
