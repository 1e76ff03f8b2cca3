//! `ingest load`: publishes feed files to the log as one run.
//!
//! This module finds and identifies the inputs. `LoadRun` reads and publishes them, between a start manifest and a
//! completion manifest.

use std::sync::Arc;
use std::time::Instant;

use event_log::stream::StreamSettings;
use telemetry::Shutdown;

use crate::format::ReaderOptions;
use crate::load::file_list::FileReport;
use crate::load::gate::{judge_run, release_empty_run};
use crate::load::input::{LoadInput, identify_inputs};
use crate::load::lineage::LineageRun;
use crate::load::progress::LoadProgress;
use crate::load::publication::LoadError;
use crate::load::report::LoadSummary;
use crate::load::run::LoadRun;
use crate::source::feed_files;
use crate::source::file_access::StandardInput;

pub(crate) mod args;
pub(crate) mod effect;
pub(crate) mod event_sender;
pub mod file_list;
pub(crate) mod gate;
pub(crate) mod input;
pub(crate) mod lineage;
pub(crate) mod progress;
pub(crate) mod publication;
pub mod report;
mod row_checks;
pub(crate) mod run;

pub use args::LoadArgs;
pub(crate) use args::parse_observation_time;

/// Loads the files of a command line.
pub async fn load(
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<LoadSummary, LoadError> {
    let begun = Instant::now();
    let options = args.reader_options();
    let progress = LoadProgress::start();
    let standard_input = match args.reads_standard_input() {
        true => {
            let copied = StandardInput::copy_to_file(args.name.as_deref(), args.kind, shutdown).await?;
            Some(Arc::new(copied.ok_or(LoadError::Interrupted)?))
        }
        false => None,
    };
    let (mut summary, inputs) = {
        let (args, options, progress) = (args.clone(), options.clone(), progress.clone());
        let input = standard_input.clone();
        let identified =
            tokio::task::spawn_blocking(move || find_inputs(&args, input.as_deref(), &options, &progress));
        identified.await.map_err(LoadError::Task)?
    };
    let run = (!inputs.is_empty()).then(|| LoadRun::new(args, inputs, options, progress.clone(), shutdown));
    if let Some(run) = &run {
        summary.run.clone_from(&run.id);
    }
    let lineage = LineageRun::start(args, settings, &summary, run.as_ref().map_or(&[], LoadRun::inputs));
    let loaded = match run {
        Some(run) => load_run(run, args, settings, shutdown, &mut summary).await,
        None => Ok(()),
    };
    progress.finish();
    summary.seconds = begun.elapsed().as_secs_f64();
    if let Some(lineage) = lineage {
        lineage.finish(&summary, loaded.as_ref().err()).await;
    }
    loaded.map(|()| summary)
}

/// Reads the inputs of a run, and publishes them unless it is a dry run. With `--gate`, also decides whether they are
/// served.
async fn load_run(
    run: LoadRun<'_>,
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    summary: &mut LoadSummary,
) -> Result<(), LoadError> {
    if args.dry_run {
        return run.run_dry(settings, summary).await;
    }
    run.publish(settings, summary).await?;
    let is_judged = args.gate && !args.stage && summary.held;
    if is_judged && summary.exit_code() == 2 {
        summary.set_state(release_empty_run(&summary.run, &summary.source, settings).await?);
    } else if is_judged {
        let (result, state) = judge_run(&summary.run, args, settings, shutdown).await?;
        summary.set_state(state);
        summary.gate = Some(result);
    }
    Ok(())
}

/// Finds the files of all paths, and detects their formats and digests. The summary lists the refused files.
fn find_inputs(
    args: &LoadArgs,
    standard_input: Option<&StandardInput>,
    options: &ReaderOptions,
    progress: &LoadProgress,
) -> (LoadSummary, Vec<LoadInput>) {
    let found = feed_files::find_feed_files(&args.paths, args.folder.as_ref(), standard_input);
    let mut summary = LoadSummary {
        source: args.source.clone(),
        dry_run: args.dry_run,
        skipped: found.skipped,
        ..LoadSummary::default()
    };
    summary
        .files
        .reports
        .extend(found.refused.into_iter().map(|(file, reason)| FileReport::refused_unread(file, reason)));
    progress.show_identifying();
    let identified = identify_inputs(&found.files, options, &|bytes| progress.add_bytes(bytes));
    let mut inputs = Vec::new();
    for (file, input) in found.files.iter().zip(identified) {
        match input {
            Ok(mut input) => {
                if let Some(name) = &args.again {
                    // The name from `--again` makes a new digest of the input. The log has no rows with this digest, so
                    // the load publishes all rows again.
                    let mut hasher = blake3::Hasher::new();
                    hasher.update(input.digest.as_bytes()).update(name.as_bytes());
                    input.digest = hasher.finalize().to_hex().to_string();
                }
                inputs.push(input);
            }
            Err(reason) => summary.files.reports.push(FileReport {
                path: Some(file.display_path()),
                ..FileReport::refused_unread(file.label.clone(), reason)
            }),
        }
    }
    progress.show_loading(inputs.iter().map(|input| input.unpacked_bytes).sum());
    (summary, inputs)
}
