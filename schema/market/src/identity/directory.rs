//! Directory of all securities, with look-up by every known symbol.
//!
//! Grouping of reference records by security, and choice of one record for each security.
//!
//! Claims of securities to symbols. A claim is the statement that a security uses a symbol in a period. Claims come
//! from the security's reference records. If several securities claim one symbol, the days of the symbol are divided
//! among the claims.
//!
//! Identity of a security, and its ticker tenures. A tenure is a symbol with the period in which the symbol belongs to
//! the security.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::address::{at_market, identifier_keys, mic};
use crate::day::{next_day, previous_day};
use crate::event::{Action, FormerSymbol, Kind, ListingStatus, Security};
use crate::history::SourcePolicy;
use crate::observation::{Observation, newest_by_key};
use crate::symbol::Symbol;

/// All securities, with look-up by every known symbol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityDirectory {
    /// Identities. The key is the canonical symbol: the current symbol, or the last one of a delisted security.
    pub identities: BTreeMap<Symbol, Identity>,
    /// Map from each known symbol to the canonical symbol of its current or last owner.
    pub symbols: BTreeMap<Symbol, Symbol>,
    /// Map from each known symbol to the canonical symbols of all its owners, past and present.
    owners: BTreeMap<Symbol, Vec<Symbol>>,
    /// Addresses that several securities have, such as the ISIN of two listings. The value is the only security that is
    /// not delisted; `None` without such a security, or if there are several.
    shared: BTreeMap<String, Option<Symbol>>,
}

impl SecurityDirectory {
    /// Builds the directory from reference records and the symbols of loaded rows (`known`). An unclaimed symbol
    /// becomes a provisional security, unless it is another spelling of a known preferred share.
    pub fn resolve(
        records: &[Observation<Security>],
        known: &BTreeSet<Symbol>,
        policy: &SourcePolicy,
    ) -> Self {
        let winners = newest_per_record(records);
        let groups = join_sources(&winners);
        let mut claims = Vec::new();
        let mut records = Vec::new();
        for group in &groups {
            let members: Vec<&Observation<Security>> = group.iter().map(|index| &winners[*index].1).collect();
            claims.extend(claims_of(&members, records.len()));
            records.push(preferred(&members, policy));
        }
        let mut directory = Self::default();
        directory.assign(&records, claims);
        known.iter().for_each(|symbol| directory.add_provisional(symbol));
        directory.find_shared();
        directory
    }

    /// Directory of stored identities. It cannot look up symbols: the maps `symbols` and `owners` are empty.
    pub fn from_identities(identities: BTreeMap<Symbol, Identity>) -> Self {
        let mut directory = Self { identities, ..Self::default() };
        directory.find_shared();
        directory
    }

