//! `projector audit --since RUN`: differences between the served figures before a run and now.
//!
//! The facts before the run are restored in memory. Each affected security is derived from these and from the current
//! facts.

mod comparison;
mod earlier_facts;
mod earlier_records;
mod html;
mod log_messages;
mod market_inputs;
mod position;
mod replacement;
mod result;
mod security_figures;
mod text;

use anyhow::Context;
use store::db;

use crate::generation::{Generation, begin_snapshot, load_last_inputs};
use crate::review::audit::AuditArgs;
use crate::review::diff::{CsvDifferences, DifferenceSink, HTML_ROWS};
use crate::review::html_page::HtmlFile;
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use comparison::EffectComparison;
use earlier_facts::EarlierFacts;
use market_inputs::MarketInputs;
use position::{RunPosition, wait_until_served};

pub use replacement::SourceReplacement;
pub use result::{FlagChange, QuarantineChange, RunEffect};
pub use text::print_effect;

const ACTIVE: &str = include_str!("../../../queries/generation_active.sql");

/// Measures the effect of a run. The effects of all later runs are included.
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
    let earlier = EarlierFacts::load(&transaction, &args.stream, first).await?;
    let before = MarketInputs::load(&transaction, &generation, &policy, Some(&earlier)).await?;
    let after = MarketInputs::load(&transaction, &generation, &policy, None).await?;
    let comparison =
        EffectComparison { generation: &generation, policy: &policy, earlier: &earlier, before, after };
    let found = comparison.compare(&transaction, keep, files).await?;
    let effect = RunEffect {
        run: run.to_owned(),
        complete: position.is_complete(),
        source: position.source,
        later_runs: position.later_runs,
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
