//! Typical faults of real feeds, planted in a synthetic market, at most one per security. A test counts how many of
//! them the rules find.

use chrono::{Datelike, Days};
use market::event::{DividendType, Frequency};

use super::csv_row::CsvRow;
use super::distributions::SyntheticDistribution;
use super::price_walk::BarFault;
use super::random::SplitMix64;
use super::security_plan::SecurityPlan;
use super::security_shape::{DividendStop, ExtraDistribution, PaymentSchedule, TradingPeriod};
use super::share_changes::{ShareChanges, scaled};

/// Kind of a planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The row of a payment is repeated some days later.
    NearDuplicate,
    /// The row of a special dividend has the type of a regular dividend, and no frequency.
    UntypedSpecial,
    /// One row contains the sum of a regular payment and a special dividend.
    CombinedPayment,
    /// One row contains the sum of a regular payment and a capital gain, and a second row of the day has the gain again.
    ContainedPayment,
    /// The amount of one row is half of the payment.
    AmountDip,
    /// The row of a payment is missing.
    MissingPayment,
    /// The ex-date of a payment is the session after the one that follows from its record date.
    UnexpectedExDate,
    /// A payment has a second row, in euros.
    TranslatedPayment,
    /// The ex-date of a payment in January or December is moved to the neighbouring year.
    BoundaryShift,
    /// A spin-off is given as a split without a type.
    SpinOffAsSplit,
    /// The prices of one bar or of consecutive bars are multiplied by a wrong factor.
    PriceLevel,
    /// All amounts before a split are already adjusted for the split.
    ShareBasis,
    /// The security has no dividend row, but its prices have an adjusted close.
    DividendsMissing,
    /// A monthly payer pays the same amount again a fortnight later.
    Supplement,
    /// The amount of the newest row is a hundred times the payment.
    HeldNewest,
    /// A day has a second price row with another close.
    ConflictingCloses,
    /// The prices before a gap of some months are five times too high.
    LevelBreak,
}

/// Kinds of faults, each with its word in the list of planted faults. The last kind, `ShareBasis`, is for securities
/// with a split. All other kinds are for securities with neither a split nor a stock dividend.
const FAULT_KINDS: [(FaultKind, &str); 17] = [
    (FaultKind::NearDuplicate, "near_duplicate"),
    (FaultKind::UntypedSpecial, "untyped_special"),
    (FaultKind::CombinedPayment, "combined_payment"),
    (FaultKind::ContainedPayment, "contained_payment"),
    (FaultKind::AmountDip, "amount_dip"),
    (FaultKind::MissingPayment, "missing_payment"),
    (FaultKind::UnexpectedExDate, "unexpected_ex_date"),
    (FaultKind::TranslatedPayment, "translated_payment"),
    (FaultKind::BoundaryShift, "boundary_shift"),
    (FaultKind::SpinOffAsSplit, "spin_off_as_split"),
    (FaultKind::PriceLevel, "price_level"),
    (FaultKind::DividendsMissing, "dividends_missing"),
    (FaultKind::Supplement, "supplement"),
    (FaultKind::HeldNewest, "held_newest"),
    (FaultKind::ConflictingCloses, "conflicting_closes"),
    (FaultKind::LevelBreak, "level_break"),
    (FaultKind::ShareBasis, "share_basis"),
];

/// Planted fault of a security.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlantedFault {
    pub(super) kind: FaultKind,
    /// Session of the fault, as an index in the market's sessions.
    pub(super) position: usize,
    pub(super) bars: BarFault,
    /// Only for a spin-off given as a split: new shares for 1,000 old shares.
    spin_off: Option<i64>,
}

/// Distributions of a security, once as paid and once as written to `dividends.csv`, and the planted fault.
pub(super) struct FaultyRows {
    /// Distributions at their true dates and amounts. The generated price falls on each ex-date.
    pub(super) price_distributions: Vec<SyntheticDistribution>,
    /// Distributions as written to `dividends.csv`. Most dividend faults are only in these rows.
    pub(super) rows: Vec<SyntheticDistribution>,
    pub(super) fault: Option<PlantedFault>,
}

