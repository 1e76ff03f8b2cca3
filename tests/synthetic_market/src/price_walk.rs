//! Daily bars of one security: a random walk around its planned value, in integer arithmetic.

use std::collections::BTreeMap;

use chrono::Datelike;

use super::csv_row::{push_cents, push_integer};
use super::distributions::{SPIN_OFF, SyntheticDistribution};
use super::random::{BELL_DEVIATION, SplitMix64, bell};
use super::security_plan::{PlannedYear, SecurityPlan};
use super::security_shape::ExtraDistribution;
use super::share_changes::{ShareChanges, scaled};

/// Figures at the end of the walk, from which the fundamentals are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkEnd {
    /// Last close in hundredths of the price currency.
    pub(super) close: i64,
    /// Average value traded per day over the last three months, in hundredths of the price currency.
    pub(super) daily_value: i64,
    pub(super) bars: u64,
}

/// Planted change of prices: a price error, or higher prices before a spin-off. The prices of the sessions at the
/// positions `from..to` are multiplied by `multiply / divide`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BarFault {
    pub(super) from: usize,
    /// Session position after the last changed bar.
    pub(super) to: usize,
    pub(super) multiply: i64,
    pub(super) divide: i64,
    /// True if the changed bar follows the correct bar of the day, in a row of its own.
    pub(super) is_repeated: bool,
    /// Number of sessions before `to` without a bar.
    pub(super) gap: usize,
}

impl BarFault {
    /// Empty range: no price is changed.
    pub(super) const NONE: Self = Self { from: 0, to: 0, multiply: 1, divide: 1, is_repeated: false, gap: 0 };

    #[inline]
    fn apply(&self, position: usize, bar: DailyBar) -> DailyBar {
        if !(self.from..self.to).contains(&position) {
            return bar;
        }
        bar.with_prices(|cents| scaled(cents, self.multiply, self.divide).max(1))
    }
}

/// Corporate action before a session's first trade.
#[derive(Debug, Clone, Copy)]
struct CorporateAction {
    from: i64,
    to: i64,
    /// Cash per share in millionths of a dollar. The price falls by this amount.
    cash: i64,
    /// Part of the share's value that remains after the action, in hundredths of a percent.
    remaining_value: i64,
}

const NO_ACTION: CorporateAction = CorporateAction { from: 1, to: 1, cash: 0, remaining_value: 10_000 };
/// One cent, in millionths of a dollar.
const CENT: i64 = 10_000;
/// Number of sessions over which the daily traded value is averaged.
const QUARTER: usize = 63;
/// Mean reversion: in each session, the price moves towards the value by 1/`REVERSION` of their difference.
const REVERSION: i64 = 512;
/// Number of sessions in a year.
const SESSIONS: i64 = 252;

/// Appends the bars of a security, with the prices changed by `fault`.
pub(super) fn write_bars(
    plan: &SecurityPlan<'_>,
    changes: &ShareChanges,
    payments: &[SyntheticDistribution],
    fault: &BarFault,
    out: &mut Vec<u8>,
) -> WalkEnd {
    let actions = corporate_actions(plan, changes, payments);
    let mut actions = actions.range(..).peekable();
    let market = plan.market;
    let mut walk = PriceWalk::new(plan);
    let mut traded: i64 = 0;
    let mut symbol = plan.symbol_at(plan.start);
    let is_foreign = plan.currency() != "USD";
    for position in plan.start..=plan.end {
        if let Some((_, action)) = actions.next_if(|(at, _)| **at == position) {
            walk.apply(action);
        }
        walk.enter_year(plan, position);
        if plan.former.as_ref().is_some_and(|(_, until)| position == until + 1) {
            symbol = &plan.symbol;
        }
        let mut bar = walk.bar(market.returns[position]);
        if is_foreign {
            bar = bar.with_prices(|cents| plan.to_price_currency(cents, position));
        }
        if position + QUARTER > plan.end {
            traded += bar.close * bar.volume;
        }
        let (symbol, date) = (symbol.as_bytes(), &market.dates[position]);
        if fault.is_repeated && position == fault.from {
            bar.write(symbol, date, out);
        }
        if !(fault.to - fault.gap..fault.to).contains(&position) {
            fault.apply(position, bar).write(symbol, date, out);
        }
    }
    let sessions = plan.end - plan.start + 1;
    let close = plan.to_price_currency(walk.price / CENT, plan.end);
    let bars = sessions + usize::from(fault.is_repeated) - fault.gap;
    WalkEnd { close, daily_value: traded / sessions.min(QUARTER) as i64, bars: bars as u64 }
}

fn corporate_actions(
    plan: &SecurityPlan<'_>,
    changes: &ShareChanges,
    payments: &[SyntheticDistribution],
) -> BTreeMap<usize, CorporateAction> {
    let mut actions: BTreeMap<usize, CorporateAction> = BTreeMap::new();
    for change in &changes.0 {
        let action = actions.entry(change.position).or_insert(NO_ACTION);
        (action.from, action.to) = (action.from * change.from, action.to * change.to);
    }
    for payment in payments.iter().filter(|payment| payment.is_cash() && payment.position <= plan.end) {
        let action = actions.entry(payment.position).or_insert(NO_ACTION);
        action.cash += payment.amount;
        if plan.shape.extra == ExtraDistribution::SpinOff
            && payment.kind == market::event::DividendType::SpinOff
        {
            action.remaining_value -= SPIN_OFF;
        }
    }
    if plan.shape.crash {
        let position = plan.end - ((plan.end - plan.start) / 3).min(100);
        let value = plan.year(plan.market.sessions.day(position).year()).value;
        let action = actions.entry(position).or_insert(NO_ACTION);
        (action.cash, action.remaining_value) =
            (action.cash + changes.per_share_at(value / 100 * 55, position), 4_500);
    }
    actions
}

