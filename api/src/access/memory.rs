//! Accounts as they were last read or written, so that their next calls can be charged without reading them first.
//!
//! Invariant: what is remembered decides nothing by itself. Calls are taken from an account only under the terms that
//! are remembered, and only if its row holds enough; whatever else is written to it needs the row to be the very one.

use std::collections::HashMap;
use std::time::Instant;

use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use tokio_postgres::{Error, Row};

use super::accounts::{Account, Accounts, Key, Wanted};
use super::clock::StoreClock;
use super::credential::Presented;

/// Keys remembered at most; when there are more, all are forgotten.
const MOST: usize = 65_536;

/// Accounts by their keys.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) clock: StoreClock,
    /// By their tags.
    keys: HashMap<u128, Key, RandomState>,
    accounts: HashMap<i64, Account, RandomState>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { clock: StoreClock::new(), keys: HashMap::default(), accounts: HashMap::default() }
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
            let account = self.accounts.get(&key.account);
            let stands = |account: &Account| {
                key.plan_version == account.plan_version
                    && key.own.as_ref().is_none_or(|own| own.version == account.version)
            };
            account.is_some_and(stands) && key.expires_at.is_none_or(|end| end > now)
        };
        let mut key = self.keys.get(&tag).filter(valid)?.clone();
        if let Some(own) = &mut key.own {
            own.limiter.advance(now);
        }
        Some(key)
    }

    fn account(&mut self, id: i64, now: DateTime<Utc>) -> Option<Account> {
        let paid = |account: &Account| account.paid_until.is_none_or(|end| end > now);
        let mut account = self.accounts.remove(&id).filter(paid)?;
        let (month, at) = (account.limiter.month, account.limiter.at);
        account.limiter.advance(now);
        account.is_settled &= account.limiter.month == month && account.limiter.at >= at;
        (account.wanted, account.written) = (Wanted::default(), None);
        Some(account)
    }

    /// Remembers those accounts that were written; of the others the present numbers are not known.
    pub(super) fn put_back(&mut self, presented: &[Presented], accounts: Accounts) {
        let Accounts { list, keys } = accounts;
        for (presented, key) in presented.iter().zip(keys) {
            let Some((account, mut key)) = key else { continue };
            if let (Some(own), Some(version)) = (&mut key.own, list[account].written) {
                own.version = version;
                self.keys.insert(presented.tag, key);
            }
        }
        for mut account in list {
            let Some(version) = account.written else { continue };
            (account.version, account.is_settled) = (version, true);
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
        let account = Account::read(row, now)?;
        self.keys.insert(presented.tag, Key::read(row, now, &account)?);
        self.accounts.insert(account.limiter.account, account);
        Ok(())
    }
}