    /// Keys that name the security `canonical`, in addition to its symbols. `symbols` has its symbols. If several
    /// securities have an address, each has a key of its own: the address, a space and the canonical symbol.
    pub fn address_keys<'a>(
        &self,
        canonical: &Symbol,
        symbols: impl Iterator<Item = &'a str>,
    ) -> Vec<String> {
        let Some(identity) = self.identities.get(canonical) else { return Vec::new() };
        let mut keys = Vec::new();
        for address in identity.addresses() {
            let owner = self.shared.get(&address);
            if owner.is_some() {
                keys.push(format!("{address} {canonical}"));
            }
            if owner.is_none_or(|only| only.as_ref() == Some(canonical)) {
                keys.push(address);
            }
        }
        let market = identity.market();
        keys.extend(symbols.filter_map(|symbol| Some(at_market(symbol, market.as_deref()?))));
        keys
    }

    /// Canonical symbols of the securities with an address that other securities have only in one of the two
    /// directories. Their [`SecurityDirectory::address_keys`] may differ.
    pub fn changed_owners(&self, before: &Self) -> BTreeSet<Symbol> {
        let differs = |address: &String| self.shared.get(address) != before.shared.get(address);
        if self.shared == before.shared {
            return BTreeSet::new();
        }
        let moved = self.identities.values().filter(|identity| identity.addresses().iter().any(differs));
        moved.map(|identity| identity.symbol.clone()).collect()
    }

    fn find_shared(&mut self) {
        let mut first: HashMap<String, (&Symbol, bool)> = HashMap::new();
        let mut shared: BTreeMap<String, Vec<&Symbol>> = BTreeMap::new();
        for (symbol, identity) in &self.identities {
            let is_active = identity.is_active();
            for address in identity.addresses() {
                if let Some((other, other_is_active)) = first.get(&address) {
                    let active = shared
                        .entry(address)
                        .or_insert_with(|| other_is_active.then_some(*other).into_iter().collect());
                    active.extend(is_active.then_some(symbol));
                } else {
                    first.insert(address, (symbol, is_active));
                }
            }
        }
        let only = |active: Vec<&Symbol>| match active.as_slice() {
            [only] => Some((*only).clone()),
            _ => None,
        };
        self.shared = shared.into_iter().map(|(address, active)| (address, only(active))).collect();
    }

    /// Canonical symbols of all securities that use `symbol` or used it earlier.
    pub fn owners(&self, symbol: &Symbol) -> &[Symbol] {
        self.owners.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// Assigns the days of each symbol to the securities that claim the symbol.
    fn assign(&mut self, records: &[Observation<Security>], claims: Vec<Claim>) {
        let mut by_symbol: BTreeMap<Symbol, Vec<Claim>> = BTreeMap::new();
        for claim in claims {
            by_symbol.entry(claim.symbol.clone()).or_default().push(claim);
        }
        let mut spans: Vec<Vec<TickerTenure>> = vec![Vec::new(); records.len()];
        let mut resolving: BTreeMap<Symbol, usize> = BTreeMap::new();
        for (symbol, claims) in &mut by_symbol {
            claims.sort_by_key(|claim| (claim.from, claim.to, claim.current, claim.security));
            for (claim, (from, to)) in claims.iter().zip(divide_days(claims)) {
                spans[claim.security].push(TickerTenure { symbol: symbol.clone(), from, to });
            }
            if let Some(last) = claims.last() {
                resolving.insert(symbol.clone(), last.security);
            }
        }
        let canonical: Vec<Option<Symbol>> = records
            .iter()
            .enumerate()
            .map(|(index, record)| {
                Some(record.record.symbol.clone()).filter(|symbol| resolving.get(symbol) == Some(&index))
            })
            .collect();
        for (symbol, security) in resolving {
            if let Some(target) = &canonical[security] {
                self.symbols.insert(symbol, target.clone());
            }
        }
        for ((record, spans), canonical) in records.iter().zip(spans).zip(canonical) {
            let Some(symbol) = canonical else { continue };
            for span in &spans {
                self.owners.entry(span.symbol.clone()).or_default().push(symbol.clone());
            }
            self.identities
                .insert(symbol.clone(), Identity { symbol, security: Some(record.clone()), spans });
        }
    }

    /// Adds a symbol that no security claims. If it is another spelling of a known preferred share, it is added to that
    /// share (`BAC.L` to `BAC.PRL`). Any other symbol becomes a provisional security.
    fn add_provisional(&mut self, symbol: &Symbol) {
        if self.symbols.contains_key(symbol) {
            return;
        }
        let known = symbol.spellings().skip(1).find_map(|spelling| self.symbols.get(&spelling).cloned());
        let canonical = known.unwrap_or_else(|| symbol.clone());
        let span = TickerTenure { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        let identity = self.identities.entry(canonical.clone());
        identity
            .and_modify(|identity| identity.spans.push(span))
            .or_insert_with(|| Identity::provisional(symbol));
        self.symbols.insert(symbol.clone(), canonical.clone());
        self.owners.entry(symbol.clone()).or_default().push(canonical);
    }
}

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

/// Claim that a security uses `symbol` from the day `from` to the day `to`. It comes from the security's reference
/// records.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) security: usize,
    pub(super) symbol: Symbol,
    pub(super) from: NaiveDate,
    pub(super) to: NaiveDate,
    pub(super) current: bool,
}

