//! `ingest load`: publishes feed files to the log, between two manifests of a run.
//!
//! This module finds and identifies the inputs; `Run` reads and publishes them.

use std::sync::Arc;
use std::time::Instant;

use event_log::stream::StreamSettings;
use telemetry::Shutdown;

use crate::format::ReaderOptions;
use crate::load::error::LoadError;
use crate::load::input::{Input, survey};
use crate::load::report::{FileReport, Progress, Summary};
use crate::load::run::Run;
use crate::source::files;
use crate::source::standard_input::StandardInput;

pub(crate) mod args;
pub mod error;
pub(crate) mod input;
pub(crate) mod producer;
pub(crate) mod publication;
pub mod report;
pub(crate) mod run;

pub use args::LoadArgs;
pub(crate) use args::{checked_time, parse_source};

/// Loads the files of a command line.
pub async fn load(
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<Summary, LoadError> {
    let begun = Instant::now();
    let options = args.reading();
    let progress = Progress::start();
    let standard_input = match args.reads_standard_input() {
        true => Some(Arc::new(StandardInput::copy_to_file(args.name.as_deref(), args.kind, shutdown).await?)),
        false => None,
    };
    let (mut summary, inputs) = {
        let (args, options, progress) = (args.clone(), options.clone(), progress.clone());
        let input = standard_input.clone();
        let surveyed =
            tokio::task::spawn_blocking(move || find_inputs(&args, input.as_deref(), &options, &progress));
        surveyed.await.map_err(LoadError::Task)?
    };
    if !inputs.is_empty() {
        let run = Run::new(args, inputs, options, progress.clone(), shutdown.clone());
        if args.dry_run {
            run.try_out(settings, &mut summary).await?
        } else {
            run.publish(settings, &mut summary).await?
        }
    }
    progress.finish();
    summary.seconds = begun.elapsed().as_secs_f64();
    Ok(summary)
}

/// Finds the inputs of all paths. The summary lists the files refused so far.
fn find_inputs(
    args: &LoadArgs,
    standard_input: Option<&StandardInput>,
    options: &ReaderOptions,
    progress: &Progress,
) -> (Summary, Vec<Input>) {
    let found = files::find_feed_files(&args.paths, standard_input);
    let mut summary = Summary {
        source: args.source.clone(),
        dry_run: args.dry_run,
        skipped: found.skipped,
        ..Summary::default()
    };
    summary.files.extend(found.refused.into_iter().map(|(file, reason)| FileReport::refused(file, reason)));
    progress.identify();
    let surveyed = survey(&found.files, options, &|bytes| progress.read(bytes));
    let mut inputs = Vec::new();
    for (file, input) in found.files.iter().zip(surveyed) {
        match input {
            Ok(input) => inputs.push(match &args.again {
                Some(name) => input.again(name),
                None => input,
            }),
            Err(reason) => summary.files.push(FileReport {
                path: Some(file.display_path()),
                ..FileReport::refused(file.label.clone(), reason)
            }),
        }
    }
    progress.load(inputs.iter().map(|input| input.bytes).sum());
    (summary, inputs)
}
