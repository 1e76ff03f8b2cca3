//! Number of shares on a day: the sum of earlier transactions, carried through splits (R10).

use chrono::NaiveDate;
use market::decimal::{MAX_FRACTION_DIGITS, round};
use market::metrics::prices::adjustment::Splits;
use rust_decimal::Decimal;

use super::transactions::Transaction;

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
    pub(super) fn final_shares(&self, splits: &Splits) -> Decimal {
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
    pub(super) fn give_up(&mut self, day: NaiveDate, shares: Decimal) {
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
