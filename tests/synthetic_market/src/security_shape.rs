//! Shapes of generated securities: type, dividends, splits and trading period. The number of a security in the market,
//! from 0, selects one of sixty shapes.

use market::event::{DividendType, Frequency, SecurityType};

use super::naming::{ENERGY, FINANCIALS, REAL_ESTATE, UTILITIES};

/// Payment schedule of regular dividends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaymentSchedule {
    Never,
    Every(Frequency),
    /// Regular payments with an amount that varies from payment to payment.
    Variable(Frequency),
}

/// Distributions other than regular dividends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtraDistribution {
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
pub(super) enum TradingPeriod {
    Full,
    RecentListing,
    Delisted,
    Renamed,
    /// Trading begins after the start of the history, with the former ticker of the previous security.
    TakesFormerTicker,
}

/// If and how the dividends stop while the security is still traded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DividendStop {
    No,
    Suspended,
    Lapsed,
}

/// Listing of the fund that has several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listing {
    pub(super) exchange: &'static str,
    /// Currency of the prices.
    pub(super) currency: &'static str,
    pub(super) suffix: &'static str,
}

/// Share split after `percent` percent of the trading period. `from` old shares become `to` new shares.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitAt {
    pub(super) percent: usize,
    pub(super) from: i64,
    pub(super) to: i64,
    /// True if the split is moved to the next regular ex-date.
    pub(super) on_ex_date: bool,
}

/// Properties of a security that depend on its number in the market.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecurityShape {
    pub(super) kind: SecurityType,
    pub(super) schedule: PaymentSchedule,
    pub(super) regular_type: DividendType,
    pub(super) extra: ExtraDistribution,
    pub(super) trading_period: TradingPeriod,
    pub(super) stop: DividendStop,
    /// Number of complete years with a dividend raise, up to the newest complete year of the history. Earlier years,
    /// and years after a cut, have no raise.
    pub(super) streak: i32,
    /// Growth of price level and dividend in a year with a raise, in hundredths of a percent.
    pub(super) growth: i64,
    /// Year in which the dividend is halved, counted back: 0 is the last year of the history.
    pub(super) cut: Option<i32>,
    /// Dividend yield in the first year, in hundredths of a percent.
    pub(super) dividend_yield: i64,
    /// First price in dollars.
    pub(super) price: i64,
    /// Standard deviation of the security's own daily return, in millionths. The part that follows the market is
    /// excluded.
    pub(super) volatility: i64,
    /// Sensitivity to the market's return, in percent.
    pub(super) beta: i64,
    pub(super) splits: &'static [SplitAt],
    pub(super) sector: Option<usize>,
    pub(super) sp500: bool,
    pub(super) small: bool,
    /// Payout ratio (dividends divided by earnings) in percent; 0 if the earnings do not depend on the dividend.
    pub(super) payout: i64,
    pub(super) loss: bool,
    pub(super) figures: bool,
    /// True if the price falls by 55 % on one day, at most 100 sessions before the last price.
    pub(super) crash: bool,
    /// Suffix of the ticker, such as `.B`, and index of the security within its company (0 or 1).
    pub(super) class: Option<(&'static str, u64)>,
    /// Listing, if the security is one of several listings of a fund.
    pub(super) listing: Option<Listing>,
    pub(super) pays_in: &'static str,
    /// Number of calendar days from the declaration of a dividend to its ex-date.
    pub(super) notice: u64,
    /// True for a fund with published holdings.
    pub(super) holdings: bool,
    /// Sort of security, such as `Bond Fund`. The generated name of the security usually contains this label. `King`
    /// and `Aristocrat` are never in the name.
    pub(super) label: &'static str,
}

const STOCK: SecurityShape = SecurityShape {
    kind: SecurityType::Stock,
    schedule: PaymentSchedule::Every(Frequency::Quarterly),
    regular_type: DividendType::Regular,
    extra: ExtraDistribution::Nothing,
    trading_period: TradingPeriod::Full,
    stop: DividendStop::No,
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
    listing: None,
    pays_in: "USD",
    notice: 35,
    holdings: false,
    label: "",
};

const fn grower(streak: i32, growth: i64, dividend_yield: i64) -> SecurityShape {
    SecurityShape { streak, growth, dividend_yield, price: 32, ..STOCK }
}

const NON_PAYER: SecurityShape = SecurityShape {
    schedule: PaymentSchedule::Never,
    dividend_yield: 0,
    payout: 0,
    streak: 99,
    growth: 800,
    volatility: 20_000,
    beta: 130,
    ..STOCK
};

