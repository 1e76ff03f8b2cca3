//! Who a row belongs to (R26, R27): securities out of reference records, and the days each held its symbols.
//!
//! A security is one vendor record (its permanent reference, else its symbol), joined with other vendors' records
//! only where both claim the same symbol on the same days; never by name. A symbol nobody claims is a provisional
//! security. Everything is a pure function of the set of records.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::event::{Action, FormerSymbol, Kind, ListingStatus, Security};
use crate::history::{Observation, SourcePolicy};
use crate::symbol::Symbol;

/// A symbol and the days (inclusive) on which its rows belong to a security.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub symbol: Symbol,
    pub from: NaiveDate,
    pub to: NaiveDate,
}

/// One served security.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Canonical symbol: the current one, or the last one.
    pub symbol: Symbol,
    /// `None` for a provisional security.
    pub security: Option<Observation<Security>>,
    /// Where its rows are.
    pub spans: Vec<Span>,
}

impl Identity {
    /// A security known only by its rows.
    pub fn provisional(symbol: &Symbol) -> Self {
        let span = Span { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        Self { symbol: symbol.clone(), security: None, spans: vec![span] }
    }

    /// Symbols held before the current one.
    pub fn former_symbols(&self) -> Vec<FormerSymbol> {
        self.security.as_ref().map(|s| s.record.former_symbols.clone()).unwrap_or_default()
    }

    /// What names the security for good: the first symbol it is known to have held, with the day where another security
    /// held that symbol before.
    pub fn key(&self) -> String {
        let former = self.former_symbols().into_iter().min_by_key(|former| (former.from, former.to));
        let first = former.map_or_else(|| self.symbol.clone(), |former| former.symbol);
        let spans = self.spans.iter().filter(|span| span.symbol == first);
        match spans.map(|span| span.from).min().filter(|from| *from > NaiveDate::MIN) {
            Some(from) => format!("{first}~{from}"),
            None => first.to_string(),
        }
    }

    /// Whether a row of `symbol` dated `date` is this security's.
    pub fn owns(&self, symbol: &str, date: NaiveDate) -> bool {
        self.spans.iter().any(|span| span.symbol.as_str() == symbol && span.from <= date && date <= span.to)
    }
}

/// All securities, and what every known symbol resolves to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Directory {
    /// By canonical symbol.
    pub identities: BTreeMap<Symbol, Identity>,
    /// Every symbol ever held, to the canonical symbol of its current or last holder.
    pub symbols: BTreeMap<Symbol, Symbol>,
    /// Every symbol ever held, to the canonical symbols of all its holders.
    holders: BTreeMap<Symbol, Vec<Symbol>>,
}

/// A record's claim to a symbol.
#[derive(Debug, Clone)]
struct Claim {
    security: usize,
    symbol: Symbol,
    from: NaiveDate,
    to: NaiveDate,
    current: bool,
}

impl Directory {
    /// Resolves all reference records; `known` are the symbols of all facts, so that provisional ones are found.
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
        directory
    }

    /// The identities alone, as they were stored; resolve again before looking symbols up.
    pub fn of(identities: BTreeMap<Symbol, Identity>) -> Self {
        Self { identities, ..Self::default() }
    }

    /// Canonical symbols of every security a row of `symbol` may belong to.
    pub fn holders(&self, symbol: &Symbol) -> &[Symbol] {
        self.holders.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// Gives every symbol's days to its claimants.
    fn assign(&mut self, records: &[Observation<Security>], claims: Vec<Claim>) {
        let mut by_symbol: BTreeMap<Symbol, Vec<Claim>> = BTreeMap::new();
        for claim in claims {
            by_symbol.entry(claim.symbol.clone()).or_default().push(claim);
        }
        let mut spans: Vec<Vec<Span>> = vec![Vec::new(); records.len()];
        let mut resolving: BTreeMap<Symbol, usize> = BTreeMap::new();
        for (symbol, claims) in &mut by_symbol {
            claims.sort_by_key(|claim| (claim.from, claim.to, claim.current, claim.security));
            for (claim, (from, to)) in claims.iter().zip(shares(claims)) {
                spans[claim.security].push(Span { symbol: symbol.clone(), from, to });
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
                self.holders.entry(span.symbol.clone()).or_default().push(symbol.clone());
            }
            self.identities
                .insert(symbol.clone(), Identity { symbol, security: Some(record.clone()), spans });
        }
    }

    /// A symbol nobody claims: another spelling of a known preferred share, else a security of its own.
    fn add_provisional(&mut self, symbol: &Symbol) {
        if self.symbols.contains_key(symbol) {
            return;
        }
        let known =
            symbol.spellings().into_iter().skip(1).find_map(|spelling| self.symbols.get(&spelling).cloned());
        let canonical = known.unwrap_or_else(|| symbol.clone());
        let span = Span { symbol: symbol.clone(), from: NaiveDate::MIN, to: NaiveDate::MAX };
        match self.identities.get_mut(&canonical) {
            Some(identity) => identity.spans.push(span),
            None => {
                self.identities.insert(canonical.clone(), Identity::provisional(symbol));
            }
        }
        self.symbols.insert(symbol.clone(), canonical.clone());
        self.holders.entry(symbol.clone()).or_default().push(canonical);
    }
}

