//! Grouping of reference records by security, and choice of one record for each security.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use compact_str::CompactString;

use super::claim::{Claim, claims_of};
use crate::event::{Action, Kind, Security};
use crate::history::SourcePolicy;
use crate::observation::{Observation, newest_by_key};
use crate::symbol::Symbol;

pub(super) type KeyedRecord = ((CompactString, String), Observation<Security>);

/// Newest version of each record, without retracted records. Records are identified by source and `security_ref`, or
/// else record id, or else symbol.
pub(super) fn newest_per_record(records: &[Observation<Security>]) -> Vec<KeyedRecord> {
    let keyed = records.iter().map(|record| {
        let own = record.security_ref.clone().or_else(|| record.id.clone());
        ((record.source.clone(), own.unwrap_or_else(|| record.record.symbol.to_string())), record)
    });
    let newest = newest_by_key(keyed).into_iter();
    newest.filter(|(_, r)| r.action == Action::Put).map(|(key, r)| (key, r.clone())).collect()
}

/// Groups the records by security, as indexes into `winners`. Records of two sources belong together if they claim a
/// symbol for a common day.
pub(super) fn join_sources(winners: &[KeyedRecord]) -> Vec<Vec<usize>> {
    let mut parent: Vec<usize> = (0..winners.len()).collect();
    let mut by_symbol: BTreeMap<Symbol, Vec<(usize, Claim)>> = BTreeMap::new();
    for (index, (_, record)) in winners.iter().enumerate() {
        for claim in claims_of(&[record], index) {
            by_symbol.entry(claim.symbol.clone()).or_default().push((index, claim));
        }
    }
    for claims in by_symbol.values() {
        for (a, claim_a) in claims {
            for (b, claim_b) in claims {
                let overlap = claim_a.from <= claim_b.to && claim_b.from <= claim_a.to;
                if overlap && winners[*a].0.0 != winners[*b].0.0 {
                    let (root_a, root_b) = (root(&parent, *a), root(&parent, *b));
                    parent[root_a.max(root_b)] = root_a.min(root_b);
                }
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..winners.len()).for_each(|index| groups.entry(root(&parent, index)).or_default().push(index));
    groups.into_values().collect()
}

fn root(parent: &[usize], mut index: usize) -> usize {
    while parent[index] != index {
        index = parent[index];
    }
    index
}

/// Chooses the reference record for a security. Criteria, most important first: source `manual`, rank in the source
/// policy, newest observation, source name.
pub(super) fn preferred(members: &[&Observation<Security>], policy: &SourcePolicy) -> Observation<Security> {
    let best = members.iter().copied().min_by_key(|record| {
        let rules = policy.rules.iter().filter(|r| r.kind == Kind::Security && r.source == record.source);
        let rank = rules.map(|r| r.rank).min();
        let is_manual = record.source == "manual";
        (!is_manual, rank.is_none(), rank, Reverse(record.observed_at), record.source.as_str())
    });
    best.unwrap_or(members[0]).clone()
}
