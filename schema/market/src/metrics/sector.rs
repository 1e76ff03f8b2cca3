//! Statistics of each sector over its active stocks (R25).
//!
//! Funds and preferred shares are left out, and so are stocks with a suspect yield (above 25 % by default). A payer is
//! a stock that pays dividends at present and has a yield above 0. The median yield is the headline figure of a sector.
//! The median yield and the mean yield include only payers.
//!
//! The weighted yield is Σ (cap x yield) / Σ cap over the stocks with a known market cap and yield. Non-payers count
//! with a yield of 0, as in the published yields of the S&P indices. Mean price changes are weighted by market cap in
//! the same way.
//!
//! Market caps are in the reporting currency. A stock without an exchange rate to it is left out of sums and weights, and
//! is counted in `unconverted_count` (R43).
//!
//! Top payers are sorted by yield (highest first). Stocks of equal yield are sorted by market cap (largest first), then
//! by symbol. If all securities of a sector are left out, the stock counts of its row are 0 and the figures are null.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use rust_decimal::Decimal;

use super::arithmetic::{length_to_i32, mean, median, percent, quotient};
use crate::decimal::ExactDecimal;
use crate::event::SecurityType;
use crate::row::{Industry, JsonColumn, Metrics, SectorRow, Stock};
use crate::table_row;

table_row! {
    /// Figures of one security in a sector. Percentages are numbers of percent: 4.5 means 4.5 %.
    pub struct SectorMember {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Sector name.
        "sector" sector: Option<String>,
        /// Industry name.
        "industry" industry: Option<String>,
        /// Security type.
        "type" security_type: SecurityType,
        /// True if the security still trades.
        "is_active" is_active: bool,
        /// True if the security trades and its dividend status is active; `None` if the dividends are unknown.
        "pays_dividend" pays_dividend: Option<bool>,
        /// Headline yield, percent; `None` if unknown.
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
        /// True if the headline yield is above 25 % (by default), which is too high to be trusted (R18).
        "yield_suspect" yield_suspect: bool,
        /// Market capitalisation, in whole units of the reporting currency.
        "reporting_market_cap" market_cap: Option<i64>,
        /// True if the market capitalisation is known, but not its exchange rate to the reporting currency.
        "is_unconverted" is_unconverted: bool,
        /// Payout ratio: dividends over earnings, percent.
        "payout_ratio" payout_ratio: Option<ExactDecimal>,
        /// Five-year dividend growth, percent a year.
        "growth_5y" growth_5y: Option<ExactDecimal>,
        /// Price divided by earnings per share.
        "pe_ratio" pe_ratio: Option<ExactDecimal>,
        /// True for a Dividend Aristocrat.
        "is_dividend_aristocrat" is_aristocrat: bool,
        /// True for a Dividend King.
        "is_dividend_king" is_king: bool,
        /// Change of the close since the previous session, percent.
        "change_percent" change_percent_1d: Option<ExactDecimal>,
        /// Change of the close since the last session of the previous year, percent.
        "change_percent_ytd" change_percent_ytd: Option<ExactDecimal>,
        /// Next declared ex-date; `None` without a declared ex-date.
        "next_ex_date" next_ex_date: Option<NaiveDate>,
    }
}

impl SectorMember {
    /// Builds the member from the stock row and the metrics row of a security. Only a declared next ex-date is used,
    /// not a projected one.
    pub fn from_rows(stock: &Stock, metrics: Option<&Metrics>) -> Self {
        let declared = metrics.and_then(|metrics| metrics.next.0.as_ref());
        let declared = declared.filter(|next| next.status == crate::row::NextStatus::Declared);
        let Stock { listed, figures, .. } = stock;
        Self {
            symbol: listed.symbol.clone(),
            sector: listed.sector.clone(),
            industry: listed.industry.clone(),
            security_type: listed.r#type,
            is_active: listed.is_active,
            pays_dividend: listed.pays_dividend,
            dividend_yield: listed.dividend_yield,
            yield_suspect: figures.yield_suspect,
            market_cap: listed.reporting_market_cap,
            is_unconverted: listed.market_cap.is_some() && listed.reporting_market_cap.is_none(),
            payout_ratio: figures.screened.payout_ratio,
            growth_5y: figures.screened.growth_5y,
            pe_ratio: figures.screened.pe_ratio,
            is_aristocrat: figures.screened.is_dividend_aristocrat,
            is_king: figures.screened.is_dividend_king,
            change_percent_1d: figures.change_percent,
            change_percent_ytd: figures.change_percent_ytd,
            next_ex_date: declared.map(|next| next.ex_date),
        }
    }

