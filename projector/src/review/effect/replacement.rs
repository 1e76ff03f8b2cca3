//! Sources whose rows another source replaces in the figures.

use std::collections::BTreeMap;

use market::event::Kind;
use market::history::SourcePolicy;
use market::metrics::RowsBySource;
use serde::Serialize;
use telemetry::counted;

/// Largest number of named securities.
const MAX_NAMED: usize = 10;

/// Source whose rows of one kind another source replaces.
#[derive(Debug, Serialize)]
pub struct SourceReplacement {
    /// Kind of the rows.
    pub kind: Kind,
    /// Source from which the figures are derived now.
    pub source: String,
    /// Source from which the figures were derived before.
    pub replaced: String,
    /// Number of securities.
    pub securities: u64,
    /// Number of rows of the replaced source that are no longer used; for prices, number of sessions.
    pub rows: u64,
    /// First symbols in alphabetical order.
    pub first: Vec<String>,
    /// Reason why the new source is preferred.
    pub reason: &'static str,
    /// Command that prefers the replaced source.
    pub keep: String,
}

/// Replacements of all securities.
#[derive(Debug, Default)]
pub(super) struct Replacements(BTreeMap<(Kind, String, String), Replaced>);

#[derive(Debug, Default)]
struct Replaced {
    securities: u64,
    rows: u64,
    first: Vec<String>,
}

impl Replacements {
    /// Adds a security. If a source has fewer used rows than before, the sources with more used rows are its
    /// replacements.
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

    /// Replacements with the most securities first.
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
    /// The replacement as a sentence.
    pub(super) fn sentence(&self) -> String {
        let Self { kind, source, replaced, securities, rows, .. } = self;
        let (symbols, rows) = (counted(securities, "symbol"), counted(rows, "row"));
        format!("{source} replaces {kind} figures of {replaced} for {symbols} ({rows})")
    }
}
