//! Number of shares on a day: the sum of earlier transactions, carried through splits (R10).
//!
//! Mergers: the shares of a merged security become shares of its successor.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use market::decimal::{MAX_FRACTION_DIGITS, round};
use market::metrics::prices::adjustment::Splits;
use rust_decimal::Decimal;

use super::distribution_events::DistributionEvents;
use super::transactions::Transaction;
use crate::read::{QueryError, ServedGeneration, lookup};
use crate::render::envelope::Warning;

/// Number of shares that grows and shrinks with transactions.
struct ShareCount<'a> {
    splits: &'a Splits,
    /// Sums of transactions with their share basis, by day. Between two of them, a split changes the share count.
    sums: Vec<(NaiveDate, Decimal)>,
}

impl ShareCount<'_> {
    /// Adds shares on the share basis of a day. This day is not before the day of an earlier call.
    fn add(&mut self, basis: NaiveDate, quantity: Decimal) {
        match self.sums.last_mut() {
            Some((last, sum)) if self.splits.ratio_to_basis(*last, basis).is_one() => *sum += quantity,
            _ => self.sums.push((basis, quantity)),
        }
    }

    /// Number of shares on the share basis of a day, rounded to ten decimal places.
    fn on(&self, day: NaiveDate) -> Decimal {
        let carry = |(basis, sum): &(NaiveDate, Decimal)| {
            self.splits.ratio_to_basis(*basis, day).inverse().apply(*sum)
        };
        round(self.sums.iter().map(carry).sum(), MAX_FRACTION_DIGITS)
    }
}

/// Transactions of one security in one account.
pub(super) struct AccountSecurity {
    pub(super) account: Option<String>,
    /// Canonical symbol.
    pub(super) symbol: String,
    /// Transactions by date. On one day, purchases are before sales.
    transactions: Vec<Transaction>,
    /// Share basis of all quantities; `None` if each quantity is on the share basis of its date.
    basis: Option<NaiveDate>,
}

impl AccountSecurity {
    pub(super) fn new(
        account: Option<String>,
        symbol: String,
        transactions: Vec<Transaction>,
        basis: Option<NaiveDate>,
    ) -> Self {
        let mut owned = Self { account, symbol, transactions, basis };
        owned.sort();
        owned
    }

    /// Day of the first transaction.
    pub(super) fn first_day(&self) -> NaiveDate {
        self.transactions.first().map_or(NaiveDate::MAX, |transaction| transaction.date)
    }

    fn add_to(&self, shares: &mut ShareCount<'_>, transaction: &Transaction) {
        shares.add(self.basis.unwrap_or(transaction.date), transaction.quantity);
    }

    /// Number of shares before each of the days, which are in ascending order.
    pub(super) fn shares_before(
        &self,
        splits: &Splits,
        days: impl Iterator<Item = NaiveDate>,
    ) -> Vec<Decimal> {
        let mut shares = ShareCount { splits, sums: Vec::new() };
        let mut transactions = self.transactions.iter().peekable();
        let mut counts = Vec::new();
        for day in days {
            while let Some(transaction) = transactions.next_if(|transaction| transaction.date < day) {
                self.add_to(&mut shares, transaction);
            }
            counts.push(shares.on(day));
        }
        counts
    }

    /// Number of shares after all transactions.
    fn final_shares(&self, splits: &Splits) -> Decimal {
        self.shares_before(splits, std::iter::once(NaiveDate::MAX)).first().copied().unwrap_or_default()
    }

    /// Currency of the first known price.
    pub(super) fn currency(&self) -> Option<&str> {
        self.transactions.iter().find_map(|transaction| transaction.currency.as_deref())
    }

    /// Adds a transaction on the share basis of its date.
    pub(super) fn receive(&mut self, transaction: Transaction, splits: &Splits) {
        let basis = self.basis.unwrap_or(transaction.date);
        let ratio = splits.ratio_to_basis(transaction.date, basis);
        let price = transaction.price.map(|price| ratio.apply(price));
        self.transactions.push(Transaction {
            quantity: ratio.inverse().apply(transaction.quantity),
            price,
            ..transaction
        });
        self.sort();
    }

    /// Removes shares on a day, or on the day of the last transaction if it is later.
    fn give_up(&mut self, day: NaiveDate, shares: Decimal) {
        let date = self.transactions.last().map_or(day, |last| last.date.max(day));
        self.transactions.push(Transaction {
            place: String::new(),
            account: self.account.clone(),
            symbol: 0,
            date,
            quantity: -shares,
            price: None,
            currency: None,
        });
    }

    fn sort(&mut self) {
        self.transactions.sort_by_key(|transaction| (transaction.date, transaction.quantity < Decimal::ZERO));
    }

    /// First sale of more shares than the account has; `None` without such a sale.
    pub(super) fn find_oversale(&self, splits: &Splits) -> Option<&Transaction> {
        let mut shares = ShareCount { splits, sums: Vec::new() };
        self.transactions.iter().find(|transaction| {
            self.add_to(&mut shares, transaction);
            transaction.quantity < Decimal::ZERO && shares.on(transaction.date) < Decimal::ZERO
        })
    }

