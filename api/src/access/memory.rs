//! What was last read or written of accounts, so that deciding on their next calls begins without asking the store.
//!
//! Invariant: what is remembered decides nothing by itself. An account is charged only if its row still is the one that
//! is remembered, and whatever a decision depends on gives that row a new version.

use std::collections::HashMap;
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Row};

use super::accounts::{Account, Accounts, Key};
use super::clock::StoreClock;

/// Keys remembered at most; then it begins anew.
const MOST: usize = 65_536;
/// Looks in a row that must find an account as it was left here before it is charged without a look, once it was found
/// changed: other instances have calls of it too, and trying would mostly be for nothing.
const LOOKS: u8 = 3;

/// Accounts by their keys.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) clock: StoreClock,
    keys: HashMap<[u8; 32], Key>,
    accounts: HashMap<i64, Account>,
    epochs: u64,
}

/// The versions of accounts' rows that were written.
pub(super) type Written = HashMap<i64, i64>;

impl Memory {
    pub(super) fn new() -> Self {
        Self { clock: StoreClock::new(), keys: HashMap::new(), accounts: HashMap::new(), epochs: 0 }
    }

    /// Takes out the accounts of these keys that are known well enough, brought to the present.
    pub(super) fn take(&mut self, hashes: &[[u8; 32]]) -> Accounts {
        let Some(now) = self.clock.at(Instant::now()) else {
            return Accounts { list: vec![], keys: vec![None; hashes.len()] };
        };
        let keys: Vec<Option<Key>> = hashes.iter().map(|hash| self.key(hash, now)).collect();
        let mut ids: Vec<i64> = keys.iter().flatten().map(|key| key.account).collect();
        ids.sort_unstable();
        ids.dedup();
        let list: Vec<Account> = ids.into_iter().filter_map(|id| self.account(id, now)).collect();
        let stand = |key: Key| {
            let place = list.binary_search_by_key(&key.account, |account| account.limiter.account).ok()?;
            Some((place, key))
        };
        let keys = keys.into_iter().map(|key| key.and_then(stand)).collect();
        Accounts { list, keys }
    }

    fn key(&self, hash: &[u8; 32], now: DateTime<Utc>) -> Option<Key> {
        let valid = |key: &&Key| {
            let epoch = self.accounts.get(&key.account).map(|account| account.epoch);
            epoch == Some(key.epoch) && key.expires_at.is_none_or(|end| end > now)
        };
        let mut key = self.keys.get(hash).filter(valid)?.clone();
        if let Some(own) = &mut key.own {
            own.limiter.advance(now);
        }
        Some(key)
    }

    fn account(&mut self, id: i64, now: DateTime<Utc>) -> Option<Account> {
        let known = self.accounts.get(&id)?;
        let usable = known.fresh || known.looks >= LOOKS;
        if !usable || known.paid_until.is_some_and(|end| end <= now) {
            return None;
        }
        let mut account = self.accounts.remove(&id)?;
        account.limiter.advance(now);
        Some(account)
    }

    /// Remembers accounts that were taken from here as they were written; those that were not had changed.
    pub(super) fn put_back(&mut self, hashes: &[[u8; 32]], accounts: Accounts, written: &Written) {
        for (hash, key) in hashes.iter().zip(accounts.keys) {
            let Some((_, key)) = key else { continue };
            if key.own.is_some() && written.contains_key(&key.account) {
                self.keys.insert(*hash, key);
            }
        }
        for mut account in accounts.list {
            account.fresh = false;
            match written.get(&account.limiter.account) {
                Some(version) => account.version = *version,
                None => account.looks = 0,
            }
            self.accounts.insert(account.limiter.account, account);
        }
    }

    /// Remembers the key in a row that was just read, and its account.
    pub(super) fn learn(&mut self, hash: [u8; 32], row: &Row) -> Result<(), Error> {
        if self.keys.len() >= MOST {
            self.keys.clear();
            self.accounts.clear();
        }
        let now = row.try_get("now")?;
        let mut account = Account::read(row, now)?;
        let known = self.accounts.get(&account.limiter.account);
        match known.filter(|known| known.version == account.version) {
            // Just read, with another of its keys, or as it was left here.
            Some(known) => {
                (account.epoch, account.looks) =
                    (known.epoch, known.looks.saturating_add(u8::from(!known.fresh)));
            }
            None => {
                self.epochs += 1;
                account.epoch = self.epochs;
                account.looks = if known.is_none() { LOOKS } else { 0 };
            }
        }
        self.keys.insert(hash, Key::read(row, now, &account)?);
        self.accounts.insert(account.limiter.account, account);
        Ok(())
    }
}
