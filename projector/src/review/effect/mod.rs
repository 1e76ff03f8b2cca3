//! `projector audit --since RUN` and `ingest load --dry-run`: differences between the figures without a run and with it.
//!
//! Both sides are views of the same log: all visible runs without this run, and with it. A run that is held or excluded
//! is compared as if it were visible.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use comparison::compare_figures;
use event_log::record_batch::RecordBatch;
use event_log::stream::StreamSettings;
use load_figures::SecurityChange;
use market_inputs::MarketInputs;
use result::{EffectAccumulator, FoundEffect};
use side::read_candidate;
use store::view::{self, BatchOwners, RunStates, View};
use store::{FromRow, db, sql_row};
use tokio::time::Instant;
use tokio_postgres::{Client, GenericClient, Transaction};

use crate::apply::touched_rows::{TouchedRows, changed_batches};
use crate::generation::{Generation, begin_snapshot, load_last_inputs};
use crate::review::audit::AuditArgs;
use crate::review::compare::{DifferenceFile, HTML_ROWS, PageFile};
use crate::settings::{DatabaseArgs, LIVE_FACTS};

mod comparison;
mod load_figures;
mod market_inputs;
mod result;
mod side;

pub(crate) use comparison::{MarketComparison, SecurityFigures};
pub(crate) use load_figures::{LoadedRows, median};
pub(crate) use result::{RunEffect, SourceReplacement};
pub(crate) use side::TouchedViews;

const ACTIVE: &str = include_str!("../../../queries/generation_active.sql");

#[derive(Debug, Clone, Copy)]
pub(crate) enum EffectTarget<'a> {
    Run(&'a str),
    /// Rows of a dry run, in the file that `ingest load --dry-run` wrote.
    Candidate(&'a Path),
}

/// Bars from which both sides are derived.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Depth {
    /// All bars.
    Whole,
    /// The bars that the expectations of the gate need.
    Gate,
}

pub(crate) async fn measure_effect(
    database: &DatabaseArgs,
    args: &AuditArgs,
    target: EffectTarget<'_>,
    depth: Depth,
) -> anyhow::Result<RunEffect> {
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let csv = args.csv.as_deref().map(DifferenceFile::create_csv).transpose()?;
    let keep = if page.is_some() { args.limit.max(HTML_ROWS) } else { args.limit };
    let mut client = db::connect_migrated(&database.review_config(LIVE_FACTS)?).await?;
    let generation = Generation::from_row(&client.query_one(ACTIVE, &[]).await?)?;
    generation.set_session_search_path(&client).await?;
    if let EffectTarget::Run(run) = target {
        wait_until_served(&client, &generation, run, args.wait).await?;
    }
    let transaction = begin_snapshot(&mut client).await?;
    let (_, policy) = load_last_inputs(&transaction).await?;
    let compared = match target {
        EffectTarget::Run(run) => ComparedRun::load(&transaction, &generation, args, run).await?,
        EffectTarget::Candidate(path) => ComparedRun::load_candidate(&transaction, &generation, path).await?,
    };
    let ComparedRun { mut effect, touched, candidate, views } = compared;
    let views = TouchedViews::new(&transaction, &generation.fact_set, &touched, &candidate, views)?;
    let comparison = MarketComparison::load(&generation, [&policy; 2], views).await?;
    let mut found = EffectAccumulator::new(keep, csv.into_iter().collect());
    let as_of = comparison.markets[1].as_of();
    let compare = |sides: [Option<SecurityFigures>; 2]| {
        let rows = match depth {
            Depth::Whole => Some(compare_figures(sides.each_ref().map(Option::as_ref))?),
            Depth::Gate => None,
        };
        let change = SecurityChange::measure(sides.each_ref().map(Option::as_ref), as_of);
        Ok((sides, rows, change))
    };
    let touched = comparison.find_touched().await?;
    let [whole, recent] = match depth {
        Depth::Whole => [(None, touched), (None, BTreeSet::new())],
        Depth::Gate => comparison.divide_by_first_year(touched),
    };
    let (progress, mut again) = (["compared", "securities"], BTreeSet::new());
    comparison
        .visit(recent, progress, &compare, |symbol, (sides, rows, change)| {
            if change.needs_all_bars() {
                again.insert(symbol.clone());
                return Ok(());
            }
            found.add(symbol.as_str(), sides.each_ref().map(Option::as_ref), rows, change, &policy)
        })
        .await?;
    again.extend(whole.1);
    comparison
        .visit((None, again), progress, &compare, |symbol, (sides, rows, change)| {
            found.add(symbol.as_str(), sides.each_ref().map(Option::as_ref), rows, change, &policy)
        })
        .await?;
    effect.found = found.finish()?;
    effect.found.as_of = comparison.markets.each_ref().map(MarketInputs::as_of);
    page.map(|page| page.write(&effect.report())).transpose()?;
    Ok(effect.truncated(args.limit))
}

/// Run to compare: the two views, and the rows that differ between them.
struct ComparedRun {
    effect: RunEffect,
    touched: TouchedRows,
    candidate: Vec<RecordBatch>,
    views: [View; 2],
}