/// Minimum number of payments before a faulty payment, and also after it. The rules compare the faulty payment with
/// these payments.
const MIN_NEIGHBOURS: usize = 5;
/// Number of steady payments before a faulty payment, and also after it. Steady amounts never fall, and rise by at most
/// 20 % each time.
const STEADY_NEIGHBOURS: usize = 4;
/// Maximum age of a faulty payment, in complete calendar years. Older payments affect no figure.
const MAX_AGE_YEARS: i32 = 9;
/// Number of sessions without a price before a break of the price level.
const GAP_SESSIONS: usize = 90;
/// Ratios of spin-offs, as new shares for 1,000 old shares.
const SPIN_OFFS: [i64; 5] = [1_281, 1_253, 1_087, 1_139, 1_413];
/// Maximum yield of a security with faulty payments, in hundredths of a percent. With a larger yield, a planted special
/// dividend could exceed the price.
const MAX_YIELD: i64 = 1_000;

/// Plants a fault in a security, with the probability `fault_percent`. The first security, the index fund SPY, gets no
/// fault. Listings get no fault, because it would separate them from the other listings of their fund.
pub(super) fn plant(
    plan: &SecurityPlan<'_>,
    changes: &ShareChanges,
    distributions: Vec<SyntheticDistribution>,
) -> FaultyRows {
    let mut random = SplitMix64::new(plan.market.seed ^ 0x0FA0_17ED, plan.index);
    let sound = FaultyRows { rows: distributions.clone(), price_distributions: distributions, fault: None };
    let is_spared = plan.index == 0 || plan.shape.listing.is_some();
    if is_spared || random.between(1, 100) > i64::from(plan.market.fault_percent) {
        return sound;
    }
    let mut planting = Planting { plan, random, rows: sound };
    if !changes.0.is_empty() {
        planting.rows.fault = planting.plant_share_basis(changes);
        return planting.rows;
    }
    let (mut kind, _) = FAULT_KINDS[planting.random.between(0, FAULT_KINDS.len() as i64 - 2) as usize];
    // Few securities pay monthly, and each of them may get a supplement.
    let is_monthly = plan.shape.frequency() == Some(Frequency::Monthly);
    if is_monthly
        && matches!(kind, FaultKind::BoundaryShift | FaultKind::PriceLevel | FaultKind::SpinOffAsSplit)
    {
        kind = FaultKind::Supplement;
    }
    // If the security is not suitable for the chosen kind, a spin-off fault or a price fault is planted instead.
    let other = [FaultKind::SpinOffAsSplit, FaultKind::PriceLevel][planting.random.between(0, 1) as usize];
    planting.rows.fault = planting.plant(kind).or_else(|| planting.plant(other));
    planting.rows
}

/// Security in which a fault is planted, with its rows and random numbers.
struct Planting<'a> {
    plan: &'a SecurityPlan<'a>,
    random: SplitMix64,
    rows: FaultyRows,
}

