//! Sources that were replaced by another source. After a run, the figures use fewer rows of the replaced source and
//! more rows of the other source.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use market::event::Kind;
use market::history::SourcePolicy;
use market::metrics::RowsBySource;
use market::metrics::source_preference::DEFAULT_CHOICE;
use serde::Serialize;
use telemetry::counted;
use telemetry::report::ReportTable;

const MAX_NAMED: usize = 10;

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