/// State of the random walk. Prices are in millionths of a dollar, returns in millionths of the price.
struct PriceWalk {
    random: SplitMix64,
    price: i64,
    /// Planned value of a share. The price moves back towards it over time.
    value: i64,
    /// Yearly dividend divided by the sessions of a year. The price rises by this amount in each session, and falls by
    /// the dividend on the ex-date.
    carry: i64,
    /// Products of the old and of the new shares of all share changes so far. Two 2:1 splits give (1, 4).
    ratio: (i64, i64),
    /// Part of the planned value that remains after all corporate actions so far, in hundredths of a percent.
    remaining_value: i64,
    year: i32,
    volume: i64,
    volatility: i64,
    beta: i64,
}

impl PriceWalk {
    fn new(plan: &SecurityPlan<'_>) -> Self {
        let year = plan.market.sessions.day(plan.start).year();
        let PlannedYear { value, rate } = plan.year(year);
        Self {
            random: SplitMix64::new(plan.market.seed ^ 0x00C0_FFEE, plan.index),
            price: value,
            value,
            carry: rate / SESSIONS,
            ratio: (1, 1),
            remaining_value: 10_000,
            year,
            volume: plan.volume,
            volatility: plan.volatility,
            beta: plan.shape.beta,
        }
    }

    fn apply(&mut self, action: &CorporateAction) {
        if action.from != action.to {
            self.price = scaled(self.price, action.from, action.to);
            self.value = scaled(self.value, action.from, action.to);
            self.carry = scaled(self.carry, action.from, action.to);
            self.volume = scaled(self.volume, action.to, action.from);
            self.ratio = (self.ratio.0 * action.from, self.ratio.1 * action.to);
        }
        self.price = (self.price - action.cash).max(self.price / 4);
        if action.remaining_value != 10_000 {
            self.remaining_value = self.remaining_value * action.remaining_value / 10_000;
            self.value = self.value / 10_000 * action.remaining_value;
        }
    }

    fn enter_year(&mut self, plan: &SecurityPlan<'_>, position: usize) {
        // The first session of a year is always before 20 January. After 19 January, no year begins, and the slower
        // check below is skipped.
        let date = &plan.market.dates[position];
        if date[5..7] != *b"01" || date[8] > b'1' {
            return;
        }
        let year = plan.market.sessions.day(position).year();
        if year != self.year {
            self.year = year;
            let PlannedYear { value, rate } = plan.year(year);
            self.value = scaled(value, self.ratio.0, self.ratio.1) / 10_000 * self.remaining_value;
            self.carry = scaled(rate, self.ratio.0, self.ratio.1) / SESSIONS;
        }
    }

    #[inline]
    fn bar(&mut self, market: i64) -> DailyBar {
        let before = self.price;
        let noise = bell(self.random.next());
        let change = noise * self.volatility / BELL_DEVIATION + market * self.beta / 100;
        let close =
            (before + self.carry + before * change / 1_000_000 + (self.value - before) / REVERSION).max(CENT);
        self.price = close;
        let bits = self.random.next();
        let part = |shift: u32| ((bits >> shift) & 0xFF) as i64;
        // Scale of the daily range: the volatility plus 0.2 %, so that a fund without volatility also has a range.
        let swing = before * (self.volatility + 2_000) / 1_000_000;
        let gap = (part(0) - 128) * swing / 512;
        let open = (before + (close - before) * (part(8) & 7) / 16 + gap).max(CENT);
        let high = open.max(close) + part(16) * swing / 256;
        let low = (open.min(close) - part(24) * swing / 256).max(CENT);
        let volume = self.volume * (96 + (part(32) >> 1) + noise.abs() / 48) / 192;
        DailyBar {
            open: open / CENT,
            high: high / CENT,
            low: low / CENT,
            close: close / CENT,
            volume: volume.max(100),
        }
    }
}

/// One bar; prices in hundredths of a currency.
struct DailyBar {
    open: i64,
    high: i64,
    low: i64,
    close: i64,
    volume: i64,
}

impl DailyBar {
    fn with_prices(self, change: impl Fn(i64) -> i64) -> Self {
        let [open, high, low, close] = [self.open, self.high, self.low, self.close].map(change);
        Self { open, high, low, close, ..self }
    }

    #[inline]
    fn write(&self, symbol: &[u8], date: &[u8; 10], out: &mut Vec<u8>) {
        out.extend_from_slice(symbol);
        out.push(b',');
        out.extend_from_slice(date);
        for cents in [self.open, self.high, self.low, self.close] {
            out.push(b',');
            push_cents(out, cents);
        }
        out.push(b',');
        push_integer(out, self.volume);
        out.push(b'\n');
    }
}
