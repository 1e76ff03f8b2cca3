//! Shapes of generated securities. Sixty shapes are assigned by index, so sixty securities cover every case.

use market::event::{DividendType, Frequency, SecurityType};

use super::naming::{ENERGY, FINANCIALS, REAL_ESTATE, UTILITIES};

/// Payment schedule of regular dividends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schedule {
    Never,
    Every(Frequency),
    /// Amounts vary between payments.
    Variable(Frequency),
}

/// Distributions other than regular dividends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Nothing,
    Special,
    Supplemental,
    CapitalGains,
    SpinOff,
    StockDividend,
    ReturnOfCapital,
    Liquidation,
}

/// Trading period of a security within the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Whole,
    RecentListing,
    Delisted,
    Renamed,
    /// Lists with the former ticker of the preceding security.
    TakesFormerTicker,
}

/// End of dividends while the security keeps trading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    No,
    Suspended,
    Lapsed,
}

/// Share split at a percentage of the trading period.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitAt {
    pub(super) percent: usize,
    pub(super) from: i64,
    pub(super) to: i64,
    /// True to move the split to the next regular ex-date.
    pub(super) on_ex_date: bool,
}

/// Properties of a security that depend on its index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) kind: SecurityType,
    pub(super) schedule: Schedule,
    pub(super) regular_type: DividendType,
    pub(super) extra: Extra,
    pub(super) life: Life,
    pub(super) stop: Stop,
    /// Years of consecutive raises at the end of the history. Earlier years have no raise.
    pub(super) streak: i32,
    /// Yearly raise in hundredths of a percent.
    pub(super) growth: i64,
    /// Year with a halved dividend, counted back from the running year, which is 0.
    pub(super) cut: Option<i32>,
    /// Yield in hundredths of a percent.
    pub(super) dividend_yield: i64,
    /// First price in dollars.
    pub(super) price: i64,
    /// Idiosyncratic daily volatility in millionths.
    pub(super) volatility: i64,
    /// Sensitivity to the market's return, in percent.
    pub(super) beta: i64,
    pub(super) splits: &'static [SplitAt],
    pub(super) sector: Option<usize>,
    pub(super) sp500: bool,
    pub(super) small: bool,
    /// Payout ratio in percent; 0 without a dividend or without figures.
    pub(super) payout: i64,
    pub(super) loss: bool,
    pub(super) figures: bool,
    /// True if the price halves in the last year.
    pub(super) crash: bool,
    /// Class suffix, and the distance in indexes to the root's security.
    pub(super) class: Option<(&'static str, u64)>,
    pub(super) pays_in: &'static str,
    /// Days from declaration to ex-date.
    pub(super) notice: u64,
    /// True for a fund with published holdings.
    pub(super) holdings: bool,
    /// Part of the security's name.
    pub(super) label: &'static str,
}

const STOCK: Shape = Shape {
    kind: SecurityType::Stock,
    schedule: Schedule::Every(Frequency::Quarterly),
    regular_type: DividendType::Regular,
    extra: Extra::Nothing,
    life: Life::Whole,
    stop: Stop::No,
    streak: 0,
    growth: 600,
    cut: None,
    dividend_yield: 280,
    price: 40,
    volatility: 12_000,
    beta: 90,
    splits: &[],
    sector: None,
    sp500: false,
    small: false,
    payout: 50,
    loss: false,
    figures: true,
    crash: false,
    class: None,
    pays_in: "USD",
    notice: 35,
    holdings: false,
    label: "",
};

const fn grower(streak: i32, growth: i64, dividend_yield: i64) -> Shape {
    Shape { streak, growth, dividend_yield, price: 32, ..STOCK }
}

const NON_PAYER: Shape = Shape {
    schedule: Schedule::Never,
    dividend_yield: 0,
    payout: 0,
    streak: 99,
    growth: 800,
    volatility: 20_000,
    beta: 130,
    ..STOCK
};

const FUND: Shape = Shape {
    kind: SecurityType::Etf,
    regular_type: DividendType::Regular,
    streak: 99,
    growth: 500,
    dividend_yield: 180,
    price: 50,
    volatility: 1_500,
    beta: 100,
    payout: 0,
    figures: false,
    holdings: true,
    notice: 10,
    ..STOCK
};