    fn is_counted(&self) -> bool {
        self.is_active && self.security_type.is_stock() && !self.yield_suspect
    }

    /// Yield in the weighted yield of the sector; `None` if unknown. A non-payer counts as 0, as in the S&P indices.
    fn yield_at_zero(&self) -> Option<Decimal> {
        if self.pays_dividend? { self.payer_yield() } else { Some(Decimal::ZERO) }
    }

    fn payer_yield(&self) -> Option<Decimal> {
        let dividend_yield = self.dividend_yield.map(|value| value.0);
        dividend_yield.filter(|value| self.pays_dividend == Some(true) && *value > Decimal::ZERO)
    }
}

/// One row for each sector with at least one security, sorted by slug. `currency` is the reporting currency.
pub fn sector_rows<'a>(
    members: impl IntoIterator<Item = &'a SectorMember>,
    as_of: NaiveDate,
    currency: &str,
) -> Vec<SectorRow> {
    let mut sectors: BTreeMap<String, Vec<&SectorMember>> = BTreeMap::new();
    for member in members {
        if let Some(sector) = &member.sector {
            sectors.entry(slug(sector)).or_default().push(member);
        }
    }
    let name = |members: &[&SectorMember]| {
        members.iter().filter_map(|member| member.sector.clone()).min().unwrap_or_default()
    };
    sectors.values().map(|members| sector_row(&name(members), members, as_of, currency)).collect()
}

/// Row of one sector, computed from its securities on the date `as_of`.
pub fn sector_row(sector: &str, members: &[&SectorMember], as_of: NaiveDate, currency: &str) -> SectorRow {
    let counted: Vec<&SectorMember> = members.iter().copied().filter(|member| member.is_counted()).collect();
    let yields: Vec<Decimal> = counted.iter().filter_map(|member| member.payer_yield()).collect();
    let middle = |field: fn(&SectorMember) -> Option<ExactDecimal>| {
        median(counted.iter().filter_map(|member| field(member)).map(|value| value.0).collect())
    };
    let many = |condition: &dyn Fn(&SectorMember) -> bool| {
        length_to_i32(counted.iter().filter(|member| condition(member)).count())
    };
    let last = as_of.checked_add_days(Days::new(30)).unwrap_or(as_of);
    let caps: Vec<i64> = counted.iter().filter_map(|member| member.market_cap).collect();
    SectorRow {
        sector: sector.to_owned(),
        slug: slug(sector),
        stock_count: length_to_i32(counted.len()),
        payer_count: many(&|member| member.payer_yield().is_some()),
        etf_count: length_to_i32(
            members.iter().filter(|m| m.is_active && m.security_type == SecurityType::Etf).count(),
        ),
        market_cap: if caps.is_empty() {
            None
        } else {
            caps.iter().try_fold(0i64, |sum, cap| sum.checked_add(*cap))
        },
        avg_yield: mean(&yields).map(percent),
        median_yield: median(yields.clone()).map(percent),
        weighted_yield: weighted(&counted, SectorMember::yield_at_zero).map(percent),
        max_yield: yields.iter().max().copied().map(percent),
        median_payout_ratio: middle(|member| member.payout_ratio).map(percent),
        median_growth_5y: middle(|member| member.growth_5y).map(percent),
        median_pe: middle(|member| member.pe_ratio).map(percent),
        aristocrat_count: many(&|member| member.is_aristocrat),
        king_count: many(&|member| member.is_king),
        change_percent_1d: weighted(&counted, |member| member.change_percent_1d.map(|value| value.0))
            .map(percent),
        change_percent_ytd: weighted(&counted, |member| member.change_percent_ytd.map(|value| value.0))
            .map(percent),
        ex_dates_next_30d: many(&|member| {
            member.next_ex_date.is_some_and(|date| as_of <= date && date <= last)
        }),
        as_of,
        industries: JsonColumn(industries(&counted)),
        currency: currency.to_owned(),
        unconverted_count: many(&|member| member.is_unconverted),
    }
}