const FUND: SecurityShape = SecurityShape {
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

const GEARED: SecurityShape = SecurityShape {
    holdings: false,
    schedule: PaymentSchedule::Never,
    dividend_yield: 0,
    growth: 0,
    streak: 0,
    volatility: 300,
    ..FUND
};

const fn split(percent: usize, from: i64, to: i64) -> SplitAt {
    SplitAt { percent, from, to, on_ex_date: false }
}

const fn every(frequency: Frequency) -> PaymentSchedule {
    PaymentSchedule::Every(frequency)
}

/// Shapes of the first sixty securities of a market, in order. Further securities have the same shapes in the same
/// order, but other random numbers.
#[rustfmt::skip]
pub(super) const SHAPES: [SecurityShape; 60] = [
    SecurityShape { volatility: 0, label: "Index Fund", notice: 20, ..FUND },
    SecurityShape { sp500: true, label: "King", ..grower(55, 500, 260) },
    SecurityShape { sp500: true, label: "Aristocrat", ..grower(30, 700, 220) },
    SecurityShape { sp500: true, splits: &[split(55, 1, 2)], label: "Aristocrat", ..grower(27, 800, 200) },
    SecurityShape { sector: Some(UTILITIES), label: "King", ..grower(62, 350, 360) },
    SecurityShape { small: true, ..grower(26, 450, 300) },
    grower(15, 600, 270),
    SecurityShape { splits: &[split(60, 2, 3)], ..grower(11, 900, 240) },
    grower(7, 700, 250),
    SecurityShape { schedule: every(Frequency::Monthly), ..grower(5, 400, 420) },
    STOCK,
    SecurityShape { cut: Some(2), streak: 99, growth: 400, dividend_yield: 450, payout: 70, ..STOCK },
    SecurityShape { cut: Some(0), sp500: true, label: "Aristocrat", ..grower(33, 500, 330) },
    SecurityShape { stop: DividendStop::Suspended, dividend_yield: 520, payout: 85, beta: 140, ..STOCK },
    SecurityShape { stop: DividendStop::Lapsed, dividend_yield: 300, figures: false, ..STOCK },
    NON_PAYER,
    SecurityShape { splits: &[split(70, 1, 4)], growth: 1_000, loss: true, ..NON_PAYER },
    SecurityShape { splits: &[split(45, 1, 7), split(75, 1, 4)], price: 350, sp500: true, ..grower(9, 900, 70) },
    SecurityShape { splits: &[split(65, 10, 1)], price: 4, growth: 0, loss: true, small: true, ..NON_PAYER },
    SecurityShape { splits: &[SplitAt { on_ex_date: true, ..split(50, 1, 2) }], price: 80, ..grower(12, 700, 230) },
    SecurityShape { extra: ExtraDistribution::Special, sp500: true, ..grower(20, 800, 80) },
    SecurityShape { extra: ExtraDistribution::Supplemental, schedule: every(Frequency::Monthly), sector: Some(FINANCIALS), dividend_yield: 800, payout: 95, ..STOCK },
    SecurityShape { extra: ExtraDistribution::SpinOff, ..grower(28, 500, 310) },
    SecurityShape { extra: ExtraDistribution::StockDividend, dividend_yield: 120, ..STOCK },
    SecurityShape { extra: ExtraDistribution::ReturnOfCapital, dividend_yield: 350, ..STOCK },
    SecurityShape { schedule: every(Frequency::SemiAnnual), streak: 6, growth: 500, ..STOCK },
    SecurityShape { schedule: every(Frequency::Annual), streak: 8, growth: 600, ..STOCK },
    SecurityShape { schedule: every(Frequency::Irregular), regular_type: DividendType::Irregular, ..STOCK },
    SecurityShape { schedule: PaymentSchedule::Variable(Frequency::Quarterly), dividend_yield: 900, payout: 80, beta: 150, ..STOCK },
    SecurityShape { kind: SecurityType::Reit, sector: Some(REAL_ESTATE), schedule: every(Frequency::Monthly), notice: 50, payout: 250, label: "Monthly Property", ..grower(26, 350, 520) },
    SecurityShape { kind: SecurityType::Reit, sector: Some(REAL_ESTATE), payout: 180, label: "Property", ..grower(13, 450, 400) },
    SecurityShape { kind: SecurityType::Mlp, sector: Some(ENERGY), regular_type: DividendType::ReturnOfCapital, payout: 110, label: "Pipeline Partners", ..grower(10, 300, 740) },
    SecurityShape { kind: SecurityType::Adr, schedule: every(Frequency::SemiAnnual), pays_in: "EUR", label: "Receipt", ..STOCK },
    SecurityShape { kind: SecurityType::Adr, schedule: every(Frequency::Annual), pays_in: "GBX", label: "Receipt", ..STOCK },
    SecurityShape { kind: SecurityType::Adr, label: "Receipt", ..grower(6, 500, 340) },
    SecurityShape { sector: Some(FINANCIALS), label: "Bank", ..grower(14, 600, 290) },
    SecurityShape { kind: SecurityType::Preferred, sector: Some(FINANCIALS), class: Some((".PRA", 1)), price: 25, dividend_yield: 620, volatility: 3_500, beta: 20, figures: false, label: "Bank Preferred A", ..STOCK },
    SecurityShape { class: Some((".A", 0)), label: "Class A", ..grower(9, 500, 190) },
    SecurityShape { class: Some((".B", 1)), label: "Class B", ..grower(9, 500, 190) },
    SecurityShape { trading_period: TradingPeriod::Delisted, ..STOCK },
    SecurityShape { trading_period: TradingPeriod::Delisted, extra: ExtraDistribution::Liquidation, figures: false, ..STOCK },
    SecurityShape { trading_period: TradingPeriod::Renamed, ..grower(16, 600, 210) },
    SecurityShape { trading_period: TradingPeriod::TakesFormerTicker, ..STOCK },
    SecurityShape { trading_period: TradingPeriod::RecentListing, ..STOCK },
    SecurityShape { kind: SecurityType::ClosedEndFund, extra: ExtraDistribution::ReturnOfCapital, schedule: every(Frequency::Monthly), dividend_yield: 850, figures: false, label: "Income Fund", ..STOCK },
    SecurityShape { kind: SecurityType::Trust, sector: Some(ENERGY), schedule: PaymentSchedule::Variable(Frequency::Monthly), dividend_yield: 780, payout: 98, small: true, label: "Royalty Trust", ..STOCK },
    SecurityShape { schedule: every(Frequency::Weekly), streak: 0, dividend_yield: 900, label: "Weekly Income Fund", ..FUND },
    SecurityShape { schedule: every(Frequency::Monthly), streak: 0, dividend_yield: 420, beta: 10, holdings: false, label: "Bond Fund", ..FUND },
    SecurityShape { extra: ExtraDistribution::CapitalGains, dividend_yield: 310, label: "Dividend Fund", ..FUND },
    SecurityShape { schedule: every(Frequency::SemiAnnual), label: "Sector Fund", sector: Some(UTILITIES), ..FUND },
    SecurityShape { schedule: every(Frequency::Annual), label: "International Fund", ..FUND },
    SecurityShape { beta: 200, label: "2x Fund", ..GEARED },
    SecurityShape { beta: -100, label: "Inverse Fund", ..GEARED },
    SecurityShape { beta: -300, splits: &[split(60, 10, 1)], price: 5, label: "Inverse 3x Fund", ..GEARED },
    SecurityShape { crash: true, dividend_yield: 650, payout: 140, ..STOCK },
    SecurityShape { dividend_yield: 3_200, payout: 400, small: true, ..STOCK },
    SecurityShape { loss: true, dividend_yield: 240, ..STOCK },
    SecurityShape { splits: &[split(80, 1, 2)], ..grower(12, 1_000, 360) },
    SecurityShape { price: 60, ..grower(8, 1_800, 100) },
    SecurityShape { dividend_yield: 340, label: "High Dividend Fund", ..FUND },
];

/// Number of the first listing in [`LISTINGS`].
pub(super) const FIRST_LISTING: u64 = 30;
/// Listings of one fund, by the number of the security. They replace the shapes that these securities have by their
/// number.
const LISTINGS: [(u64, SecurityShape); 3] = [
    (FIRST_LISTING, listing("XLON", "GBP", ".L")),
    (34, listing("XETR", "EUR", ".DE")),
    (59, listing("XSWX", "USD", ".SW")),
];

const fn listing(exchange: &'static str, currency: &'static str, suffix: &'static str) -> SecurityShape {
    let listing = Some(Listing { exchange, currency, suffix });
    SecurityShape { listing, dividend_yield: 260, label: "World Fund", ..FUND }
}

/// Shape of a security. `index` is the number of the security in the generated market, from 0.
pub(super) fn shape_of(index: u64) -> &'static SecurityShape {
    let listing = LISTINGS.iter().find(|(number, _)| *number == index);
    listing.map_or(&SHAPES[(index % SHAPES.len() as u64) as usize], |(_, shape)| shape)
}

impl SecurityShape {
    /// Frequency of regular dividends; `None` for a non-payer.
    pub(super) fn frequency(&self) -> Option<Frequency> {
        match self.schedule {
            PaymentSchedule::Never => None,
            PaymentSchedule::Every(frequency) | PaymentSchedule::Variable(frequency) => Some(frequency),
        }
    }

    /// True if the security trades, pays or reports in other currencies than US dollars.
    pub(super) fn needs_rates(&self) -> bool {
        self.pays_in != "USD" || self.listing.is_some()
    }

    /// True if funds may contain the security.
    pub(super) fn is_investable(&self) -> bool {
        let company = matches!(self.kind, SecurityType::Stock | SecurityType::Reit | SecurityType::Adr);
        company && self.trading_period == TradingPeriod::Full && self.class.is_none()
    }
}