impl Planting<'_> {
    /// Plants a fault of a kind; `None` if the security is not suitable.
    fn plant(&mut self, kind: FaultKind) -> Option<PlantedFault> {
        let shape = self.plan.shape;
        if shape.trading_period != TradingPeriod::Full || shape.extra != ExtraDistribution::Nothing {
            return None;
        }
        match kind {
            FaultKind::SpinOffAsSplit => return Some(self.plant_spin_off()),
            FaultKind::PriceLevel => return Some(self.plant_price_level()),
            FaultKind::ConflictingCloses => {
                let position = self.pick_session();
                let bars = BarFault {
                    from: position,
                    to: position + 1,
                    multiply: 107,
                    divide: 100,
                    is_repeated: true,
                    gap: 0,
                };
                return Some(PlantedFault { bars, ..self.fault(kind, position) });
            }
            FaultKind::LevelBreak => {
                let position = self.pick_session();
                let gap = (position - self.plan.start) / 4;
                let bars =
                    BarFault { to: position, multiply: 5, gap: gap.min(GAP_SESSIONS), ..BarFault::NONE };
                return Some(PlantedFault { bars, ..self.fault(kind, position) });
            }
            _ => {}
        }
        let regular =
            matches!(shape.schedule, PaymentSchedule::Every(Frequency::Quarterly | Frequency::Monthly));
        if !regular
            || shape.stop != DividendStop::No
            || shape.dividend_yield > MAX_YIELD
            || shape.pays_in != "USD"
        {
            return None;
        }
        if kind == FaultKind::HeldNewest {
            let payments = &mut self.rows.rows;
            let is_long = payments.len() > MIN_NEIGHBOURS;
            let newest = payments.last_mut().filter(|_| is_long)?;
            newest.amount *= 100;
            let position = newest.position;
            return Some(self.fault(kind, position));
        }
        if kind == FaultKind::DividendsMissing {
            let is_plain = !self.plan.symbol.contains('.') && !self.rows.rows.is_empty();
            self.rows.rows.retain(|_| !is_plain);
            return is_plain.then_some(self.fault(kind, self.plan.start));
        }
        self.plant_payment(kind)
    }

    fn fault(&self, kind: FaultKind, position: usize) -> PlantedFault {
        PlantedFault { kind, position, bars: BarFault::NONE, spin_off: None }
    }

    /// Index of a random payment with steady neighbours; `None` if no payment fits.
    fn pick_payment(&mut self, is_fit: impl Fn(&SyntheticDistribution) -> bool) -> Option<usize> {
        let (sessions, payments) = (&self.plan.market.sessions, &self.rows.price_distributions);
        let past = payments.partition_point(|payment| payment.position <= sessions.last);
        let first_year = self.plan.market.last_complete_year - MAX_AGE_YEARS + 1;
        let fits = |index: &usize| {
            let around = &payments[index - STEADY_NEIGHBOURS..=index + STEADY_NEIGHBOURS];
            sessions.day(payments[*index].position).year() >= first_year
                && is_fit(&payments[*index])
                && around
                    .windows(2)
                    .all(|pair| pair[0].amount <= pair[1].amount && pair[1].amount * 5 <= pair[0].amount * 6)
        };
        let fitting: Vec<usize> =
            (MIN_NEIGHBOURS..past.saturating_sub(MIN_NEIGHBOURS)).filter(fits).collect();
        let count = i64::try_from(fitting.len()).ok().filter(|count| *count > 0)?;
        Some(fitting[self.random.between(0, count - 1) as usize])
    }

    fn plant_payment(&mut self, kind: FaultKind) -> Option<PlantedFault> {
        let is_monthly = self.plan.shape.frequency() == Some(Frequency::Monthly);
        // A trust pays out capital: its specials have a type.
        let is_trust = self.plan.shape.regular_type == DividendType::ReturnOfCapital;
        if kind == FaultKind::Supplement && !is_monthly || kind == FaultKind::UntypedSpecial && is_trust {
            return None;
        }
        let market = self.plan.market;
        let month = |payment: &SyntheticDistribution| market.sessions.day(payment.position).month();
        let index = self.pick_payment(|payment| {
            kind != FaultKind::BoundaryShift || !is_monthly && matches!(month(payment), 1 | 12)
        })?;
        let payment = self.rows.price_distributions[index];
        let mut position = payment.position;
        match kind {
            FaultKind::NearDuplicate => {
                // Two rows of one payment are at most a quarter of the payment period apart.
                let later = if is_monthly { (2, 4) } else { (3, 6) };
                position += self.random.between(later.0, later.1) as usize;
                self.rows.rows.push(SyntheticDistribution { position, ..payment });
            }
            FaultKind::UntypedSpecial => {
                let later = if is_monthly { (5, 8) } else { (15, 25) };
                position += self.random.between(later.0, later.1) as usize;
                let amount = payment.amount * self.random.between(3, 7);
                let special = SyntheticDistribution { position, amount, frequency: None, ..payment };
                self.rows.price_distributions.push(special);
                self.rows.rows.push(special);
            }
            FaultKind::Supplement => {
                position += self.random.between(9, 11) as usize;
                let supplement = SyntheticDistribution { position, ..payment };
                self.rows.price_distributions.push(supplement);
                self.rows.rows.push(supplement);
            }
            FaultKind::CombinedPayment => {
                let amount = payment.amount / 1_000 * self.random.between(15, 75) * 100;
                self.rows.price_distributions[index].amount = amount;
                self.rows.rows[index].amount = amount;
            }
            FaultKind::ContainedPayment => {
                let amount = payment.amount * self.random.between(18, 25);
                self.rows.price_distributions[index].amount = amount;
                self.rows.rows[index].amount = amount;
                let gain = amount - payment.amount;
                let kind = DividendType::CapitalGain;
                self.rows.rows.push(SyntheticDistribution { amount: gain, kind, frequency: None, ..payment });
            }
            FaultKind::AmountDip => self.rows.rows[index].amount = (payment.amount / 2).max(1),
            FaultKind::UnexpectedExDate => self.rows.rows[index].ex_date_shift = 1,
            FaultKind::TranslatedPayment => {
                self.rows.rows.push(SyntheticDistribution { currency: "EUR", ..payment });
            }
            FaultKind::MissingPayment => {
                self.rows.rows.remove(index);
            }
            _ => {
                let day = market.sessions.day(position);
                let year_end = if month(&payment) == 1 { day.year() - 1 } else { day.year() };
                let end = super::regular_ex_dates::ymd(year_end, 12, 26);
                position = match month(&payment) {
                    1 => market.sessions.on_or_before(end),
                    _ => market.sessions.on_or_after(end + Days::new(7)),
                };
                self.rows.rows[index].position = position;
            }
        }
        self.rows.price_distributions.sort_by_key(|payment| payment.position);
        self.rows.rows.sort_by_key(|payment| payment.position);
        Some(self.fault(kind, position))
    }

    /// Position of a random session within the trading period, away from its ends.
    fn pick_session(&mut self) -> usize {
        let length = self.plan.end - self.plan.start;
        self.plan.start + length * self.random.between(15, 85) as usize / 100
    }

    fn plant_spin_off(&mut self) -> PlantedFault {
        let shares = SPIN_OFFS[self.random.between(0, SPIN_OFFS.len() as i64 - 1) as usize];
        let position = self.pick_session();
        let bars = BarFault { to: position, multiply: shares, divide: 1_000, ..BarFault::NONE };
        PlantedFault { bars, spin_off: Some(shares), ..self.fault(FaultKind::SpinOffAsSplit, position) }
    }

    fn plant_price_level(&mut self) -> PlantedFault {
        let position = self.pick_session();
        let (sessions, multiply, divide) = match self.random.between(0, 4) {
            0 => (1, 7, 1),
            1 => (1, 1, 7),
            2 => (1, 1_000, 1),
            3 => (self.random.between(2, 8) as usize, 100, 1),
            _ => (self.random.between(2, 8) as usize, 1, 100),
        };
        let bars = BarFault { from: position, to: position + sessions, multiply, divide, ..BarFault::NONE };
        PlantedFault { bars, ..self.fault(FaultKind::PriceLevel, position) }
    }

    /// Plants [`FaultKind::ShareBasis`]: adjusts all amounts with an ex-date before the security's only split. `None`
    /// if the security is not suitable.
    fn plant_share_basis(&mut self, changes: &ShareChanges) -> Option<PlantedFault> {
        let [split] = changes.0.as_slice() else { return None };
        let payments = &self.rows.price_distributions;
        let next = payments.partition_point(|payment| payment.position < split.position);
        let (before, after) = (payments.get(next.checked_sub(1)?)?, payments.get(next)?);
        let is_large = !split.stock_dividend && split.to >= split.from * 2;
        // A raise at the split would change the ratio of the two amounts, and hide the fault from the rules.
        let is_same_amount = before.amount * split.from == after.amount * split.to;
        if !is_large || !is_same_amount || after.position > self.plan.market.sessions.last {
            return None;
        }
        for payment in self.rows.rows.iter_mut().take(next) {
            payment.amount = scaled(payment.amount, split.from, split.to).max(1);
        }
        Some(self.fault(FaultKind::ShareBasis, split.position))
    }
}

impl PlantedFault {
    /// Appends the split row of a spin-off; returns the number of rows.
    pub(super) fn write_split(&self, plan: &SecurityPlan<'_>, out: &mut Vec<u8>) -> u64 {
        let Some(shares) = self.spin_off else { return 0 };
        CsvRow::new(out)
            .text(&plan.symbol)
            .date(plan.market.sessions.day(self.position))
            .integer(1_000)
            .integer(shares)
            .date(None)
            .date(None)
            .text("")
            .end();
        1
    }

    /// Appends the row of the fault to the list of planted faults.
    pub(super) fn write(&self, plan: &SecurityPlan<'_>, out: &mut Vec<u8>) {
        let date = plan.market.sessions.day(self.position);
        let word = FAULT_KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, word)| word);
        CsvRow::new(out).text(plan.symbol_at(self.position)).date(date).text(word).end();
    }
}
