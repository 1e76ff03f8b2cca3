//! Accounts as they were last read or written, so that their next calls can be charged without reading them first.
//!
//! Invariant: what is remembered decides nothing by itself. An account is charged only if its row still is the one that
//! is remembered, and whatever a decision depends on gives that row a new version.

use std::collections::HashMap;
use std::time::Instant;

use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use tokio_postgres::{Error, Row};

use super::accounts::{Account, Accounts, Key};
use super::clock::StoreClock;
use super::credential::Presented;
use super::row_version::RowVersion;

/// Keys remembered at most; when there are more, all are forgotten.
const MOST: usize = 65_536;
/// An account that another instance changed is read before every charge until so many reads in a row have found it
/// unchanged. Until then a charge by what is remembered would mostly be refused.
const QUIET_READS: u8 = 3;

/// Accounts by their keys.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) clock: StoreClock,
    /// By their tags.
    keys: HashMap<u128, Key, RandomState>,
    accounts: HashMap<i64, Account, RandomState>,
    epochs: u64,
}

/// The versions of accounts' rows that were written.
pub(super) type Written = HashMap<i64, RowVersion, RandomState>;

impl Memory {
    pub(super) fn new() -> Self {
        Self { clock: StoreClock::new(), keys: HashMap::default(), accounts: HashMap::default(), epochs: 0 }
    }

    /// Takes the accounts that may be charged unread, with their buckets filled up to the present, and these keys.
    pub(super) fn take(&mut self, presented: &[Presented]) -> Accounts {
        let Some(now) = self.clock.at(Instant::now()) else {
            return Accounts { list: vec![], keys: vec![None; presented.len()] };
        };
        let keys: Vec<Option<Key>> = presented.iter().map(|key| self.key(key.tag, now)).collect();
        let mut ids: Vec<i64> = keys.iter().flatten().map(|key| key.account).collect();
        ids.sort_unstable();
        ids.dedup();
        let list: Vec<Account> = ids.into_iter().filter_map(|id| self.account(id, now)).collect();
        let with_position = |key: Key| {
            let position = list.binary_search_by_key(&key.account, |account| account.limiter.account).ok()?;
            Some((position, key))
        };
        let keys = keys.into_iter().map(|key| key.and_then(with_position)).collect();
        Accounts { list, keys }
    }

    fn key(&self, tag: u128, now: DateTime<Utc>) -> Option<Key> {
        let valid = |key: &&Key| {
            let epoch = self.accounts.get(&key.account).map(|account| account.epoch);
            epoch == Some(key.epoch) && key.expires_at.is_none_or(|end| end > now)
        };
        let mut key = self.keys.get(&tag).filter(valid)?.clone();
        if let Some(own) = &mut key.own {
            own.limiter.advance(now);
        }
        Some(key)
    }

    fn account(&mut self, id: i64, now: DateTime<Utc>) -> Option<Account> {
        let known = self.accounts.get(&id)?;
        let is_usable = known.fresh || known.quiet_reads >= QUIET_READS;
        if !is_usable || known.paid_until.is_some_and(|end| end <= now) {
            return None;
        }
        let mut account = self.accounts.remove(&id)?;
        account.limiter.advance(now);
        Some(account)
    }

    /// Remembers accounts that were taken from here. One that was not written had been changed by another instance.
    pub(super) fn put_back(&mut self, presented: &[Presented], accounts: Accounts, written: &Written) {
        for (presented, key) in presented.iter().zip(accounts.keys) {
            let Some((_, key)) = key else { continue };
            if key.own.is_some() && written.contains_key(&key.account) {
                self.keys.insert(presented.tag, key);
            }
        }
        for mut account in accounts.list {
            account.fresh = false;
            match written.get(&account.limiter.account) {
                Some(version) => account.version = *version,
                None => account.quiet_reads = 0,
            }
            self.accounts.insert(account.limiter.account, account);
        }
    }

    /// Remembers the key in a row that was just read, and its account.
    pub(super) fn learn(&mut self, presented: &Presented, row: &Row) -> Result<(), Error> {
        if self.keys.len() >= MOST {
            self.keys.clear();
            self.accounts.clear();
        }
        let now = row.try_get("now")?;
        let mut account = Account::read(row, now)?;
        let known = self.accounts.get(&account.limiter.account);
        match known.filter(|known| known.version == account.version) {
            // Nobody else changed it.
            Some(known) => {
                (account.epoch, account.quiet_reads) =
                    (known.epoch, known.quiet_reads.saturating_add(u8::from(!known.fresh)));
            }
            None => {
                self.epochs += 1;
                account.epoch = self.epochs;
                account.quiet_reads = if known.is_none() { QUIET_READS } else { 0 };
            }
        }
        self.keys.insert(presented.tag, Key::read(row, now, &account)?);
        self.accounts.insert(account.limiter.account, account);
        Ok(())
    }
}
