//! Command line of the projector: execution of its commands, with logging, shutdown and exit codes.
//!
//! The command line is part of the library. The compiler generates the code of an `async fn` in the crate that awaits
//! it. If `main.rs` awaited the commands, the whole program would be compiled twice.

pub(crate) mod command;
mod status;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use store::db::{self, DbError, error_chain};
use telemetry::command_line::HiddenOptions;
use telemetry::listener::MetricsSettings;
use telemetry::report::{Report, print_json, print_result};
use telemetry::table::ListArgs;
use telemetry::{Shutdown, outln};
use tokio_postgres::Client;

use crate::apply::run_records::find_run;
use crate::apply::{self, retry};
use crate::cli::command::{Arguments, Command, DeadLetterCommand, HealthArgs, PolicyCommand, SourceCommand};
use crate::cli::status::print_status;
use crate::daemon::run::run_projector;
use crate::error::RunError;
use crate::generations::rebuild::rebuild_generation;
use crate::generations::{self, Switchover};
use crate::monitoring::ProjectorMetrics;
use crate::monitoring::poller::poll_gauges;
use crate::publish::{self, PublishSummary};
use crate::quarantine::run_quarantine;
use crate::review::audit::{AuditArgs, AuditReport, audit_served};
use crate::review::explain::{ExplainRequest, SecurityExplanation, explain_security, find_hidden_runs};
use crate::review::{diff, effect, gate, quality, sources};
use crate::settings::{DatabaseArgs, LIVE_FACTS, ProjectorSettings};
use crate::{backup, policy, report};

/// Global options that some commands ignore. The help of these commands hides the options.
const HIDDEN: [HiddenOptions; 3] = [
    HiddenOptions { commands: &["rules", "health"], options: &["database_url", "projector_database_url"] },
    // Only migrate, backup and restore use the accounts.
    HiddenOptions {
        commands: &[
            "run",
            "health",
            "status",
            "rebuild",
            "list",
            "diff",
            "publish",
            "explain",
            "audit",
            "gate",
            "expect",
            "rules",
            "promote",
            "rollback",
            "drop",
            "pause",
            "resume",
            "policy",
            "quarantine",
            "dead-letters",
        ],
        options: &["accounts_database_url"],
    },
    // These commands never create the stream, so they ignore its number of replicas.
    HiddenOptions {
        commands: &["backup", "status", "quarantine", "dead-letters"],
        options: &["nats_replicas"],
    },
];

/// Exit code of an audit with findings, of an incomplete backup, or of a restore with differing tables.
const EXIT_FINDINGS: u8 = 4;

/// Entry point of the program.
pub fn main() -> ExitCode {
    let arguments: Arguments = telemetry::command_line::parse(&HIDDEN);
    let is_service = matches!(arguments.command, Command::Run { .. });
    let filter = "info,async_nats=warn,refinery_core=warn";
    let _telemetry = telemetry::init("projector", filter, (!is_service).then_some(arguments.log));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start the runtime");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run_command(arguments)) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{}", error_chain(error.as_ref()));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Runs a command.
///
/// A statement to a frozen Postgres server would wait forever. Commands that use the database therefore check
/// repeatedly that the server answers, and fail if it does not. The daemon reconnects instead of failing.
async fn run_command(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let uses_database = match &arguments.command {
        Command::Run { until_caught_up, .. } => *until_caught_up,
        Command::Health(_) | Command::Rules(_) => false,
        _ => true,
    };
    let database = &arguments.database;
    let uses_accounts = database.owner.has_accounts_url()
        && matches!(
            arguments.command,
            Command::Migrate(_) | Command::Backup { .. } | Command::Restore { .. }
        );
    let config = database.projector_config(LIVE_FACTS).or_else(|_| db::owner_config(&database.owner));
    let accounts = db::accounts_config(&database.owner).or_else(|_| database.projector_config(LIVE_FACTS));
    match (config, accounts) {
        (Ok(config), Ok(accounts)) if uses_database => tokio::select! {
            ended = Box::pin(execute_command(arguments)) => ended,
            error = db::watch_server(&config) => Err(error.into()),
            error = db::watch_server(&accounts), if uses_accounts => Err(error.into()),
        },
        _ => execute_command(arguments).await,
    }
}