    /// Cost of the shares that remain after a day, by the average cost method. `None` if the cost of a remaining share
    /// is unknown or in another currency, or if shares were sold short.
    pub(super) fn average_cost(&self, splits: &Splits, currency: &str, day: NaiveDate) -> Option<Decimal> {
        let mut shares = ShareCount { splits, sums: Vec::new() };
        let mut cost = Some(Decimal::ZERO);
        for transaction in self.transactions.iter().take_while(|transaction| transaction.date <= day) {
            let before = shares.on(transaction.date);
            self.add_to(&mut shares, transaction);
            let after = shares.on(transaction.date);
            let has_currency = transaction.currency.as_ref().is_none_or(|known| known == currency);
            cost = if before < Decimal::ZERO || after < Decimal::ZERO {
                None
            } else if after.is_zero() {
                Some(Decimal::ZERO)
            } else if after < before {
                cost.and_then(|cost| cost.checked_mul(after)?.checked_div(before))
            } else {
                let price = transaction.price.filter(|_| has_currency);
                cost.zip(price).and_then(|(cost, price)| cost.checked_add(price * transaction.quantity))
            };
        }
        cost
    }
}

const MERGERS: &str = include_str!("../../../queries/portfolio/mergers.sql");
/// Maximum number of mergers one after the other that are followed.
const MAX_CHAIN: usize = 10;
/// Maximum number of shares that an owner receives in one merger. A sum of several such numbers fits into a decimal.
const MAX_SHARES: i64 = 1_000_000_000_000_000_000;

/// Merger of a security into another one.
#[derive(Debug)]
pub(super) struct Merger {
    symbol: String,
    /// Last trading day of the merged security.
    last_day: NaiveDate,
    successor: String,
    /// Shares of the successor per share of the merged security; `None` if it is unknown.
    ratio: Option<Decimal>,
}

/// Loads the mergers of the securities and of their successors, by date.
pub(super) async fn load_mergers(
    generation: &ServedGeneration,
    owned: &[AccountSecurity],
) -> Result<Vec<Merger>, QueryError> {
    let mut symbols: BTreeSet<String> = owned.iter().map(|one| one.symbol.clone()).collect();
    let (mut mergers, mut asked) = (Vec::new(), BTreeSet::new());
    for _ in 0..MAX_CHAIN {
        let new: Vec<String> = symbols.difference(&asked).cloned().collect();
        if new.is_empty() {
            break;
        }
        for row in lookup::run_query(generation, MERGERS, &[&new]).await? {
            let merger = Merger {
                symbol: row.try_get("symbol")?,
                last_day: row.try_get("last_day")?,
                successor: row.try_get("successor")?,
                ratio: row.try_get("ratio")?,
            };
            symbols.insert(merger.successor.clone());
            mergers.push(merger);
        }
        asked.extend(new);
    }
    mergers.sort_by(|one, other| (one.last_day, &one.symbol).cmp(&(other.last_day, &other.symbol)));
    Ok(mergers)
}

/// First day on which each security may be owned, by symbol.
pub(super) fn first_days<'a>(
    owned: &'a [AccountSecurity],
    mergers: &'a [Merger],
) -> BTreeMap<&'a str, NaiveDate> {
    let bought = owned.iter().map(|one| (one.symbol.as_str(), one.first_day()));
    let received = mergers.iter().map(|merger| (merger.successor.as_str(), merger.last_day));
    let mut days: BTreeMap<&str, NaiveDate> = BTreeMap::new();
    for (symbol, day) in bought.chain(received) {
        let first = days.entry(symbol).or_insert(day);
        *first = day.min(*first);
    }
    days
}

/// Adds the shares of the successors that the owner received. The shares that the owner still has of a merged security
/// after all transactions are exchanged, with their average cost. Returns warnings about mergers without a ratio.
/// `None` if a number of shares is too large.
pub(super) fn exchange_shares(
    owned: &mut Vec<AccountSecurity>,
    mergers: &[Merger],
    events: &HashMap<String, DistributionEvents>,
) -> Option<Vec<Warning>> {
    let none = Splits::default();
    let splits_of = |symbol: &str| events.get(symbol).map_or(&none, |events| &events.splits);
    let mut warnings = Vec::new();
    for Merger { symbol, last_day, successor, ratio } in mergers {
        let mut received = Vec::new();
        for one in owned.iter_mut().filter(|one| one.symbol == *symbol) {
            let shares = one.final_shares(splits_of(symbol));
            if shares.is_zero() {
                continue;
            }
            let Some(ratio) = ratio else {
                warnings.push(unknown_ratio(symbol, successor, *last_day));
                continue;
            };
            let quantity = round(shares.checked_mul(*ratio)?, MAX_FRACTION_DIGITS);
            if quantity.abs() > Decimal::from(MAX_SHARES) {
                return None;
            }
            let currency = one.currency().map(str::to_owned);
            let cost = currency
                .as_deref()
                .and_then(|currency| one.average_cost(splits_of(symbol), currency, NaiveDate::MAX));
            received.push(Transaction {
                place: format!("merger of {symbol}"),
                account: one.account.clone(),
                symbol: 0,
                date: *last_day,
                quantity,
                price: cost.and_then(|cost| cost.checked_div(quantity)),
                currency,
            });
            one.give_up(*last_day, shares);
        }
        let of_successor = owned.iter().enumerate().filter(|(_, one)| one.symbol == *successor);
        let places: HashMap<Option<String>, usize> =
            of_successor.map(|(place, one)| (one.account.clone(), place)).collect();
        for transaction in received {
            match places.get(&transaction.account).and_then(|place| owned.get_mut(*place)) {
                Some(one) => one.receive(transaction, splits_of(successor)),
                None => {
                    let account = transaction.account.clone();
                    owned.push(AccountSecurity::new(account, successor.clone(), vec![transaction], None));
                }
            }
        }
    }
    warnings.dedup_by(|one, other| one.message == other.message);
    Some(warnings)
}

fn unknown_ratio(symbol: &str, successor: &str, last_day: NaiveDate) -> Warning {
    let message = format!(
        "{symbol} was merged into {successor} on {last_day}, at an unknown ratio; add the received shares as a transaction"
    );
    Warning { code: "merger", message, param: Some("transactions") }
}