const GEARED: Shape = Shape {
    holdings: false,
    schedule: Schedule::Never,
    dividend_yield: 0,
    growth: 0,
    streak: 0,
    volatility: 300,
    ..FUND
};

const fn split(percent: usize, from: i64, to: i64) -> SplitAt {
    SplitAt { percent, from, to, on_ex_date: false }
}

const fn every(frequency: Frequency) -> Schedule {
    Schedule::Every(frequency)
}

/// Shapes in order of index. A larger market repeats them with other random numbers.
#[rustfmt::skip]
pub(super) const SHAPES: [Shape; 60] = [
    Shape { volatility: 0, label: "Index Fund", notice: 20, ..FUND },
    Shape { sp500: true, label: "King", ..grower(55, 500, 260) },
    Shape { sp500: true, label: "Aristocrat", ..grower(30, 700, 220) },
    Shape { sp500: true, splits: &[split(55, 1, 2)], label: "Aristocrat", ..grower(27, 800, 200) },
    Shape { sector: Some(UTILITIES), label: "King", ..grower(62, 350, 360) },
    Shape { small: true, ..grower(26, 450, 300) },
    grower(15, 600, 270),
    Shape { splits: &[split(60, 2, 3)], ..grower(11, 900, 240) },
    grower(7, 700, 250),
    Shape { schedule: every(Frequency::Monthly), ..grower(5, 400, 420) },
    STOCK,
    Shape { cut: Some(2), streak: 99, growth: 400, dividend_yield: 450, payout: 70, ..STOCK },
    Shape { cut: Some(0), sp500: true, label: "Aristocrat", ..grower(33, 500, 330) },
    Shape { stop: Stop::Suspended, dividend_yield: 520, payout: 85, beta: 140, ..STOCK },
    Shape { stop: Stop::Lapsed, dividend_yield: 300, figures: false, ..STOCK },
    NON_PAYER,
    Shape { splits: &[split(70, 1, 4)], growth: 1_000, loss: true, ..NON_PAYER },
    Shape { splits: &[split(45, 1, 7), split(75, 1, 4)], price: 350, sp500: true, ..grower(9, 900, 70) },
    Shape { splits: &[split(65, 10, 1)], price: 4, growth: 0, loss: true, small: true, ..NON_PAYER },
    Shape { splits: &[SplitAt { on_ex_date: true, ..split(50, 1, 2) }], price: 80, ..grower(12, 700, 230) },
    Shape { extra: Extra::Special, sp500: true, ..grower(20, 800, 80) },
    Shape { extra: Extra::Supplemental, schedule: every(Frequency::Monthly), sector: Some(FINANCIALS), dividend_yield: 800, payout: 95, ..STOCK },
    Shape { extra: Extra::SpinOff, ..grower(28, 500, 310) },
    Shape { extra: Extra::StockDividend, dividend_yield: 120, ..STOCK },
    Shape { extra: Extra::ReturnOfCapital, dividend_yield: 350, ..STOCK },
    Shape { schedule: every(Frequency::SemiAnnual), streak: 6, growth: 500, ..STOCK },
    Shape { schedule: every(Frequency::Annual), streak: 8, growth: 600, ..STOCK },
    Shape { schedule: every(Frequency::Irregular), regular_type: DividendType::Irregular, ..STOCK },
    Shape { schedule: Schedule::Variable(Frequency::Quarterly), dividend_yield: 900, payout: 80, beta: 150, ..STOCK },
    Shape { kind: SecurityType::Reit, sector: Some(REAL_ESTATE), schedule: every(Frequency::Monthly), notice: 50, payout: 250, label: "Monthly Property", ..grower(26, 350, 520) },
    Shape { kind: SecurityType::Reit, sector: Some(REAL_ESTATE), payout: 180, label: "Property", ..grower(13, 450, 400) },
    Shape { kind: SecurityType::Mlp, sector: Some(ENERGY), regular_type: DividendType::ReturnOfCapital, payout: 110, label: "Pipeline Partners", ..grower(10, 300, 740) },
    Shape { kind: SecurityType::Adr, schedule: every(Frequency::SemiAnnual), pays_in: "EUR", label: "Receipt", ..STOCK },
    Shape { kind: SecurityType::Adr, schedule: every(Frequency::Annual), pays_in: "GBX", label: "Receipt", ..STOCK },
    Shape { kind: SecurityType::Adr, label: "Receipt", ..grower(6, 500, 340) },
    Shape { sector: Some(FINANCIALS), label: "Bank", ..grower(14, 600, 290) },
    Shape { kind: SecurityType::Preferred, sector: Some(FINANCIALS), class: Some((".PRA", 1)), price: 25, dividend_yield: 620, volatility: 3_500, beta: 20, figures: false, label: "Bank Preferred A", ..STOCK },
    Shape { class: Some((".A", 0)), label: "Class A", ..grower(9, 500, 190) },
    Shape { class: Some((".B", 1)), label: "Class B", ..grower(9, 500, 190) },
    Shape { life: Life::Delisted, ..STOCK },
    Shape { life: Life::Delisted, extra: Extra::Liquidation, figures: false, ..STOCK },
    Shape { life: Life::Renamed, ..grower(16, 600, 210) },
    Shape { life: Life::TakesFormerTicker, ..STOCK },
    Shape { life: Life::RecentListing, ..STOCK },
    Shape { kind: SecurityType::ClosedEndFund, extra: Extra::ReturnOfCapital, schedule: every(Frequency::Monthly), dividend_yield: 850, figures: false, label: "Income Fund", ..STOCK },
    Shape { kind: SecurityType::Trust, sector: Some(ENERGY), schedule: Schedule::Variable(Frequency::Monthly), dividend_yield: 780, payout: 98, small: true, label: "Royalty Trust", ..STOCK },
    Shape { schedule: every(Frequency::Weekly), streak: 0, dividend_yield: 900, label: "Weekly Income Fund", ..FUND },
    Shape { schedule: every(Frequency::Monthly), streak: 0, dividend_yield: 420, beta: 10, holdings: false, label: "Bond Fund", ..FUND },
    Shape { extra: Extra::CapitalGains, dividend_yield: 310, label: "Dividend Fund", ..FUND },
    Shape { schedule: every(Frequency::SemiAnnual), label: "Sector Fund", sector: Some(UTILITIES), ..FUND },
    Shape { schedule: every(Frequency::Annual), label: "International Fund", ..FUND },
    Shape { beta: 200, label: "2x Fund", ..GEARED },
    Shape { beta: -100, label: "Inverse Fund", ..GEARED },
    Shape { beta: -300, splits: &[split(60, 10, 1)], price: 5, label: "Inverse 3x Fund", ..GEARED },
    Shape { crash: true, dividend_yield: 650, payout: 140, ..STOCK },
    Shape { dividend_yield: 3_200, payout: 400, small: true, ..STOCK },
    Shape { loss: true, dividend_yield: 240, ..STOCK },
    Shape { splits: &[split(80, 1, 2)], ..grower(12, 1_000, 360) },
    Shape { price: 60, ..grower(8, 1_800, 100) },
    Shape { dividend_yield: 340, label: "High Dividend Fund", ..FUND },
];

/// Shape of the security at an index.
pub(super) fn shape_of(index: u64) -> &'static Shape {
    &SHAPES[(index % SHAPES.len() as u64) as usize]
}

impl Shape {
    /// Frequency of regular dividends; `None` for a non-payer.
    pub(super) fn frequency(&self) -> Option<Frequency> {
        match self.schedule {
            Schedule::Never => None,
            Schedule::Every(frequency) | Schedule::Variable(frequency) => Some(frequency),
        }
    }

    /// True if funds may contain the security.
    pub(super) fn investable(&self) -> bool {
        let company = matches!(self.kind, SecurityType::Stock | SecurityType::Reit | SecurityType::Adr);
        company && self.life == Life::Whole && self.class.is_none()
    }
}
