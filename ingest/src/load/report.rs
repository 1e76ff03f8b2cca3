//! Summary of a load.

use std::collections::{BTreeMap, BTreeSet};

use market::event::{Kind, Reject, RunManifest, RunVisibility};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use telemetry::counted;
use telemetry::report::Report;

use crate::batch::coverage::{DateSpan, EarlierCoverage, SymbolSummary};
use crate::batch::load_stats::{AssumedDollars, LoadStats};
use crate::batch::retractions::UnmatchedRetractions;
use crate::batch::row_review::RowReview;
use crate::load::effect::LoadEffect;
use crate::load::file_list::{FileList, FileReport, add_counts, add_examples};
use crate::load::gate::GateResult;
use crate::price::conflicting_prices::ConflictingPrices;
use crate::source::feed_files::{MAX_LISTED, join_names};

/// Result of a load.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LoadSummary {
    /// Id of the run, also in a dry run. Empty if there was no file to load.
    pub run: String,
    /// Name of the feed to which the files belong.
    pub source: String,
    /// True for a dry run, which publishes nothing.
    pub dry_run: bool,
    /// True if an earlier run loaded all files. This load then publishes nothing.
    pub already_loaded: bool,
    /// True if the run was undone, and this load takes the undo back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub visible_again: bool,
    /// True if the run is held: its rows are not served before `ingest release`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// True if an operator undid the run while the gate compared it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
    /// Result of the gate. Absent without `--gate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateResult>,
    /// True if the load continued an interrupted run.
    pub resumed: bool,
    /// All files that were found, with their load status. Refused files are included.
    #[serde(flatten)]
    pub files: FileList,
    /// Files of the given folders that were skipped, because their names are not names of feed files.
    #[serde(flatten, serialize_with = "serialize_skipped")]
    pub skipped: Vec<String>,
    /// Number of accepted rows in the loaded files, by kind. Empty if an earlier run loaded all files.
    pub rows: BTreeMap<String, u64>,
    /// Number of accepted rows of all kinds.
    pub rows_total: u64,
    /// Number of rejects in the loaded files, by reason code. Empty if an earlier run loaded all files.
    pub rejects: BTreeMap<String, u64>,
    /// Number of rejects.
    pub rejects_total: u64,
    /// Number of records that the map skips, by reason: `SERIES is not EQ`. Absent without such records.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped_rows: BTreeMap<String, u64>,
    /// Symbols of the accepted rows.
    pub symbols: SymbolSummary,
    /// First and last date of the accepted rows; absent if no row has a date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dates: Option<DateSpan>,
    /// True if this source has no earlier completed run.
    pub new_source: bool,
    /// All sources in the log, if the source of this load is new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_sources: Vec<String>,
    /// Number of values whose excess fraction digits were rounded.
    pub rounded: u64,
    /// Number of dividends without a currency. The currency and unit of the security's prices are assumed for them.
    pub assumed_currencies: u64,
    /// Number of dividends without a currency, by assumed currency or minor unit (`GBX`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub assumed_units: BTreeMap<String, u64>,
    /// Symbols of the prices whose currency no security record names, neither in the log nor in this load. The service
    /// takes these prices as US dollars. Absent without such symbols, or if the log was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_price_currencies: Option<AssumedDollars>,
    /// Security rows without a currency. The service takes their prices as US dollars. Absent without such rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_security_currencies: Option<AssumedDollars>,
    /// Rows with another close of a day than the day's first row; absent without such rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicting_prices: Option<ConflictingPrices>,
    /// Review of the accepted rows by the domain rules: rows that would be quarantined, and doubtful rows. The review
    /// uses only the files of this load.
    pub review: RowReview,
    /// Number of record batches published. In a dry run, the number that a real load would publish.
    pub frames: u64,
    /// Number of record batches that were already in the log.
    pub frames_in_log: u64,
    /// Number of corrected rejects: rejected rows of earlier runs that this run contains in corrected form.
    pub mended: u64,
    /// Number of rejects of the source that no load has corrected yet; absent if the log was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_rejects: Option<u64>,
    /// Retractions that match no row of the source; absent without such retractions, or if the log was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untouching_retractions: Option<UnmatchedRetractions>,
    /// Duration of the load in seconds.
    pub seconds: f64,
    /// Sample of the rejects of loaded files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Reject>,
    /// Effect on the figures that the API serves. Absent if the load published no rows. Also absent in every load by
    /// `ingest watch` or `ingest pull`.
    #[serde(flatten)]
    pub effect: Option<LoadEffect>,
}

