//! `projector audit --since RUN`: differences between the figures without a run and with it.
//!
//! Both sides are views of the same log: all visible runs without this run, and with it. A run that is held or excluded
//! is compared as if it were visible.

mod comparison;
mod html;
mod market_inputs;
mod position;
mod replacement;
mod result;
mod security_figures;
mod side;
mod text;

use std::collections::BTreeSet;

use anyhow::Context;
use event_log::record_batch::BatchId;
use event_log::stream::StreamSettings;
use store::db;
use store::view::{BatchOwners, RunStates, View};
use tokio_postgres::Transaction;

use crate::apply::touched_rows::TouchedRows;
use crate::generation::{Generation, begin_snapshot, load_last_inputs};
use crate::review::audit::AuditArgs;
use crate::review::diff::{CsvDifferences, DifferenceSink, HTML_ROWS};
use crate::review::html_page::HtmlFile;
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use comparison::EffectComparison;
use market_inputs::MarketInputs;
use position::{RunPosition, wait_until_served};
use side::SideRows;

pub use replacement::SourceReplacement;
pub use result::{FlagChange, QuarantineChange, RunEffect};
pub use text::print_effect;

const ACTIVE: &str = include_str!("../../../queries/generation_active.sql");

/// Measures the effect of a run.
pub async fn measure_effect(
    database: &DatabaseArgs,
    args: &AuditArgs,
    run: &str,
) -> anyhow::Result<RunEffect> {
    let page = args.html.as_deref().map(HtmlFile::create).transpose()?;
    let mut files: Vec<Box<dyn DifferenceSink>> = Vec::new();
    if let Some(path) = &args.csv {
        files.push(Box::new(CsvDifferences::create(path)?));
    }
    let keep = if page.is_some() { args.limit.max(HTML_ROWS) } else { args.limit };
    let mut client = db::connect(&database.review_config(LIVE_FACTS)?).await?;
    let generation = Generation::from_row(&client.query_one(ACTIVE, &[]).await?)?;
    generation.set_session_search_path(&client).await?;
    wait_until_served(&client, &generation, run, args.wait).await?;
    let transaction = begin_snapshot(&mut client).await?;
    let position = RunPosition::load(&transaction, &generation, run).await?;
    let first = position.first.context("the run is not in the served tables")?;
    anyhow::ensure!(
        position.is_current(),
        "cannot compare run {run}: the served tables changed at the same time\nrun the command again"
    );
    let (_, policy) = load_last_inputs(&transaction).await?;
    let newest = match (args.as_loaded, position.last) {
        (true, Some(last)) => View::at(last),
        _ => View::newest(),
    };
    let views = [newest.clone().without_run(run), newest.with_run(run)];
    let touched = find_touched_rows(&transaction, &args.stream, run, &views).await?;
    let [without, with] = views.each_ref();
    let rows = SideRows::load(&transaction, &generation.fact_set, &touched, [without, with]).await?;
    let market = async |side| MarketInputs::load(&transaction, &generation, &policy, &touched, side).await;
    let markets = [market(&rows[0]).await?, market(&rows[1]).await?];
    let comparison =
        EffectComparison { generation: &generation, policy: &policy, touched: &touched, rows, markets };
    let found = comparison.compare(&transaction, keep, files).await?;
    let effect = RunEffect {
        run: run.to_owned(),
        complete: position.is_complete(),
        source: position.source,
        generation: generation.id,
        first_message: first,
        last_message: position.served,
        found,
    };
    if let Some(page) = page {
        html::write_page(page, &effect)?;
    }
    Ok(effect.truncated(args.limit))
}

/// Rows that contain rows of the batches whose visibility differs between two views.
async fn find_touched_rows(
    transaction: &Transaction<'_>,
    settings: &StreamSettings,
    run: &str,
    views: &[View; 2],
) -> anyhow::Result<TouchedRows> {
    let owners = BatchOwners::load_of_run(transaction, run).await?;
    let states = RunStates::load(transaction).await?;
    let (mut batches, mut sequences) = (BTreeSet::new(), BTreeSet::new());
    for (id, place) in owners.places() {
        let [before, after] = views.each_ref().map(|view| owners.is_visible(id, &states, view));
        if before != after {
            batches.insert(BatchId(*id));
            sequences.insert(place.sequence);
        }
    }
    if batches.is_empty() {
        return Ok(TouchedRows::default());
    }
    let context = settings.connect("projector-audit").await?;
    let log = settings.open_existing(&context).await?;
    Ok(TouchedRows::read(transaction, &log, &batches, sequences).await?)
}
