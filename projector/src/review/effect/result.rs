//! Effect of a load on the served figures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use market::bars::Bars;
use market::event::Kind;
use market::history::SourcePolicy;
use market::metrics::RowsBySource;
use market::metrics::source_preference::DEFAULT_CHOICE;
use market::row::Quarantined;
use serde::Serialize;
use store::ids::GenerationId;
use telemetry::counted;
use telemetry::report::{Report, ReportTable, subject_line};

use super::comparison::{COMPARED, ComparedRows, SecurityFigures};
use super::load_figures::{LoadFigures, LoadedRows, SecurityChange};
use crate::review::compare::{DiffAccumulator, DifferenceFile, Differences, TableDiff, each_pair};

const MAX_NAMED: usize = 10;

#[derive(Debug, Serialize)]
pub(crate) struct RunEffect {
    pub run: String,
    pub source: Option<String>,
    pub complete: bool,
    pub generation: GenerationId,
    /// Log sequence of the run's first message; null for a dry run.
    pub first_message: Option<i64>,
    pub last_message: i64,
    #[serde(skip)]
    pub loaded: LoadedRows,
    #[serde(flatten)]
    pub found: FoundEffect,
}

/// Effect of a run on the affected securities. A security is affected if an input of its derivation changed, even if
/// its rows are equal.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FoundEffect {
    /// Market date before the run, and current market date. Each is null if no session is known.
    pub(super) as_of: [Option<NaiveDate>; 2],
    /// Number of affected securities that were listed before the run or are listed now.
    pub(crate) compared: u64,
    pub(super) changed: u64,
    /// Sources of which the figures now use fewer rows, each with a source of which they use more.
    pub(crate) replaced: Vec<SourceReplacement>,
    pub(crate) quarantined: QuarantineChange,
    pub(super) flags: Vec<FlagChange>,
    #[serde(skip)]
    pub(crate) figures: LoadFigures,
    #[serde(flatten)]
    pub(super) differences: Differences,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct QuarantineChange {
    /// Number of rows that are quarantined now, but were not quarantined before the run.
    pub added: u64,
    /// Number of rows that were quarantined before the run, but are not quarantined now.
    pub released: u64,
    /// Rows that are quarantined now, but were not quarantined before the run. The list contains only the first ones.
    pub first: Vec<Quarantined>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct FlagChange {
    /// Code of the flag, for example `payment_gap`. The column `flags` of table `metrics` contains these codes.
    pub flag: String,
    pub added: u64,
    pub removed: u64,
    pub first: Vec<String>,
}

impl RunEffect {
    pub(super) fn truncated(mut self, limit: usize) -> Self {
        self.found.differences = self.found.differences.truncated(limit);
        self.found.quarantined.first.truncate(limit);
        self
    }

    pub(crate) fn report(&self) -> Report {
        let FoundEffect { changed, compared, replaced, quarantined, flags, differences, .. } = &self.found;
        let mut report = Report::new(format!("Effect of run {}", self.run));
        report.add_fact(format!("{changed} of {} changed", counted(compared, "touched security")));
        if let [before, after] = self.found.as_of
            && before != after
        {
            let day = |date: Option<NaiveDate>| date.map_or("none".to_owned(), |date| date.to_string());
            report.add_fact(format!("the market date moved from {} to {}", day(before), day(after)));
        }
        if !self.complete {
            report.add_fact("the run is incomplete; ingest resume continues it");
        }
        if differences.identical {
            report.add_fact("no served figure changed");
        }
        report.add_filled_table(SourceReplacement::table(replaced));
        differences.add_charts(&mut report);
        differences.add_topics(&mut report);
        if quarantined.added + quarantined.released > 0 {
            report.add_table(quarantined.to_table());
        }
        report.add_filled_table(FlagChange::table(flags));
        if !differences.identical {
            Differences::add_tables(&mut report, differences.differing_tables());
        }
        differences.add_rows(&mut report, false);
        report
    }
}

impl QuarantineChange {
    pub(super) fn add(&mut self, sides: [Option<&SecurityFigures>; 2], keep: usize) {
        let [before, after] = sides.map(|side| side.map_or(&[][..], |side| &side.rows.quarantined));
        for row in after.iter().filter(|row| !before.contains(row)) {
            self.added += 1;
            if self.first.len() < keep {
                self.first.push(row.clone());
            }
        }
        self.released += before.iter().filter(|row| !after.contains(row)).count() as u64;
    }

    fn to_table(&self) -> ReportTable {
        let columns = &["symbol", "kind", "date", "reason", "seen", "source", "line"];
        let title = format!("quarantined rows: {} more, {} fewer", self.added, self.released);
        let mut table = ReportTable::new(title, columns);
        for row in &self.first {
            let Quarantined { symbol, kind, reason, message, source, line, .. } = row.clone();
            let text = format!("{reason}: {message} (source {source}, line {line})");
            let date = row.date.map(|date| date.to_string()).unwrap_or_default();
            let cells = [symbol.clone(), kind, date, reason, message, source, line.to_string()];
            table.add_row([subject_line(&symbol, &text)], cells);
        }
        table
    }
}

impl FlagChange {
    fn table(flags: &[Self]) -> ReportTable {
        let mut table = ReportTable::new("flags of securities", &["flag", "more", "fewer", "first"]);
        for Self { flag, added, removed, first } in flags {
            let text = format!("    {flag:<28} {added} more, {removed} fewer  {}", first.join(", "));
            table.add_row([text], [flag.clone(), added.to_string(), removed.to_string(), first.join(" ")]);
        }
        table
    }
}

/// Effect of the run on the securities that were compared so far.
pub(super) struct EffectAccumulator {
    /// Maximum number of rows per list.
    keep: usize,
    found: FoundEffect,
    differences: DiffAccumulator,
    replacements: Replacements,
    flags: BTreeMap<String, FlagChange>,
}

impl EffectAccumulator {
    /// Creates an accumulator. All differing rows are written to `files`.
    pub(super) fn new(keep: usize, files: Vec<DifferenceFile>) -> Self {
        let mut differences = DiffAccumulator::new(keep, files);
        for table in COMPARED {
            differences.begin_table(TableDiff { table: table.to_owned(), ..TableDiff::default() });
        }
        let (found, replacements, flags) = Default::default();
        Self { keep, found, differences, replacements, flags }
    }

    pub(super) fn add(
        &mut self,
        symbol: &str,
        sides: [Option<&SecurityFigures>; 2],
        rows: Option<Vec<ComparedRows>>,
        change: SecurityChange,
        policy: &SourcePolicy,
    ) -> anyhow::Result<()> {
        if sides.iter().all(Option::is_none) {
            return Ok(());
        }
        let nothing = RowsBySource::new();
        if let Some(rows) = rows {
            self.found.changed += u64::from(self.add_differences(symbol, sides, rows)?);
        }
        let sources = sides.map(|side| side.map_or(&nothing, |side| &side.sources));
        self.replacements.add(symbol, sources, policy);
        self.found.quarantined.add(sides, self.keep);
        self.add_flags(symbol, sides);
        self.found.figures.add(symbol, change);
        self.found.compared += 1;
        Ok(())
    }

    /// Adds the differing rows. Returns `true` if there are any.
    fn add_differences(
        &mut self,
        symbol: &str,
        sides: [Option<&SecurityFigures>; 2],
        rows: Vec<ComparedRows>,
    ) -> anyhow::Result<bool> {
        let (mut differs, none) = (false, Bars::default());
        for compared in rows {
            self.differences.add_row_counts(compared.table, compared.rows);
            differs |= !compared.differences.is_empty();
            compared.differences.into_iter().try_for_each(|found| self.differences.add_row(found))?;
        }
        let bars = sides.map(|side| side.map_or(&none, |side| &side.rows.bars));
        self.differences.add_row_counts("prices", bars.map(|bars| bars.years().len() as u64));
        if sides.iter().all(Option::is_some) && bars[0] != bars[1] {
            each_pair(bars, |pair| {
                differs |= self.differences.add_prices(symbol, pair)?;
                Ok(())
            })?;
        }
        Ok(differs)
    }

    fn add_flags(&mut self, symbol: &str, sides: [Option<&SecurityFigures>; 2]) {
        let [before, after] = sides.map(|side| {
            let flags = side.map(|side| side.rows.metrics.flags.0.iter().map(|flag| topic(flag)));
            flags.into_iter().flatten().collect::<BTreeSet<&str>>()
        });
        for flag in before.symmetric_difference(&after) {
            let new = || FlagChange { flag: (*flag).to_owned(), ..FlagChange::default() };
            let change = self.flags.entry((*flag).to_owned()).or_insert_with(new);
            if before.contains(flag) {
                change.removed += 1;
                continue;
            }
            change.added += 1;
            if change.first.len() < MAX_NAMED {
                change.first.push(symbol.to_owned());
            }
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<FoundEffect> {
        let (replaced, mut flags) = (self.replacements.finish(), Vec::from_iter(self.flags.into_values()));
        flags.sort_by_key(|change| std::cmp::Reverse(change.added + change.removed));
        Ok(FoundEffect { replaced, flags, differences: self.differences.finish()?, ..self.found })
    }
}

/// Code of a flag. In some flags, a colon and a record id follow the code.
fn topic(flag: &str) -> &str {
    flag.split(':').next().unwrap_or(flag)
}

/// Replacement of one source by another, in the figures of some securities, for one kind of rows.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReplacement {
    pub kind: Kind,
    /// New source. The figures use more rows of this source after the run than before.
    pub source: String,
    /// Replaced source. The figures use fewer of its rows after the run than before.
    pub replaced: String,
    pub securities: u64,
    /// Number of rows of the replaced source that the figures no longer use. Each price session counts as one row.
    pub rows: u64,
    /// Symbols of securities with this replacement: the first 10 in alphabetical order.
    pub first: Vec<String>,
    pub reason: &'static str,
    /// Command that the operator can run to undo the replacement. The command gives the replaced source rank 1.
    pub keep: String,
}

/// Replacements by kind, new source and replaced source.
#[derive(Debug, Default)]
pub(super) struct Replacements(BTreeMap<(Kind, String, String), SourceReplacement>);

impl Replacements {
    /// Adds the replacements in one security. `before` and `after` count its used rows by kind and source. For each
    /// kind, every source with more rows replaces every source with fewer rows.
    pub(super) fn add(&mut self, symbol: &str, [before, after]: [&RowsBySource; 2], policy: &SourcePolicy) {
        let count = |rows: &RowsBySource, feed: &(Kind, String)| rows.get(feed).copied().unwrap_or_default();
        for (lost, had) in before {
            let has = count(after, lost);
            let gained = after.iter().filter(|(feed, rows)| feed.0 == lost.0 && **rows > count(before, feed));
            for (gained, _) in gained.filter(|_| has < *had) {
                let key = (lost.0, gained.1.clone(), lost.1.clone());
                let new = || SourceReplacement::new(lost.0, &gained.1, &lost.1, policy);
                let replacement = self.0.entry(key).or_insert_with(new);
                replacement.securities += 1;
                replacement.rows += had - has;
                if replacement.first.len() < MAX_NAMED {
                    replacement.first.push(symbol.to_owned());
                }
            }
        }
    }

    pub(super) fn finish(self) -> Vec<SourceReplacement> {
        let mut all: Vec<SourceReplacement> = self.0.into_values().collect();
        all.sort_by_key(|replacement| Reverse(replacement.securities));
        all
    }
}

impl SourceReplacement {
    fn new(kind: Kind, source: &str, replaced: &str, policy: &SourcePolicy) -> Self {
        let is_ranked = policy.rules.iter().any(|rule| rule.kind == kind && rule.source == source);
        Self {
            kind,
            source: source.to_owned(),
            replaced: replaced.to_owned(),
            securities: 0,
            rows: 0,
            first: Vec::new(),
            reason: if is_ranked { "the source policy ranks it first" } else { DEFAULT_CHOICE },
            keep: format!("projector policy set {kind} {replaced} --rank 1 --now"),
        }
    }

    pub(super) fn table(replaced: &[Self]) -> ReportTable {
        let columns = &["kind", "source", "replaces", "symbols", "rows", "reason", "to keep it", "first"];
        let mut table = ReportTable::new("figures of one source replaced by another", columns);
        for Self { kind, source, replaced, securities, rows, first, reason, keep } in replaced {
            let (of, counted_rows) = (counted(securities, "symbol"), counted(rows, "row"));
            let figures = format!("{source} replaces {kind} figures of {replaced} for {of} ({counted_rows})");
            let lines = [
                format!("{figures}: {}; {reason}", first.join(", ")),
                format!("        → to keep {replaced}: {keep}"),
            ];
            let [kind, securities, rows] = [kind.to_string(), securities.to_string(), rows.to_string()];
            let (source, replaced, keep) = (source.clone(), replaced.clone(), keep.clone());
            let (reason, first) = ((*reason).to_owned(), first.join(" "));
            table.add_row(lines, [kind, source, replaced, securities, rows, reason, keep, first]);
        }
        table
    }
}
