//! Effect of a load on the served figures.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use market::row::Quarantined;
use serde::Serialize;
use store::ids::GenerationId;
use telemetry::counted;

use super::replacement::SourceReplacement;
use super::security_figures::SecurityFigures;
use crate::review::diff::Differences;

/// Maximum number of securities that are listed per flag.
const MAX_NAMED: usize = 10;

/// Effect of a run on the served figures.
#[derive(Debug, Serialize)]
pub struct RunEffect {
    /// Id of the run.
    pub run: String,
    /// Source (feed) that the run loaded; null if unknown.
    pub source: Option<String>,
    /// `true` if the facts contain the last message of the run.
    pub complete: bool,
    /// Served generation.
    pub generation: GenerationId,
    /// Log sequence of the run's first message; null for a dry run.
    pub first_message: Option<i64>,
    /// Sequence of the last log message that the served tables contain.
    pub last_message: i64,
    #[serde(flatten)]
    pub(super) found: FoundEffect,
}

/// Effect of a run on the affected securities. A security is affected if an input of its derivation changed, even if
/// its rows are equal.
#[derive(Debug, Default, Serialize)]
pub(super) struct FoundEffect {
    /// Market date before the run, and current market date. Each is null if no session is known.
    pub(super) as_of: [Option<NaiveDate>; 2],
    /// Number of affected securities that were listed before the run or are listed now.
    pub(super) compared: u64,
    /// Number of affected securities with at least one differing row.
    pub(super) changed: u64,
    /// Sources of which the figures now use fewer rows, each with a source of which they use more.
    pub(super) replaced: Vec<SourceReplacement>,
    pub(super) quarantined: QuarantineChange,
    /// Flags that securities gained or lost, each with the numbers of securities.
    pub(super) flags: Vec<FlagChange>,
    /// Differences between the rows before the run and the current rows.
    #[serde(flatten)]
    pub(super) differences: Differences,
}

/// Difference between the rows that were quarantined before the run and the rows that are quarantined now.
#[derive(Debug, Default, Serialize)]
pub struct QuarantineChange {
    /// Number of rows that are quarantined now, but were not quarantined before the run.
    pub added: u64,
    /// Number of rows that were quarantined before the run, but are not quarantined now.
    pub released: u64,
    /// Rows that are quarantined now, but were not quarantined before the run. The list contains only the first ones.
    pub first: Vec<Quarantined>,
}

/// Flag, with the numbers of securities that gained or lost the flag.
#[derive(Debug, Default, Serialize)]
pub struct FlagChange {
    /// Code of the flag, for example `payment_gap`. The column `flags` of table `metrics` contains these codes.
    pub flag: String,
    /// Number of securities that gained the flag: they did not have it before the run, but have it now.
    pub added: u64,
    /// Number of securities that lost the flag: they had it before the run, but do not have it now.
    pub removed: u64,
    /// Symbols of the first 10 securities that gained the flag.
    pub first: Vec<String>,
}

impl RunEffect {
    /// Shortens the lists of each table, each topic and the quarantined rows to `limit` rows.
    pub(super) fn truncated(mut self, limit: usize) -> Self {
        self.found.differences = self.found.differences.truncated(limit);
        self.found.quarantined.first.truncate(limit);
        self
    }

    /// Returns a sentence with the number of changed securities and the number of affected securities. If the market
    /// date changed, the sentence also contains the old and the new market date.
    pub(super) fn scope(&self) -> String {
        let FoundEffect { changed, compared, .. } = &self.found;
        let touched = counted(compared, "touched security");
        let scope = format!("run {}: {changed} of {touched} changed", self.run);
        match self.found.as_of {
            [before, after] if before == after => scope,
            [before, after] => {
                let day = |date: Option<NaiveDate>| date.map_or("none".to_owned(), |date| date.to_string());
                format!("{scope}; the market date moved from {} to {}", day(before), day(after))
            }
        }
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

    /// Returns the change as text; `None` if no row was quarantined or released.
    pub(super) fn sentence(&self) -> Option<String> {
        let Self { added, released, .. } = self;
        (added + released > 0).then(|| format!("quarantined rows: {added} more, {released} fewer"))
    }
}

#[derive(Debug, Default)]
pub(super) struct FlagChanges(BTreeMap<String, FlagChange>);

impl FlagChanges {
    pub(super) fn add(&mut self, symbol: &str, sides: [Option<&SecurityFigures>; 2]) {
        let [before, after] = sides.map(|side| {
            let flags = side.map(|side| side.rows.metrics.flags.0.iter().map(|flag| topic(flag)));
            flags.into_iter().flatten().collect::<BTreeSet<&str>>()
        });
        for flag in after.difference(&before) {
            let change = self.change(flag);
            change.added += 1;
            if change.first.len() < MAX_NAMED {
                change.first.push(symbol.to_owned());
            }
        }
        before.difference(&after).for_each(|flag| self.change(flag).removed += 1);
    }

    fn change(&mut self, flag: &str) -> &mut FlagChange {
        let named = || FlagChange { flag: flag.to_owned(), ..FlagChange::default() };
        self.0.entry(flag.to_owned()).or_insert_with(named)
    }

    /// Returns the changes of all flags. The flag that most securities gained or lost is the first one.
    pub(super) fn finish(self) -> Vec<FlagChange> {
        let mut changes: Vec<FlagChange> = self.0.into_values().collect();
        changes.sort_by_key(|change| std::cmp::Reverse(change.added + change.removed));
        changes
    }
}

/// Code of a flag. In some flags, a colon and a record id follow the code.
fn topic(flag: &str) -> &str {
    flag.split(':').next().unwrap_or(flag)
}
