//! Replaced sources. Compared with the time before a run, the figures use fewer rows of a replaced source, and more
//! rows of another source.

use std::collections::BTreeMap;

use market::event::Kind;
use market::history::SourcePolicy;
use market::metrics::RowsBySource;
use serde::Serialize;
use telemetry::counted;

/// Maximum number of securities that are named per replaced source.
const MAX_NAMED: usize = 10;

/// Source of one kind of rows, replaced in the figures of some securities by another source.
#[derive(Debug, Serialize)]
pub struct SourceReplacement {
    /// Kind of the rows.
    pub kind: Kind,
    /// Source whose rows the figures use after the run.
    pub source: String,
    /// Source whose rows the figures used before the run.
    pub replaced: String,
    /// Number of securities with this replacement.
    pub securities: u64,
    /// Number of rows of the replaced source that the figures used before and do not use now. For prices, a row is a
    /// session.
    pub rows: u64,
    /// Symbols of the first securities with this replacement in alphabetical order, at most 10.
    pub first: Vec<String>,
    /// Reason why the figures use the other source.
    pub reason: &'static str,
    /// Command that ranks the replaced source first again.
    pub keep: String,
}

/// Replacements so far, counted over all securities.
#[derive(Debug, Default)]
pub(super) struct Replacements(BTreeMap<(Kind, String, String), Replaced>);

#[derive(Debug, Default)]
struct Replaced {
    securities: u64,
    rows: u64,
    first: Vec<String>,
}

impl Replacements {
    /// Adds a security, given the number of rows that its figures used of each source before and after the run. A
    /// source whose number fell counts as replaced by each source of the same kind whose number rose.
    pub(super) fn add(&mut self, symbol: &str, [before, after]: [&RowsBySource; 2]) {
        let count = |rows: &RowsBySource, feed: &(Kind, String)| rows.get(feed).copied().unwrap_or_default();
        for (lost, had) in before {
            let has = count(after, lost);
            let gained = after.iter().filter(|(feed, rows)| feed.0 == lost.0 && **rows > count(before, feed));
            for (gained, _) in gained.filter(|_| has < *had) {
                let key = (lost.0, gained.1.clone(), lost.1.clone());
                let replaced = self.0.entry(key).or_default();
                replaced.securities += 1;
                replaced.rows += had - has;
                if replaced.first.len() < MAX_NAMED {
                    replaced.first.push(symbol.to_owned());
                }
            }
        }
    }

    /// Replacements, those with the most securities first.
    pub(super) fn finish(self, policy: &SourcePolicy) -> Vec<SourceReplacement> {
        let is_ranked = |kind: Kind, source: &str| {
            policy.rules.iter().any(|rule| rule.kind == kind && rule.source == source)
        };
        let replacement = |((kind, source, replaced), found): ((Kind, String, String), Replaced)| {
            let reason = match is_ranked(kind, &source) {
                true => "the source policy ranks it first",
                false => "the newest source wins",
            };
            let keep = format!("projector policy set {kind} {replaced} --rank 1 --now");
            let Replaced { securities, rows, first } = found;
            SourceReplacement { kind, source, replaced, securities, rows, first, reason, keep }
        };
        let mut all: Vec<SourceReplacement> = self.0.into_iter().map(replacement).collect();
        all.sort_by_key(|replacement| std::cmp::Reverse(replacement.securities));
        all
    }
}

impl SourceReplacement {
    /// Sentence that describes the replacement.
    pub(super) fn sentence(&self) -> String {
        let Self { kind, source, replaced, securities, rows, .. } = self;
        let (symbols, rows) = (counted(securities, "symbol"), counted(rows, "row"));
        format!("{source} replaces {kind} figures of {replaced} for {symbols} ({rows})")
    }
}
