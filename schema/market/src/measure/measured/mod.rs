//! Every figure of one security, unrounded: what rows are made of and explanations are told from.

pub(crate) mod basis;
pub(crate) mod company;
pub(crate) mod income;
pub(crate) mod progress;
pub(crate) mod returns;
pub(crate) mod upcoming;
pub(crate) mod verdicts;

use basis::Basis;
use chrono::{DateTime, Utc};
use company::{Figures, Payouts, figures, payouts};
use income::{Income, income};
use progress::{Progress, progress};
use returns::{Returns, returns};
use upcoming::{Upcoming, upcoming};
use verdicts::{Verdicts, verdicts};

use super::factors::ex_days;
use super::market::Market;
use super::merge::{Merged, currency, merge};
use super::month_ends::MonthEnds;
use super::risk::month_ends;
use super::series::Series;
use crate::history::History;
use crate::row::Flags;

/// Every figure of one security.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub basis: Basis<'a>,
    pub income: Income,
    pub progress: Progress,
    pub figures: Figures,
    pub payouts: Payouts,
    pub returns: Returns,
    pub verdicts: Verdicts,
    pub upcoming: Upcoming,
    pub flags: Flags,
    /// When the newest fact behind the figures was observed.
    pub updated_at: DateTime<Utc>,
}

/// Measures a security.
pub(crate) fn measure<'a>(history: &'a History, market: &Market<'a>) -> Measured<'a> {
    let mut flags = Flags::default();
    let basis = Basis::new(history, market, &mut flags);
    let income = income(&basis, &mut flags);
    let progress = progress(&basis, &income, &mut flags);
    let figures = figures(&basis);
    let payouts = payouts(&basis, &income, &figures);
    let returns = returns(&basis, market);
    let verdicts = verdicts(&basis, &income, &progress, &payouts, &returns);
    let upcoming = upcoming(&basis, &income, &mut flags);
    let updated_at = updated_at(history, &basis.merged);
    Measured { basis, income, progress, figures, payouts, returns, verdicts, upcoming, flags, updated_at }
}

/// Month-end returns of a benchmark up to a date.
pub(crate) fn benchmark_months(history: &History, market: &Market<'_>) -> MonthEnds {
    let merged = merge(history, market);
    let series = Series::new(&merged.prices.bars, &merged.split_table);
    let days =
        ex_days(&merged.dividends.payments, &series, market.as_of, currency(history), &mut Flags::default());
    month_ends(&series, &days, market.as_of)
}

/// When the newest fact behind the rows was observed.
fn updated_at(history: &History, merged: &Merged<'_>) -> DateTime<Utc> {
    let dividends = merged
        .dividends
        .payments
        .iter()
        .chain(&merged.dividends.cancelled)
        .map(|p| p.observation.observed_at);
    let splits = merged.splits.splits.iter().map(|split| history.splits[split.index].observed_at);
    let used = merged
        .fundamentals
        .iter()
        .flat_map(|f| &f.used)
        .map(|index| history.fundamentals[*index].observed_at);
    let security = history.security.iter().map(|security| security.observed_at);
    let newest = dividends.chain(splits).chain(used).chain(security).chain(merged.prices.observed_at).max();
    newest.unwrap_or_default()
}