/// Claims of one security, one per symbol. The current symbol is claimed from the last rename, or else from the IPO, to
/// the delisting.
pub(super) fn claims_of(members: &[&Observation<Security>], security: usize) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for record in members.iter().map(|member| &member.record) {
        let renamed =
            record.former_symbols.iter().filter(|f| f.symbol != record.symbol).filter_map(|f| f.to).max();
        let from = renamed.map(next_day).or(record.ipo_date).unwrap_or(NaiveDate::MIN);
        let delisted = record.delisted_on.filter(|_| record.status == ListingStatus::Delisted);
        let to = delisted.unwrap_or(NaiveDate::MAX).max(from);
        let mut add = |symbol: &Symbol, from: NaiveDate, to: NaiveDate, current: bool| match claims
            .iter_mut()
            .find(|claim| claim.symbol == *symbol)
        {
            Some(claim) => {
                (claim.from, claim.to, claim.current) =
                    (claim.from.min(from), claim.to.max(to), claim.current || current)
            }
            None => claims.push(Claim { security, symbol: symbol.clone(), from, to, current }),
        };
        add(&record.symbol, from, to, true);
        for former in record.former_symbols.iter().filter(|f| f.symbol != record.symbol) {
            let from_day = former.from.unwrap_or(NaiveDate::MIN);
            let to = former.to.unwrap_or_else(|| previous_day(from));
            add(&former.symbol, from_day, to.max(from_day), false);
        }
    }
    claims
}

/// Divides all days among the sorted claims of one symbol, as first and last day of each claim. A claim extends to the
/// start of the next one.
pub(super) fn divide_days(claims: &[Claim]) -> Vec<(NaiveDate, NaiveDate)> {
    let mut starts = vec![NaiveDate::MIN];
    for pair in claims.windows(2) {
        // Of two claims with the same start, the second begins after the end of the first.
        let start = if pair[1].from > pair[0].from { pair[1].from } else { next_day(pair[0].to) };
        starts.push(start.max(next_day(starts[starts.len() - 1])));
    }
    let ends = starts.iter().skip(1).map(|next| previous_day(*next)).chain([NaiveDate::MAX]);
    starts.iter().copied().zip(ends).collect()
}

/// Symbol of a security, and the period in which rows with this symbol belong to the security.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TickerTenure {
    /// Symbol of the security in the period.
    pub symbol: Symbol,
    /// First day of the period.
    pub from: NaiveDate,
    /// Last day of the period, included.
    pub to: NaiveDate,
}

/// Identity of a security: its reference record and its symbols, past and present.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Canonical symbol: the current symbol, or the last one of a delisted security.
    pub symbol: Symbol,
    /// Reference record; `None` for a provisional security.
    pub security: Option<Observation<Security>>,
    /// Current and former symbols of the security. Each symbol has the period in which it belongs to the security.
    pub spans: Vec<TickerTenure>,
}

impl Identity {
    /// Identity of a security without a reference record.
    pub fn provisional(symbol: &Symbol) -> Self {
        let span = TickerTenure { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        Self { symbol: symbol.clone(), security: None, spans: vec![span] }
    }

    /// Former symbols with the days of their use.
    pub fn former_symbols(&self) -> Vec<FormerSymbol> {
        self.security.as_ref().map(|s| s.record.former_symbols.clone()).unwrap_or_default()
    }

    /// True if the security is not delisted.
    pub(super) fn is_active(&self) -> bool {
        self.security.as_ref().is_none_or(|security| security.record.status == ListingStatus::Active)
    }

    /// Market identifier code of the listing; `None` if it is unknown.
    pub(super) fn market(&self) -> Option<String> {
        mic(self.security.as_ref()?.record.exchange.as_deref()?)
    }

    /// Identifiers of the security, each without and with the market.
    pub(super) fn addresses(&self) -> Vec<String> {
        let mut keys =
            self.security.as_ref().map(|security| identifier_keys(&security.record)).unwrap_or_default();
        if let Some(market) = self.market() {
            keys.extend(keys.iter().map(|key| at_market(key, &market)).collect::<Vec<_>>());
        }
        keys
    }

    /// True if a row with this symbol and this date belongs to the security.
    pub fn owns(&self, symbol: &str, date: NaiveDate) -> bool {
        self.spans.iter().any(|span| span.symbol.as_str() == symbol && span.from <= date && date <= span.to)
    }
}
