//! Plan of one security: identity, trading period, and value and dividend of each year.

use chrono::{Datelike, NaiveDate};
use market::event::SecurityType;

use super::familiar_tickers::{FamiliarSecurity, familiar_at};
use super::naming::{FOREIGN, SECTORS, former_ticker, ticker};
use super::random::SplitMix64;
use super::security_shape::{DividendStop, FIRST_LISTING, SecurityShape, TradingPeriod, shape_of};
use super::synthetic_market::SyntheticMarket;

/// Value and yearly dividend of one share in a calendar year, in millionths of a dollar. Both refer to a share of the
/// first day of the history, so later splits do not change them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedYear {
    pub(super) value: i64,
    pub(super) rate: i64,
}

/// Planned security.
#[derive(Debug)]
pub(super) struct SecurityPlan<'a> {
    pub(super) market: &'a SyntheticMarket,
    /// Number of the security in the market. All listings of the fund have the number of the first, and so the same name,
    /// ISIN, random numbers and dividends.
    pub(super) index: u64,
    pub(super) shape: &'static SecurityShape,
    pub(super) symbol: String,
    /// Former ticker, and session position of the last session with this ticker; `None` if the security was never
    /// renamed.
    pub(super) former: Option<(String, usize)>,
    /// Well-known company or fund with this ticker; `None` for a synthetic ticker.
    pub(super) familiar: Option<&'static FamiliarSecurity>,
    pub(super) sector: usize,
    /// Session position of the first price. A session position is an index in the market's sessions.
    pub(super) start: usize,
    /// Session of the last price, as an index in the market's sessions.
    pub(super) end: usize,
    /// Shares outstanding before all splits.
    pub(super) shares: i64,
    /// Typical number of shares traded per day before all splits.
    pub(super) volume: i64,
    pub(super) volatility: i64,
    /// Yearly raises that the generated rows do not show: their number, and the last year.
    pub(super) streak_seed: Option<(i32, i32)>,
    pub(super) random: SplitMix64,
    first_year: i32,
    years: Vec<PlannedYear>,
}

impl<'a> SecurityPlan<'a> {
    /// Plans the security at `index`. The result depends only on the index and the market.
    pub(super) fn new(index: u64, market: &'a SyntheticMarket) -> Self {
        let shape = shape_of(index);
        let familiar = market.familiar_tickers.then(|| familiar_at(index)).flatten();
        let symbol = symbol(index, shape, market);
        let index = shape.listing.map_or(index, |_| FIRST_LISTING);
        let mut random = SplitMix64::new(market.seed, index);
        let (start, end) = trading_positions(shape, market);
        let streak =
            shape.streak + if index >= 60 && shape.streak >= 5 { random.between(0, 3) as i32 } else { 0 };
        let scale = if shape.small { 1 } else { 8 };
        let mut plan = Self {
            market,
            index,
            shape,
            symbol,
            former: (shape.trading_period == TradingPeriod::Renamed)
                .then(|| (former_ticker(index), middle(start, end))),
            familiar,
            sector: familiar.map_or(sector_of(index), |familiar| familiar.sector),
            start,
            end,
            shares: random.between(40_000_000, 120_000_000) * scale,
            volume: random.between(300_000, 900_000) * scale,
            volatility: shape.volatility * random.between(85, 115) / 100,
            streak_seed: streak_seed(streak, shape, market),
            random,
            first_year: market.sessions.day(start).year(),
            years: Vec::new(),
        };
        plan.years = plan.path(streak);
        plan
    }

    /// Value and dividend of each planned year, from the first year of trading to the year after the history. `streak`
    /// is the number of complete years with raises at the end of the history.
    fn path(&mut self, streak: i32) -> Vec<PlannedYear> {
        let (shape, market) = (self.shape, self.market);
        let value = shape.price * 10_000 * self.random.between(80, 125);
        let dividend_yield = shape.dividend_yield * self.random.between(90, 110) / 100;
        let growth = shape.growth * self.random.between(90, 110) / 100;
        let cut_year = shape.cut.map(|years| market.last_complete_year + 1 - years);
        let mut year = PlannedYear { value, rate: value / 10_000 * dividend_yield };
        let mut years = vec![year];
        for number in self.first_year + 1..=market.sessions.last_day().year() + 1 {
            if cut_year == Some(number) {
                year = PlannedYear { value: year.value * 85 / 100, rate: year.rate / 2 };
            } else if number > market.last_complete_year - streak && cut_year.is_none_or(|cut| number < cut) {
                let grown = |amount: i64| amount + amount / 10_000 * growth;
                year = PlannedYear { value: grown(year.value), rate: grown(year.rate) };
            }
            years.push(year);
        }
        years
    }

    /// Value and dividend of a calendar year. Both are per share before all splits.
    pub(super) fn year(&self, year: i32) -> PlannedYear {
        let last = self.years.len() - 1;
        self.years[usize::try_from(year - self.first_year).unwrap_or(0).min(last)]
    }

    pub(super) fn is_active(&self) -> bool {
        self.shape.trading_period != TradingPeriod::Delisted
    }

    /// Ticker on the session at `position`.
    pub(super) fn symbol_at(&self, position: usize) -> &str {
        match &self.former {
            Some((former, until)) if position <= *until => former,
            _ => &self.symbol,
        }
    }

