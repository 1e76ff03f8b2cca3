//! Splits and stock dividends of a generated security. Both change the number of shares, so that amounts per share and
//! numbers of shares must be converted.

use market::event::DividendType;

use super::csv_row::CsvRow;
use super::regular_ex_dates::RegularExDate;
use super::security_plan::SecurityPlan;
use super::security_shape::ExtraDistribution;

/// Split or stock dividend at the start of the session at `position`: `from` old shares become `to` shares.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShareChange {
    pub(super) position: usize,
    pub(super) from: i64,
    pub(super) to: i64,
    /// True for a stock dividend, which is not published as a split.
    pub(super) stock_dividend: bool,
}

/// All share changes of a security: splits first, then stock dividends.
#[derive(Debug)]
pub(super) struct ShareChanges(pub(super) Vec<ShareChange>);

impl ShareChanges {
    /// Share changes of a planned security. `ex_dates` are its regular ex-dates. A split with `on_ex_date` is moved to
    /// one of these dates.
    pub(super) fn from_plan(plan: &SecurityPlan<'_>, ex_dates: &[RegularExDate]) -> Self {
        let length = plan.end - plan.start;
        let at = |percent: usize| plan.start + length * percent / 100;
        let mut changes: Vec<ShareChange> = Vec::new();
        for split in plan.shape.splits {
            let wanted = at(split.percent);
            let ex_date =
                ex_dates.iter().map(|ex_date| ex_date.position).find(|position| *position >= wanted);
            let position =
                ex_date.filter(|position| split.on_ex_date && *position <= plan.end).unwrap_or(wanted);
            changes.push(ShareChange { position, from: split.from, to: split.to, stock_dividend: false });
        }
        if plan.shape.extra == ExtraDistribution::StockDividend {
            let change =
                |percent| ShareChange { position: at(percent), from: 20, to: 21, stock_dividend: true };
            changes.extend([30, 80].map(change));
        }
        Self(changes)
    }

    /// Converts an amount per share on the first day to the amount at `position`.
    pub(super) fn per_share_at(&self, amount: i64, position: usize) -> i64 {
        let (from, to) = self.ratio(position);
        scaled(amount, from, to)
    }

    /// Converts a number of shares on the first day to the number at `position`.
    pub(super) fn share_count_at(&self, shares: i64, position: usize) -> i64 {
        let (from, to) = self.ratio(position);
        scaled(shares, to, from)
    }

    fn ratio(&self, position: usize) -> (i64, i64) {
        let done = self.0.iter().filter(|change| change.position <= position);
        done.fold((1, 1), |(from, to), change| (from * change.from, to * change.to))
    }

    /// Appends a row for each split, and returns the number of rows. Stock dividends are not written here.
    pub(super) fn write(&self, plan: &SecurityPlan<'_>, out: &mut Vec<u8>) -> u64 {
        let splits = self.0.iter().filter(|change| !change.stock_dividend);
        let mut rows = 0;
        for split in splits {
            let forward = split.to > split.from;
            CsvRow::new(out)
                .text(plan.symbol_at(split.position))
                .date(plan.market.sessions.day(split.position))
                .integer(split.from)
                .integer(split.to)
                .date(plan.market.sessions.day(split.position - 25))
                .date(plan.market.sessions.day(split.position - usize::from(forward)))
                .text(if forward { "forward" } else { "reverse" })
                .end();
            rows += 1;
        }
        rows
    }
}

/// Type and size of a stock dividend. The size is the number of additional shares for each share, in millionths.
pub(super) const STOCK_DIVIDEND: (DividendType, i64) = (DividendType::Stock, 50_000);

/// Computes `amount * multiply / divide`, rounded half up, without overflow of the product.
pub(super) fn scaled(amount: i64, multiply: i64, divide: i64) -> i64 {
    let divide = i128::from(divide);
    let product = i128::from(amount) * i128::from(multiply);
    // Generated amounts are far below `i64::MAX`.
    i64::try_from((product + divide / 2).div_euclid(divide)).unwrap_or(i64::MAX)
}