impl LoadSummary {
    /// True if the load may have added rows to the log.
    pub(crate) fn has_published(&self) -> bool {
        !self.dry_run && (!self.already_loaded || self.visible_again) && self.rows_total > 0
    }

    /// Sets the totals of all loaded files from their statistics.
    pub fn set_totals(&mut self, stats: &LoadStats) {
        self.rows = stats.rows.iter().map(|(kind, rows)| (kind.to_string(), *rows)).collect();
        self.rejects = stats.rejects.iter().map(|(reason, rows)| ((*reason).to_owned(), *rows)).collect();
        (self.rows_total, self.rejects_total) = (stats.accepted_count(), stats.rejected_count());
        self.rounded = stats.rounded;
        self.skipped_rows.clone_from(&stats.skipped);
        self.conflicting_prices = stats.conflicting_prices.clone().non_empty();
        self.assumed_currencies = stats.missing_currencies.count();
        self.examples.clone_from(&stats.examples);
    }

    /// Sets the symbols and dates of the load, and marks new symbols and a new source. `before` are the symbols and
    /// sources of earlier runs; `None` if the log was not read.
    pub(crate) fn compare_with_earlier(&mut self, stats: &LoadStats, before: Option<&EarlierCoverage>) {
        let new = before.and_then(|before| before.new_symbols(&stats.coverage));
        self.symbols = SymbolSummary::from_coverage(&stats.coverage, new.as_deref());
        self.dates = DateSpan::from_coverage(&stats.coverage);
        if let Some(before) = before.filter(|before| !before.sources.contains(&self.source)) {
            self.new_source = true;
            self.known_sources = before.sources.iter().cloned().collect();
        }
    }

    /// Sets the totals from the earlier run that loaded all files.
    pub fn set_already_loaded(&mut self, manifest: &RunManifest) {
        self.run.clone_from(&manifest.run);
        self.already_loaded = true;
        (self.rows_total, self.rejects_total) = (manifest.rows, manifest.rejects);
        self.rounded = manifest.rounded;
        self.frames_in_log = manifest.chunks;
        let loaded = |file: &String| FileReport { file: file.clone(), ..FileReport::default() };
        self.files.reports.extend(manifest.files.iter().map(loaded));
        self.files.unlisted += manifest.more_files;
    }

    /// Number of refused files.
    fn refused_count(&self) -> u64 {
        self.files.refused().count() as u64
    }

    /// Sets the state of the run after the gate.
    pub(crate) fn set_state(&mut self, state: RunVisibility) {
        self.held = state == RunVisibility::Held;
        self.undone = state == RunVisibility::Excluded;
    }

    /// Exit code: 0 all loaded, 1 loaded with rejects or refused files, 2 nothing loaded, 4 held by the gate or undone
    /// during its comparison.
    pub fn exit_code(&self) -> u8 {
        let is_refused = self.gate.as_ref().is_some_and(|gate| !gate.is_met());
        if self.undone || is_refused && (self.held || self.dry_run) {
            return 4;
        }
        let refused = self.refused_count();
        let is_partial = self.rejects_total > 0 || refused > 0;
        if self.files.count() == refused || (self.rows_total == 0 && is_partial) {
            return 2;
        }
        u8::from(is_partial)
    }

    fn speed(&self) -> String {
        let bars = self.rows.get(Kind::Price.as_str()).copied().unwrap_or_default();
        if bars < 100_000 || self.seconds <= 0.0 {
            return String::new();
        }
        #[expect(clippy::cast_precision_loss, reason = "a speed for people")]
        let speed = bars as f64 / self.seconds / 1e6;
        format!(", {speed:.2} million bars/s")
    }