/// URL slug of a sector name: its words in lower case, joined by hyphens. `Health Care` becomes `health-care`.
pub fn slug(sector: &str) -> String {
    let words = sector.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<String>>().join("-")
}

fn industries(members: &[&SectorMember]) -> Vec<Industry> {
    let mut industries: BTreeMap<&str, Vec<&SectorMember>> = BTreeMap::new();
    for member in members {
        if let Some(industry) = &member.industry {
            industries.entry(industry).or_default().push(member);
        }
    }
    industries
        .into_iter()
        .map(|(industry, members)| Industry {
            industry: industry.to_owned(),
            stock_count: length_to_i32(members.len()),
            median_yield: median(members.iter().filter_map(|member| member.payer_yield()).collect())
                .map(percent),
        })
        .collect()
}

/// At most `count` stocks with the highest yields, highest yield first.
pub fn top_payers<'a>(members: &[&'a SectorMember], count: usize) -> Vec<&'a SectorMember> {
    let mut payers: Vec<&SectorMember> =
        members.iter().copied().filter(|m| m.is_counted() && m.payer_yield().is_some()).collect();
    payers.sort_by(|a, b| {
        let key = |member: &SectorMember| (Reverse(member.payer_yield()), Reverse(member.market_cap));
        key(a).cmp(&key(b)).then_with(|| a.symbol.cmp(&b.symbol))
    });
    payers.truncate(count);
    payers
}