async fn execute_command(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let database = arguments.database;
    match arguments.command {
        Command::Migrate(market) => {
            db::migrate(&database.owner, market::metrics::METHOD_VERSION, &market).await?;
            outln!("the database is at the newest schema");
        }
        Command::Run { until_caught_up, applying, metrics } => {
            let settings = ProjectorSettings { database, applying };
            run_daemon(&settings, until_caught_up, metrics).await?;
        }
        Command::Health(args) => return check_health(args).await,
        Command::Status { stream, output } => return print_status(&database, &stream, output.json).await,
        Command::Rebuild { args, applying } => {
            let settings = ProjectorSettings { database, applying };
            let generation = rebuild_generation(&settings, &args, Shutdown::listen()?).await?;
            if args.json {
                print_json(&serde_json::json!({ "generation": generation }))?;
            } else {
                outln!(
                    "generation {generation} is built; projector diff compares it, and projector promote {generation} serves it"
                );
            }
        }
        Command::Diff(args) => {
            let found = diff::compare_generations(&database, &args, Shutdown::listen()?).await?;
            print_result(&found, args.json, diff::GenerationDiff::report)?;
        }
        Command::Backup { folder, json, applying } => {
            let settings = ProjectorSettings { database, applying };
            let created = backup::create_backup(&settings, &folder).await?;
            print_result(&created, json, |created| Report::new(created.summary()))?;
            return Ok(exit_with_findings(created.missing_messages > 0));
        }
        Command::Restore { folder, json, applying } => {
            let settings = ProjectorSettings { database, applying };
            let restored = backup::restore_backup(&settings, &folder, Shutdown::listen()?).await?;
            print_result(&restored, json, |restored| Report::new(restored.summary()))?;
            return Ok(exit_with_findings(!restored.is_identical()));
        }
        Command::Publish(args) => {
            let print = |published: &PublishSummary| {
                Ok(print_result(published, args.json, |published| published.report(&args.to))?)
            };
            publish::run_publish(&database, &args, Shutdown::listen()?, print).await?;
        }
        Command::Audit(args) => return run_audit(&database, &args).await,
        Command::Gate(args) => {
            let verdict = gate::judge_load(&database, &args).await?;
            print_result(&verdict, args.json, gate::report_verdict)?;
            return Ok(exit_with_findings(!verdict.met));
        }
        Command::Expect(command) => gate::run_expect(&connect(&database).await?, command).await?,
        Command::Rules(output) => report::print_rules(market::metrics::Rules::PARAMETERS, &output)?,
        Command::List(output) => {
            let listed = generations::list_generations(&connect(&database).await?).await?;
            report::print_generations(&listed, &output)?
        }
        Command::Explain { symbol, metric, generation, known_at, date, all, output } => {
            let mut client = connect(&database).await?;
            let metric = metric.as_deref();
            anyhow::ensure!(
                date.is_none() || metric == Some("price"),
                "cannot explain this metric by date: --date needs the metric price; run projector explain {symbol} price --date DATE"
            );
            let request = ExplainRequest { metric, session: date, generation, known_at };
            let found = explain_security(&mut client, &symbol, &request).await?;
            let current = request.generation.is_none() && request.known_at.is_none();
            let hidden_runs = if current { find_hidden_runs(&mut client, &found).await? } else { Vec::new() };
            let found = SecurityExplanation { explanation: found, hidden_runs };
            print_result(&found, output.json, |found| found.report(all))?;
        }
        Command::Promote { args, output } => {
            let switched = generations::promote_generation(&mut connect(&database).await?, &args).await?;
            print_result(&switched, output.json, Switchover::report)?;
        }
        Command::Rollback { stale_ok, output } => {
            let switched = generations::rollback_generation(&mut connect(&database).await?, stale_ok).await?;
            print_result(&switched, output.json, Switchover::report)?;
        }
        Command::Drop { generation } => {
            generations::drop_generation(&mut connect(&database).await?, generation).await?;
            outln!("generation {generation} was removed");
        }
        Command::Pause => {
            generations::set_paused(&connect(&database).await?, true).await?;
            outln!("paused: the projector applies no messages until projector resume");
        }
        Command::Resume => {
            generations::set_paused(&connect(&database).await?, false).await?;
            outln!("resumed: the projector applies the log again");
        }
        Command::Policy(command) => run_policy_command(&mut connect(&database).await?, command).await?,
        Command::Source(SourceCommand::List(output)) => {
            report::print_sources(&sources::list_sources(&connect(&database).await?).await?, &output)?;
        }
        Command::Source(SourceCommand::Set(stated)) => {
            let client = connect(&database).await?;
            sources::state_licence(&client, &stated).await?;
            let source = &stated.source;
            outln!("the API follows the licence of {source}");
            let listed = sources::list_sources(&client).await?;
            if listed.iter().any(|listed| listed.source == *source && listed.kinds.is_empty()) {
                outln!("no rows of {source} are loaded; projector source list has the names of sources");
            }
        }
        Command::Quarantine(command) => run_quarantine(&mut connect(&database).await?, command).await?,
        Command::DeadLetters(command) => {
            run_dead_letter_command(&database, &connect(&database).await?, command).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Connects to the database for one command.
async fn connect(database: &DatabaseArgs) -> Result<Client, DbError> {
    db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await
}

fn exit_with_findings(has_findings: bool) -> ExitCode {
    if has_findings { ExitCode::from(EXIT_FINDINGS) } else { ExitCode::SUCCESS }
}

/// Runs the daemon and, if configured, its metrics listener.
async fn run_daemon(
    settings: &ProjectorSettings,
    until_caught_up: bool,
    metrics_settings: MetricsSettings,
) -> anyhow::Result<()> {
    let (metrics, shutdown) = (Arc::new(ProjectorMetrics::new()?), Shutdown::listen()?);
    let following = run_projector(settings, until_caught_up, &metrics, shutdown);
    let Some(listener) = metrics_settings.bind().await? else { return Ok(following.await?) };
    tokio::select! {
        ended = following => Ok(ended?),
        never = listener.serve(Arc::clone(&metrics)) => match never {},
        never = poll_gauges(settings, &metrics) => match never {},
    }
}

async fn check_health(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let address = args.address.or(args.metrics.metrics_listen).context(
        "cannot ask for health: no address is set\n\
         set METRICS_LISTEN or --address to the metrics address of the running projector, such as 127.0.0.1:9465",
    )?;
    Ok(ExitCode::from(telemetry::listener::check_health(address, "/health").await))
}

async fn run_audit(database: &DatabaseArgs, args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let since = match &args.since {
        Some(text) => Some(find_run(&connect(database).await?, text).await?),
        None => None,
    };
    let target = match (&since, &args.candidate) {
        (Some(run), _) => Some(effect::EffectTarget::Run(run)),
        (None, candidate) => candidate.as_deref().map(effect::EffectTarget::Candidate),
    };
    if let Some(target) = target {
        let found = effect::measure_effect(database, args, target, effect::Depth::Whole).await?;
        print_result(&found, args.json, effect::RunEffect::report)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.quality {
        let found = quality::measure_quality(database, args).await?;
        print_result(&found, args.json, quality::QualityReport::report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = audit_served(&mut connect(database).await?).await?;
    print_result(&found, args.json, AuditReport::report)?;
    Ok(exit_with_findings(!found.is_clean()))
}

async fn run_policy_command(client: &mut Client, command: PolicyCommand) -> anyhow::Result<()> {
    let (rule, rank, mode) = match command {
        PolicyCommand::List(output) => {
            return report::print_policy(&policy::list_rules(client).await?, &output);
        }
        PolicyCommand::Set { line, rank, unknown_ok, taking } => {
            if !unknown_ok {
                policy::check_source_known(client, &line).await?;
            }
            (line, Some(rank), taking)
        }
        PolicyCommand::Remove { line, taking } => (line, None, taking),
    };
    let change = policy::change_policy(client, &rule, rank, &mode).await?;
    Ok(print_result(&change, mode.json, policy::PolicyChange::report)?)
}

async fn run_dead_letter_command(
    database: &DatabaseArgs,
    client: &Client,
    command: DeadLetterCommand,
) -> anyhow::Result<()> {
    match command {
        DeadLetterCommand::List(output) => {
            report::print_dead_letters(&apply::list_dead_letters(client, None).await?, false, &output)?;
        }
        DeadLetterCommand::Show { sequence, output } => {
            let letters = apply::list_dead_letters(client, Some(sequence)).await?;
            let all = ListArgs { limit: Some(0), json: output.json };
            report::print_dead_letters(&letters, true, &all)?;
        }
        DeadLetterCommand::Discard { sequence, item } => {
            let found = apply::discard_dead_letter(client, sequence, item).await?;
            anyhow::ensure!(
                found,
                "cannot discard {sequence}/{item}: no such dead letter has status held; see projector dead-letters list"
            );
            outln!("dead letter {sequence}/{item} was discarded; its row stays in the table");
        }
        DeadLetterCommand::Retry { sequence, stream } => {
            let mut held = apply::list_dead_letters(client, sequence).await?;
            held.retain(|letter| letter.status == "held");
            let applied = retry::retry_dead_letters(database, &stream, &held).await?;
            match held.len() {
                0 => outln!("nothing to retry: no dead letter has status held"),
                count => outln!("{applied} of {count} dead letters were applied"),
            }
        }
        DeadLetterCommand::Export { stream } => {
            let held = apply::list_dead_letters(client, None).await?;
            let (records, unreadable) = retry::export_rows(&stream, &held).await?;
            records.iter().for_each(|record| outln!("{record}"));
            for letter in unreadable {
                tracing::warn!(
                    sequence = letter.sequence.to_i64(),
                    reason = letter.reason,
                    "dead letter without readable rows"
                );
            }
        }
    }
    Ok(())
}

fn exit_code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<RunError>(), error.downcast_ref::<DbError>()) {
        (Some(RunError::Db(db)), _) | (_, Some(db)) if db.is_unreachable() => 3,
        (Some(RunError::Stream(_)), _) => 3,
        (Some(RunError::Db(_) | RunError::Lost { .. }), _) => 1,
        (Some(_), _) => 2,
        (None, _)
            if error
                .downcast_ref::<tokio_postgres::Error>()
                .is_some_and(tokio_postgres::Error::is_closed) =>
        {
            3
        }
        (None, _) => 1,
    }
}