/// The version order of R29 for records without dates to prefer: the greater wins.
fn rank<T>(a: &Observation<T>, b: &Observation<T>) -> Ordering {
    let retracted = |o: &Observation<T>| o.action == Action::Retract;
    (a.revision, a.observed_at, retracted(a), a.line, &a.frame).cmp(&(
        b.revision,
        b.observed_at,
        retracted(b),
        b.line,
        &b.frame,
    ))
}

type Keyed = ((String, String), Observation<Security>);

/// One live record per source and key (the vendor's security reference or id, else the symbol).
fn newest_per_record(records: &[Observation<Security>]) -> Vec<Keyed> {
    let mut newest: BTreeMap<(String, String), &Observation<Security>> = BTreeMap::new();
    for record in records {
        let key = record
            .security_ref
            .clone()
            .or_else(|| record.id.clone())
            .unwrap_or_else(|| record.record.symbol.to_string());
        let slot = newest.entry((record.source.clone(), key)).or_insert(record);
        if rank(record, slot) == Ordering::Greater {
            *slot = record;
        }
    }
    newest.into_iter().filter(|(_, r)| r.action == Action::Put).map(|(key, r)| (key, r.clone())).collect()
}

/// Groups records of different sources that claim one symbol on the same days.
fn join_sources(winners: &[Keyed]) -> Vec<Vec<usize>> {
    let mut parent: Vec<usize> = (0..winners.len()).collect();
    let mut by_symbol: BTreeMap<Symbol, Vec<(usize, Claim)>> = BTreeMap::new();
    for (index, (_, record)) in winners.iter().enumerate() {
        for claim in claims_of(&[record], index) {
            by_symbol.entry(claim.symbol.clone()).or_default().push((index, claim));
        }
    }
    for claims in by_symbol.values() {
        for (position, (a, claim_a)) in claims.iter().enumerate() {
            for (b, claim_b) in &claims[position + 1..] {
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

/// What a security's records claim: former symbols on their days, the current one since the last of them.
fn claims_of(members: &[&Observation<Security>], security: usize) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for record in members.iter().map(|member| &member.record) {
        let renamed =
            record.former_symbols.iter().filter(|f| f.symbol != record.symbol).filter_map(|f| f.to).max();
        let from = renamed.map(after).or(record.ipo_date).unwrap_or(NaiveDate::MIN);
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
            add(&former.symbol, from_day, former.to.unwrap_or_else(|| before(from)).max(from_day), false);
        }
    }
    claims
}

/// Divides all days among claims in order: each holds from its start to the next one's, so that days nobody
/// claims go to the holder before them and days before the first claim to the first.
fn shares(claims: &[Claim]) -> Vec<(NaiveDate, NaiveDate)> {
    let mut starts = vec![NaiveDate::MIN];
    for pair in claims.windows(2) {
        let start = if pair[1].from > pair[0].from { pair[1].from } else { after(pair[0].to) };
        starts.push(start.max(after(starts[starts.len() - 1])));
    }
    let ends = starts.iter().skip(1).map(|next| before(*next)).chain([NaiveDate::MAX]);
    starts.iter().copied().zip(ends).collect()
}

/// The record to serve: manual, then policy rank, then the newest, then the source's name.
fn preferred(members: &[&Observation<Security>], policy: &SourcePolicy) -> Observation<Security> {
    let score = |record: &Observation<Security>| {
        let rank = policy
            .rules
            .iter()
            .filter(|r| r.kind == Kind::Security && r.source == record.source)
            .map(|r| r.rank)
            .min();
        let manual = record.source == "manual";
        (!manual, rank.unwrap_or(i32::MAX), std::cmp::Reverse(record.observed_at), record.source.clone())
    };
    let mut best = members[0];
    for member in &members[1..] {
        if score(member) < score(best) {
            best = member;
        }
    }
    best.clone()
}

fn after(date: NaiveDate) -> NaiveDate {
    date.succ_opt().unwrap_or(NaiveDate::MAX)
}

fn before(date: NaiveDate) -> NaiveDate {
    date.pred_opt().unwrap_or(NaiveDate::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SecurityType;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn record(
        source: &str,
        reference: &str,
        symbol: &str,
        former: &[(&str, &str, &str)],
        delisted: Option<&str>,
    ) -> Observation<Security> {
        let former_symbols = former
            .iter()
            .map(|(s, from, to)| FormerSymbol {
                symbol: Symbol::parse(s).unwrap(),
                from: Some(date(from)),
                to: Some(date(to)),
            })
            .collect();
        let record: Security = serde_json::from_value(serde_json::json!({
            "symbol": symbol, "name": symbol, "type": SecurityType::Stock, "currency": "USD",
            "status": if delisted.is_some() { "delisted" } else { "active" }, "delisted_on": delisted,
        }))
        .unwrap();
        Observation {
            source: source.into(),
            id: None,
            security_ref: Some(reference.into()),
            revision: 0,
            action: Action::Put,
            observed_at: Default::default(),
            line: 1,
            frame: String::new(),
            record: Security { former_symbols, ..record },
        }
    }

    fn resolve(records: &[Observation<Security>], known: &[&str]) -> Directory {
        let known: BTreeSet<Symbol> = known.iter().map(|s| Symbol::parse(s).unwrap()).collect();
        Directory::resolve(records, &known, &SourcePolicy::default())
    }

    fn owner(directory: &Directory, symbol: &str, day: &str) -> Vec<String> {
        directory
            .identities
            .values()
            .filter(|i| i.owns(symbol, date(day)))
            .map(|i| i.symbol.to_string())
            .collect()
    }

    #[test]
    fn a_renamed_company_keeps_its_history_and_a_reused_ticker_is_another_security() {
        let facebook = record("a", "1", "META", &[("FB", "2012-05-18", "2022-06-08")], None);
        let roundhill = record("a", "2", "METV", &[("META", "2021-06-30", "2022-01-30")], None);
        let directory = resolve(&[facebook, roundhill], &["FB", "META", "METV"]);
        assert_eq!(owner(&directory, "FB", "2015-01-02"), ["META"]);
        assert_eq!(owner(&directory, "META", "2021-07-01"), ["METV"]);
        assert_eq!(owner(&directory, "META", "2023-01-03"), ["META"]);
        assert_eq!(directory.symbols[&Symbol::parse("FB").unwrap()].as_str(), "META");
        assert_eq!(directory.symbols[&Symbol::parse("META").unwrap()].as_str(), "META");
    }

    #[test]
    fn an_active_security_takes_over_a_delisted_ones_ticker() {
        let old = record("a", "1", "XYZ", &[], Some("2010-05-05"));
        let new = record("a", "2", "XYZ", &[], None);
        let directory = resolve(&[old, new.clone()], &["XYZ"]);
        let identity = &directory.identities[&Symbol::parse("XYZ").unwrap()];
        assert_eq!(identity.security.as_ref().map(|s| s.security_ref.clone()), Some(new.security_ref));
        assert!(!identity.owns("XYZ", date("2009-01-02")) && identity.owns("XYZ", date("2011-01-03")));
    }

    #[test]
    fn two_vendors_of_one_ticker_are_one_security() {
        let directory =
            resolve(&[record("a", "1", "KO", &[], None), record("b", "x", "KO", &[], None)], &["KO"]);
        assert_eq!(directory.identities.len(), 1);
        assert_eq!(owner(&directory, "KO", "1990-01-02"), ["KO"]);
    }

    #[test]
    fn unknown_symbols_are_provisional_and_preferred_spellings_find_their_security() {
        let directory = resolve(&[record("a", "1", "BAC.PRL", &[], None)], &["BAC.L", "NEW"]);
        assert_eq!(owner(&directory, "BAC.L", "2020-01-02"), ["BAC.PRL"]);
        assert!(directory.identities[&Symbol::parse("NEW").unwrap()].security.is_none());
    }
}