/// Mean of a figure, weighted by market cap: Σ (cap x figure) / Σ cap. Members without a market cap and members without
/// the figure are left out.
fn weighted(members: &[&SectorMember], figure: fn(&SectorMember) -> Option<Decimal>) -> Option<Decimal> {
    let (mut sum, mut caps) = (Decimal::ZERO, Decimal::ZERO);
    for member in members {
        let Some((cap, value)) = member.market_cap.map(Decimal::from).zip(figure(member)) else { continue };
        sum = sum.checked_add(cap.checked_mul(value)?)?;
        caps = caps.checked_add(cap)?;
    }
    quotient(sum, caps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(symbol: &str, yielded: Decimal, cap: i64) -> SectorMember {
        SectorMember {
            symbol: symbol.into(),
            sector: Some("Energy".into()),
            industry: None,
            security_type: SecurityType::Stock,
            is_active: true,
            pays_dividend: Some(yielded > Decimal::ZERO),
            dividend_yield: Some(ExactDecimal(yielded)),
            yield_suspect: false,
            market_cap: Some(cap),
            is_unconverted: false,
            payout_ratio: None,
            growth_5y: None,
            pe_ratio: None,
            is_aristocrat: false,
            is_king: false,
            change_percent_1d: None,
            change_percent_ytd: None,
            next_ex_date: None,
        }
    }

    #[test]
    fn industries_are_told_of_by_name() {
        let in_industry =
            |industry: &str, member: SectorMember| SectorMember { industry: Some(industry.into()), ..member };
        let members = [
            in_industry("Pipelines", member("A", dec!(6), 10)),
            in_industry("Drilling", member("B", dec!(2), 10)),
            in_industry("Pipelines", member("C", dec!(8), 10)),
            in_industry("Drilling", member("D", dec!(0), 10)),
            member("E", dec!(9), 10),
        ];
        let rows = sector_rows(&members, "2024-12-31".parse().unwrap(), "USD");
        let told = |industry: &Industry| {
            let median = industry.median_yield.map(|median| median.to_string());
            (industry.industry.clone(), industry.stock_count, median)
        };
        // Non-payers are counted, but have no yield.
        assert_eq!(
            rows[0].industries.0.iter().map(told).collect::<Vec<_>>(),
            [
                ("Drilling".to_owned(), 2, Some("2".to_owned())),
                ("Pipelines".to_owned(), 2, Some("7".to_owned()))
            ]
        );
    }

    #[test]
    fn medians_are_over_payers_and_weights_over_all() {
        let as_of = "2024-12-31".parse().unwrap();
        let fund = SectorMember { security_type: SecurityType::Etf, ..member("F", dec!(9), 1000) };
        let suspect = SectorMember { yield_suspect: true, ..member("S", dec!(80), 1000) };
        let gone = SectorMember { is_active: false, ..member("G", dec!(9), 1000) };
        let members = [
            member("A", dec!(2), 100),
            member("B", dec!(3), 50),
            member("C", dec!(4), 25),
            member("D", dec!(5), 10),
            member("N", dec!(0), 65),
            fund,
            suspect,
            gone,
        ];
        let rows = sector_rows(&members, as_of, "USD");
        let figures = &rows[0];
        assert_eq!((figures.stock_count, figures.payer_count, figures.etf_count), (5, 4, 1));
        assert_eq!(figures.median_yield, Some(ExactDecimal(dec!(3.5))));
        assert_eq!(figures.avg_yield, Some(ExactDecimal(dec!(3.5))));
        assert_eq!(figures.weighted_yield, Some(ExactDecimal(dec!(2))));
        assert_eq!(figures.max_yield, Some(ExactDecimal(dec!(5))));
        let all: Vec<&SectorMember> = members.iter().collect();
        let top: Vec<&str> = top_payers(&all, 2).iter().map(|m| m.symbol.as_str()).collect();
        assert_eq!(top, ["D", "C"]);
        assert_eq!(sector_row("Energy", &[], as_of, "USD").median_yield, None);
        assert_eq!(slug("Oil, Gas & Consumable  Fuels"), "oil-gas-consumable-fuels");
    }

    #[test]
    fn who_does_not_pay_at_present_is_no_payer_whatever_its_yield() {
        let as_of = "2024-12-31".parse().unwrap();
        // S stopped paying, but still has a yield. U pays, but its yield is unknown.
        let stopped = SectorMember { pays_dividend: Some(false), ..member("S", dec!(8), 100) };
        let unknown = SectorMember { pays_dividend: Some(true), ..member("U", dec!(0), 100) };
        let members = [member("A", dec!(4), 100), stopped, unknown];
        let row = &sector_rows(&members, as_of, "USD")[0];
        assert_eq!((row.stock_count, row.payer_count), (3, 1));
        assert_eq!(
            (row.median_yield, row.max_yield),
            (Some(ExactDecimal(dec!(4))), Some(ExactDecimal(dec!(4))))
        );
        // Mean of 4 (A) and 0 (S). U is left out.
        assert_eq!(row.weighted_yield, Some(ExactDecimal(dec!(2))));
        let all: Vec<&SectorMember> = members.iter().collect();
        assert_eq!(
            top_payers(&all, 9).iter().map(|member| member.symbol.as_str()).collect::<Vec<_>>(),
            ["A"]
        );
    }

    #[test]
    fn ex_dates_are_counted_from_today_through_30_days_ahead() {
        let counted = |ex_date: &str| {
            let member =
                SectorMember { next_ex_date: Some(ex_date.parse().unwrap()), ..member("A", dec!(4), 100) };
            sector_row("Energy", &[&member], "2024-12-20".parse().unwrap(), "USD").ex_dates_next_30d
        };
        let days = ["2024-12-19", "2024-12-20", "2025-01-19", "2025-01-20"];
        assert_eq!(days.map(counted), [0, 1, 1, 0]);
    }
}
