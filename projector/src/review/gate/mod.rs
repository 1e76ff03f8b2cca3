//! `projector gate`: compares the effect of a load with the expectations.
//!
//! `ingest load --gate` runs this command after it published a held run, and releases the run if all expectations are met.

mod checks;
mod expectations;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use event_log::stream::StreamSettings;
use market::event::Kind;
use market::expectation::{Expectation, GateVerdict};
use rust_decimal::Decimal;
use store::db;
use store::view::View;
use telemetry::report::Report;

use crate::apply::run_records::find_run;
use crate::generation::{Generation, begin_snapshot};
use crate::review::audit::AuditArgs;
use crate::review::effect::{Depth, EffectTarget, find_touched_rows, measure_effect};
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use checks::{Checks, EarlierLoads, store_values};
pub(crate) use expectations::{ExpectCommand, run_expect};

const HELD_RUNS: &str = include_str!("../../../queries/gate/held_runs.sql");

#[derive(Debug, Clone, Args)]
pub(crate) struct GateArgs {
    /// Run id, or its beginning, as listed by `ingest runs`
    #[arg(required_unless_present = "candidate")]
    run: Option<String>,
    /// Rows of `ingest load --dry-run --gate`, which passes the file
    #[arg(long, value_name = "FILE", conflicts_with = "run", hide = true)]
    candidate: Option<PathBuf>,
    /// Maximum time to wait until the facts contain RUN, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600))]
    wait: u64,
    /// Source whose rows the load may take out of use; can be repeated
    #[arg(long, value_name = "SOURCE")]
    replaces: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Connection to the log, which has the names of the run's rows.
    #[command(flatten)]
    stream: StreamSettings,
}

/// Compares a load with the expectations of its source.
pub(crate) async fn judge_load(database: &DatabaseArgs, args: &GateArgs) -> anyhow::Result<GateVerdict> {
    let mut client = db::connect_migrated(&database.review_config(LIVE_FACTS)?).await?;
    let run = match &args.run {
        Some(text) => find_run(&client, text).await?,
        None => String::new(),
    };
    let target = match &args.candidate {
        Some(path) => EffectTarget::Candidate(path),
        None => EffectTarget::Run(&run),
    };
    let audit = AuditArgs::of_gate(args.wait, args.stream.clone());
    let effect = measure_effect(database, &audit, target, Depth::Gate).await?;
    anyhow::ensure!(effect.complete, "cannot judge run {run}: it is incomplete; ingest resume continues it");
    let transaction = begin_snapshot(&mut client).await?;
    Generation::load_served(&transaction).await?;
    let source = effect.source.as_deref().unwrap_or_default();
    let mut checks = Checks::load(&transaction, source, &effect.run).await?;
    let earlier = EarlierLoads::load(&transaction, source, &effect.run, &effect.loaded).await?;
    checks.add_row_counts(&effect.loaded, &earlier);
    checks.add_effect(source, &args.replaces, &effect);
    let mut behind = BTreeSet::new();
    for row in transaction.query(HELD_RUNS, &[&source, &effect.run]).await? {
        let held: &str = row.try_get(0)?;
        let views = [View::newest().without_run(held), View::newest().with_run(held)];
        let rows = find_touched_rows(&transaction, &args.stream, held, &views).await?;
        let shared = rows.symbols().into_iter().filter(|symbol| effect.loaded.symbols.contains(*symbol));
        behind.extend(shared.map(|symbol| format!("{symbol}: run {held} is held")));
    }
    let first_kind = effect.loaded.rows.keys().next().copied().unwrap_or(Kind::Price);
    let count = Decimal::from(behind.len());
    checks.add(Expectation::Behind, first_kind, count, behind.into_iter().collect());
    transaction.commit().await?;
    if args.candidate.is_none() {
        store_values(&client, [&effect.run, source], &checks.found).await?;
    }
    Ok(GateVerdict::new(effect.run, checks.found))
}

/// Verdict as text.
pub(crate) fn report_verdict(verdict: &GateVerdict) -> Report {
    let mut report = Report::new("");
    verdict.lines().into_iter().for_each(|line| report.add_fact(line));
    report
}