    /// Sentence about a load that added no rows; `None` if it added some.
    fn describe_empty_load(&self, files: u64, loaded: u64) -> Option<String> {
        if files == 0 {
            return Some("nothing to load: no feed files found".to_owned());
        }
        if self.already_loaded {
            let what = match self.visible_again {
                true => "visible again: the files of the undone run",
                false => "nothing was published: run",
            };
            let (run, rows) = (&self.run, counted(self.rows_total, "row"));
            return Some(format!(
                "{what} {run} loaded the same rows before ({rows} of {})",
                counted(loaded, "file")
            ));
        }
        let nothing = if self.dry_run { "nothing would be loaded" } else { "nothing was loaded" };
        let refused = if files == 1 { "the file was".to_owned() } else { format!("all {files} files were") };
        (loaded == 0).then(|| format!("{nothing}: {refused} refused"))
    }

    fn add_currencies(&self, report: &mut Report) {
        if self.assumed_currencies > 0 {
            let units = self.assumed_units.iter().map(|(unit, rows)| format!("{rows} {unit}"));
            report.add_fact(format!(
                "currency assumed for {}, from the prices of the security: {} (--currency names another)",
                counted(self.assumed_currencies, "dividend"),
                units.collect::<Vec<_>>().join(", ")
            ));
        }
        if let Some(assumed) = &self.assumed_price_currencies {
            let symbols = counted(assumed.count, "symbol");
            report.add_fact(format!(
                "currency assumed for the prices of {symbols} without a security record: USD ({assumed}); a securities file names another"
            ));
        }
        if let Some(assumed) = &self.assumed_security_currencies {
            let rows = counted(assumed.count, "security row");
            report.add_fact(format!("currency assumed for {rows} without one: USD ({assumed})"));
        }
    }

    /// Adds the result of the gate, and how to serve a run that is not served.
    fn add_hold(&self, report: &mut Report) {
        let run = &self.run;
        let published = (!self.dry_run).then_some(run.as_str());
        self.gate.iter().for_each(|gate| gate.add_to(published, report));
        if self.undone {
            report.add_fact(format!("undone during the comparison: nothing of run {run} is served"));
        }
        if self.held {
            report.add_fact(format!("held: nothing of run {run} is served"));
        }
        if self.undone || self.held {
            report.add_fact(format!("  → to serve it: ingest release {run}"));
        }
        if self.held {
            report.add_fact(format!("  → to discard it: ingest undo {run}"));
        }
    }