impl ComparedRun {
    async fn load(
        transaction: &Transaction<'_>,
        generation: &Generation,
        args: &AuditArgs,
        run: &str,
    ) -> anyhow::Result<Self> {
        let position = RunPosition::load(transaction, generation, run).await?;
        let first = position.first.context("the run is not in the served tables")?;
        anyhow::ensure!(
            position.is_current(),
            "cannot compare run {run}: the served tables changed at the same time\nrun the command again"
        );
        let newest = match (args.as_loaded, position.last) {
            (true, Some(last)) => View::at(last),
            _ => View::newest(),
        };
        let views = [newest.clone().without_run(run), newest.with_run(run)];
        let touched = find_touched_rows(transaction, &args.stream, run, &views).await?;
        let effect = RunEffect {
            run: run.to_owned(),
            complete: position.is_complete(),
            source: position.source,
            loaded: LoadedRows::load(transaction, run, &touched).await?,
            generation: generation.id,
            first_message: Some(first),
            last_message: position.served,
            found: FoundEffect::default(),
        };
        Ok(Self { effect, touched, candidate: Vec::new(), views })
    }

    async fn load_candidate(
        transaction: &Transaction<'_>,
        generation: &Generation,
        path: &Path,
    ) -> anyhow::Result<Self> {
        let candidate = read_candidate(transaction, path).await?;
        let touched = TouchedRows::of_batches(transaction, &candidate).await?;
        let first = candidate.first();
        let run = first.map(|batch| batch.run.clone()).unwrap_or_default();
        let views = [View::newest().without_run(&run), View::newest()];
        let effect = RunEffect {
            run,
            complete: true,
            source: first.map(|batch| batch.source.clone()),
            loaded: LoadedRows::of_candidate(&candidate, &touched),
            generation: generation.id,
            first_message: None,
            last_message: RunPosition::load(transaction, generation, "").await?.served,
            found: FoundEffect::default(),
        };
        Ok(Self { effect, touched, candidate, views })
    }
}

/// Rows that contain rows of the batches whose visibility differs between two views.
pub(crate) async fn find_touched_rows(
    transaction: &Transaction<'_>,
    settings: &StreamSettings,
    run: &str,
    views: &[View; 2],
) -> anyhow::Result<TouchedRows> {
    let owners = BatchOwners::load_of_run(transaction, run).await?;
    let states = RunStates::load(transaction).await?;
    let counts = |id: &view::BatchId| views.each_ref().map(|view| owners.is_visible(id, &states, view));
    let (batches, sequences) = changed_batches(&owners, counts);
    if batches.is_empty() {
        return Ok(TouchedRows::default());
    }
    let context = settings.connect("projector-audit").await?;
    let log = settings.open_existing(&context).await?;
    Ok(TouchedRows::read(transaction, &log, &batches, sequences).await?)
}

const POSITION: &str = include_str!("../../../queries/effect/position.sql");
const POLL_INTERVAL: Duration = Duration::from_millis(100);

sql_row! {
    /// Position of a run in the log, and the progress of the facts and of the served tables.
    #[derive(Debug)]
    struct RunPosition {
        pub(super) served: i64,
        checkpoint: i64,
        /// `true` if a projector applies the log to the fact set. The lease of the fact set then has a holder.
        followed: bool,
        is_visible: bool,
        /// Sequence of the run's first message; `None` if the facts do not contain the run.
        pub(super) first: Option<i64>,
        /// Sequence of the run's last message; `None` while the facts do not contain it.
        pub(super) last: Option<i64>,
        pub(super) source: Option<String>,
    }
}

impl RunPosition {
    async fn load(
        client: &impl GenericClient,
        generation: &Generation,
        run: &str,
    ) -> Result<Self, tokio_postgres::Error> {
        Self::from_row(&client.query_one(POSITION, &[&run, &generation.fact_set]).await?)
    }

    /// True if the served tables contain all facts. A run that is held or excluded has no rows in them, so its
    /// comparison needs only the facts.
    fn is_current(&self) -> bool {
        !self.is_visible || self.served == self.checkpoint
    }

    fn is_complete(&self) -> bool {
        self.last.is_some()
    }
}

/// Waits until the served tables contain all facts and the complete run. If `seconds` is 0, an incomplete run suffices.
///
/// # Errors
/// The condition is not met in time, or no projector applies the log.
async fn wait_until_served(
    client: &Client,
    generation: &Generation,
    run: &str,
    seconds: u64,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let position = RunPosition::load(client, generation, run).await?;
        let begun = seconds == 0 && position.first.is_some();
        if position.is_current() && (begun || position.is_complete()) {
            return Ok(());
        }
        if !position.followed || Instant::now() >= deadline {
            let served = position.served;
            match position.first {
                None => bail!(
                    "cannot compare run {run}: the served tables, which end at message {served}, do not contain it\n\
                     see ingest runs for its id, and projector status"
                ),
                Some(_) => bail!(
                    "cannot compare run {run}: the served tables end at message {served}\n\
                     see projector status; --wait SECONDS waits for a running projector"
                ),
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