    /// Session position of the last possible ex-date; `usize::MAX` if the security is listed and continues to pay.
    pub(super) fn last_ex_date_position(&self) -> usize {
        let length = self.end - self.start;
        match self.shape.stop {
            DividendStop::No if self.is_active() => usize::MAX,
            DividendStop::No => self.end,
            DividendStop::Suspended => self.end - (length / 3).min(200),
            DividendStop::Lapsed => self.end.min(self.market.sessions.last) - (length * 2 / 3).min(500),
        }
    }

    /// Date on which a suspension was announced.
    pub(super) fn suspension_announced_on(&self) -> Option<NaiveDate> {
        (self.shape.stop == DividendStop::Suspended)
            .then(|| self.market.sessions.day(self.last_ex_date_position() + 20))
    }

    pub(super) fn name(&self) -> String {
        let number = self.index;
        if let Some(familiar) = self.familiar {
            return format!("Synthetic {}", familiar.name);
        }
        match (self.shape.label, self.shape.kind) {
            _ if number == 0 => "Synthetic Benchmark Fund".to_owned(),
            (label @ ("Class A" | "Class B"), _) => {
                let root = number - self.shape.class.map_or(0, |(_, back)| back);
                format!("Synthetic {} {root:04} {label}", SECTORS[self.sector].0)
            }
            ("" | "King" | "Aristocrat", _) => format!("Synthetic {} {number:04}", SECTORS[self.sector].0),
            (label, _) => format!("Synthetic {label} {number:04}"),
        }
    }

    pub(super) fn industry(&self) -> &'static str {
        let synthetic = SECTORS[self.sector].1[(self.index / 11 % 3) as usize];
        self.familiar.map_or(synthetic, |familiar| familiar.industry)
    }

    pub(super) fn country(&self) -> &'static str {
        match self.shape.kind {
            SecurityType::Adr => FOREIGN[(self.index % 6) as usize],
            _ if self.shape.listing.is_some() => "IE",
            _ => "US",
        }
    }

    /// Currency of the prices.
    pub(super) fn currency(&self) -> &'static str {
        self.shape.listing.map_or("USD", |listing| listing.currency)
    }

    /// Converts cents on the session at `position` to hundredths of the price currency, at least one.
    pub(super) fn to_price_currency(&self, cents: i64, position: usize) -> i64 {
        let day = self.market.sessions.day(position);
        self.market.rates.convert_dollars(cents, self.currency(), day).max(1)
    }

    /// Currency of the company figures.
    pub(super) fn reported_currency(&self) -> &'static str {
        if self.shape.pays_in == "GBX" { "GBP" } else { self.shape.pays_in }
    }

    pub(super) fn exchange(&self) -> &'static str {
        match self.shape.kind {
            SecurityType::Etf => self.shape.listing.map_or("ARCX", |listing| listing.exchange),
            _ => ["XNYS", "XNAS", "XNYS", "XNAS", "XNYS", "XASE", "XNAS"][(self.index % 7) as usize],
        }
    }
}

/// Index in [`SECTORS`] of the sector of a security.
pub(super) fn sector_of(index: u64) -> usize {
    let shape = shape_of(index);
    let issuer = index - shape.class.map_or(0, |(_, back)| back);
    shape.sector.unwrap_or(((issuer + issuer / 60) % 11) as usize)
}

fn symbol(index: u64, shape: &SecurityShape, market: &SyntheticMarket) -> String {
    if let Some(listing) = shape.listing {
        return ticker(FIRST_LISTING) + listing.suffix;
    }
    let root = |index| match familiar_at(index) {
        Some(familiar) if market.familiar_tickers => familiar.ticker.to_owned(),
        _ => ticker(index),
    };
    match shape.class {
        _ if index == 0 => "SPY".to_owned(),
        Some((suffix, back)) => root(index - back) + suffix,
        None if shape.trading_period == TradingPeriod::TakesFormerTicker => former_ticker(index - 1),
        None => root(index),
    }
}

fn middle(start: usize, end: usize) -> usize {
    start + (end - start) / 2
}

/// Session positions of the first and the last price.
fn trading_positions(shape: &SecurityShape, market: &SyntheticMarket) -> (usize, usize) {
    let (first, last) = (market.sessions.first, market.sessions.last);
    let length = last - first;
    match shape.trading_period {
        TradingPeriod::Full | TradingPeriod::Renamed => (first, last),
        TradingPeriod::Delisted => (first, first + length * 7 / 10),
        TradingPeriod::TakesFormerTicker => (first + length * 6 / 10, last),
        TradingPeriod::RecentListing => (last - length.min(150), last),
    }
}

/// Yearly raises that the generated rows do not show: their number, and the last year. `streak` is the number of all
/// raises.
fn streak_seed(streak: i32, shape: &SecurityShape, market: &SyntheticMarket) -> Option<(i32, i32)> {
    // The rows do not show the raise of the first complete year, because they have no complete year before it.
    let through = market.first_complete_year.min(market.last_complete_year);
    let before = streak - (market.last_complete_year - through);
    let long = (5..99).contains(&shape.streak) && shape.trading_period == TradingPeriod::Full;
    (long && before > 0).then_some((before, through))
}