    /// Report of the load.
    pub fn report(&self) -> Report {
        let mut report = Report::new("");
        self.files.add_refused_to(&mut report);
        if !self.skipped.is_empty() {
            let skipped = join_names(&self.skipped, 0);
            report.add_fact(format!("skipped (not named like feed files): {skipped}"));
        }
        let files = self.files.count();
        let loaded = files - self.refused_count();
        if let Some(nothing) = self.describe_empty_load(files, loaded) {
            report.add_fact(nothing);
            self.add_hold(&mut report);
            return report;
        }
        let in_log = self.frames == 0 && self.frames_in_log > 0;
        let verb = match (self.dry_run, in_log) {
            (true, _) => "would load",
            (false, true) => "found in the log already:",
            (false, false) => "loaded",
        };
        let formats: BTreeSet<&str> =
            self.files.reports.iter().filter_map(|file| file.format.as_deref()).collect();
        let formats = formats.into_iter().collect::<Vec<_>>().join(", ");
        let formats = if formats.is_empty() { formats } else { format!(" ({formats})") };
        let (rows, seconds, speed) = (counted(self.rows_total, "row"), self.seconds, self.speed());
        let of = if loaded == files { counted(files, "file") } else { format!("{loaded} of {files} files") };
        report.add_fact(format!("{verb} {rows} of {of}{formats} in {seconds:.1} s{speed}"));
        add_counts(&mut report, &self.rows);
        for (reason, rows) in &self.skipped_rows {
            report.add_fact(format!("skipped by the map: {} ({reason})", counted(*rows, "row")));
        }
        self.files.add_to(&mut report);
        for file in self.files.reports.iter().filter(|file| !file.doubles.is_empty()).take(MAX_LISTED) {
            let (name, columns) = (&file.file, join_names(&file.doubles, 0));
            report.add_fact(format!("{name} has binary doubles, read as their shortest decimals: {columns}"));
        }
        self.files.describe_time_zones().into_iter().for_each(|zone| report.add_fact(zone));
        self.symbols.describe().into_iter().for_each(|symbols| report.add_fact(symbols));
        if let Some(dates) = &self.dates {
            report.add_fact(format!("dates: {} to {}", dates.first, dates.last));
        }
        if self.new_source && !self.known_sources.is_empty() {
            report.add_fact(format!(
                "source {} is new; known: {}",
                self.source,
                self.known_sources.join(", ")
            ));
        }
        if self.rounded > 0 {
            report.add_fact(format!("rounded to 10 fraction digits: {}", counted(self.rounded, "number")));
        }
        self.add_currencies(&mut report);
        if let Some(conflicts) = &self.conflicting_prices {
            conflicts.add_to(&mut report);
        }
        self.review.add_to(&mut report);
        match (loaded < files, self.rejects_total) {
            (false, rejects) => report.add_fact(format!("rejected: {rejects}")),
            (true, 0) => {}
            (true, rejects) => {
                report.add_fact(format!("rejected: {} of the loaded files", counted(rejects, "row")));
            }
        }
        add_counts(&mut report, &self.rejects);
        add_examples(&mut report, &self.examples);
        if let Some(untouching) = &self.untouching_retractions {
            let (rows, source) = (counted(untouching.count, "retraction"), &self.source);
            report.add_fact(format!("warning: {rows} without a matching row of source {source}:"));
            untouching.first.iter().for_each(|one| report.add_fact(format!("  {one}")));
        }
        if self.mended > 0 {
            report.add_fact(format!("mended: {}", counted(self.mended, "earlier reject")));
        }
        if let Some(open) = self.open_rejects.filter(|open| *open > 0) {
            let source = &self.source;
            report.add_fact(format!(
                "open rejects of source {source}: {open} (ingest rejects --source {source} --export FILE.ndjson)"
            ));
        }
        if self.run.is_empty() {
            return report;
        }
        let Self { run, frames, frames_in_log, .. } = self;
        let batches = counted(frames, "record batch");
        let resumed = if self.resumed { ", resumed" } else { "" };
        let published = match (self.dry_run, frames_in_log) {
            (true, _) => format!("{batches} would be published"),
            (false, 0) => format!("{batches} published"),
            (false, _) if in_log => {
                format!("nothing published, {} found in the log", counted(frames_in_log, "record batch"))
            }
            (false, _) => format!("{batches} published, {frames_in_log} found in the log"),
        };
        report.add_fact(format!("run {run}{resumed}: {published}"));
        self.add_hold(&mut report);
        self.effect.iter().for_each(|effect| report.add_fact(effect.describe()));
        report
    }
}

/// Writes the first skipped files as `skipped`, and the number of the other ones as `more_skipped`.
fn serialize_skipped<S: Serializer>(skipped: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    let mut members = serializer.serialize_map(None)?;
    members.serialize_entry("skipped", &skipped[..skipped.len().min(MAX_LISTED)])?;
    if skipped.len() > MAX_LISTED {
        members.serialize_entry("more_skipped", &(skipped.len() - MAX_LISTED))?;
    }
    members.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_is_not_served_has_its_own_exit_code() {
        let gate = Some(GateResult::Failed { error: "no projector".to_owned() });
        let mut summary = LoadSummary { rows_total: 1, gate, ..LoadSummary::default() };
        summary.files.reports.extend([FileReport::default()]);
        let mut code = |state| {
            summary.set_state(state);
            summary.exit_code()
        };
        let states = [RunVisibility::Visible, RunVisibility::Held, RunVisibility::Excluded];
        assert_eq!(states.map(&mut code), [0, 4, 4]);
        summary.set_state(RunVisibility::Visible);
        assert_eq!(LoadSummary { dry_run: true, ..summary }.exit_code(), 4);
    }
}
