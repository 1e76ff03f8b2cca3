//! Table `metrics`: one row for each security, with all its dividend metrics.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::flag::Quarantined;
use crate::column::JsonColumn;
use crate::dated_text::{DatedText, LimitToHistory};
use crate::decimal::ExactDecimal;
use crate::event::Frequency;
use crate::{table_row, text_enum};

text_enum! {
    /// Dividend status of a security. A payer that stopped paying is `suspended` if a suspension was reported, and
    /// otherwise `lapsed` (R6).
    pub enum DividendState {
        Active = "active", NonPayer = "non_payer", Suspended = "suspended", Lapsed = "lapsed",
        /// No regular dividend is known, but the data may be incomplete: no data source of the security includes
        /// dividends, or adjusted closes show dividends that are missing from the data (R38).
        Unknown = "unknown",
    }
}
text_enum! {
    /// Basis of the headline yield: forward or trailing (TTM) dividends (R9).
    pub enum YieldBasis { Forward = "forward", Ttm = "ttm" }
}
text_enum! {
    /// Payment from which the forward dividend is computed. `declared`: a payment with an ex-date on or after the as-of
    /// date. `last_times_frequency`: a payment with an ex-date before the as-of date. `none`: no payment is used (R8).
    pub enum ForwardBasis { Declared = "declared", LastTimesFrequency = "last_times_frequency", None = "none" }
}
text_enum! {
    /// Tier of a security by the length of its increase streak (R15).
    pub enum ListTier { Champion = "champion", Contender = "contender", Challenger = "challenger" }
}
text_enum! {
    /// Safety label of a dividend; not advice (R18).
    pub enum Safety { Safe = "safe", Borderline = "borderline", Unsafe = "unsafe" }
}
text_enum! {
    /// Origin of the next ex-date: declared, or projected from the payment pattern (R19).
    pub enum NextStatus { Declared = "declared", Projected = "projected" }
}

/// The next ex-dividend date.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NextDividend {
    /// First day on which a buyer of the share does not receive the dividend.
    pub ex_date: NaiveDate,
    /// Payment date; an estimate for a projected ex-date. Null if unknown.
    pub payment_date: Option<NaiveDate>,
    /// Amount per share as declared; an estimate for a projected ex-date.
    pub amount: Option<ExactDecimal>,
    /// Status of the ex-date. For `declared`, amount and payment date are declared too; otherwise they are estimates.
    pub status: NextStatus,
}

/// Regular dividends of one year, adjusted for splits. A payment near the turn of the year may be added to the year
/// before or after the year of its ex-date (R34).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnnualTotal {
    /// Calendar year.
    pub year: i32,
    /// Total per share in the row's currency, adjusted for splits up to the as-of date.
    pub amount: ExactDecimal,
    /// False for the running year, for a year with several missing payments, and for the first year if the data may
    /// begin in the middle of it. True for all other years.
    pub complete: bool,
}

/// True if `year` begins on or after `first`. The figures of other years may contain earlier payments.
fn begins_from(year: i32, first: NaiveDate) -> bool {
    NaiveDate::from_yo_opt(year, 1).is_some_and(|begin| begin >= first)
}

impl LimitToHistory for Metrics {
    /// Removes the totals of years that begin before `first`, the quarantined rows with a date before `first`, and the
    /// flags whose record id has such a date. Dates of earlier events become null.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        let is_included = |day: &NaiveDate| *day >= first;
        self.streak_started = self.streak_started.filter(|year| begins_from(*year, first));
        self.latest_increase_date = self.latest_increase_date.filter(is_included);
        self.last_cut_date = self.last_cut_date.filter(is_included);
        self.first_payment_date = self.first_payment_date.filter(is_included);
        self.annual_totals.0.retain(|total| begins_from(total.year, first));
        self.flags.0.retain(|flag| !DatedText::parse(flag).is_older_than(first));
        self.quarantined.0 = std::mem::take(&mut self.quarantined.0).limit_to_days_from(first);
        self
    }
}

table_row! {
    /// Dividend metrics on a market date. Amounts are per share in `currency`. Percentages are numbers of percent: 4.5
    /// means 4.5 %.
    pub struct Metrics {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// ISO 4217 currency of the dividends and of all figures computed from them.
        "currency" currency: String,
        /// ISO 4217 currency of `price`. If the dividends have another currency, all yields are null
        /// (`currency_mismatch`).
        "price_currency" price_currency: String,
        /// Market date of the metrics.
        "as_of" as_of: NaiveDate,
        /// Latest close in `price_currency`, adjusted for splits after its session, but not for dividends (R9).
        "price" price: Option<ExactDecimal>,
        /// Session of the latest close (R21).
        "price_date" price_date: Option<NaiveDate>,
        /// Dividend status of the security (R6).
        "dividend_status" dividend_status: DividendState,
        /// Sum of the regular dividends per share with an ex-date in the last 12 months (R7).
        "dps_ttm" dps_ttm: Option<ExactDecimal>,
        /// Sum of the regular and special dividends per share with an ex-date in the last 12 months (R7). Distributions
        /// of capital gains are included.
        "dps_ttm_total" dps_ttm_total: Option<ExactDecimal>,
        /// Forward (indicated) dividends of the next 12 months (R8); null for funds, irregular payers and
        /// delisted securities.
        "dps_forward" dps_forward: Option<ExactDecimal>,
        /// Payment from which `dps_forward` is computed (R8); `none` if no payment is used.
        "forward_basis" forward_basis: ForwardBasis,
        /// Headline yield, percent: the forward yield if a forward dividend exists, otherwise the trailing yield (R9).
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
        /// Basis of the headline yield: forward or trailing dividends (R9).
        "yield_basis" yield_basis: Option<YieldBasis>,
        /// Trailing yield: dps_ttm / price, percent (R7).
        "yield_ttm" yield_ttm: Option<ExactDecimal>,
        /// Trailing yield with specials: dps_ttm_total / price, percent (R7).
        "yield_ttm_total" yield_ttm_total: Option<ExactDecimal>,
        /// Forward yield: dps_forward / price, percent (R8).
        "yield_forward" yield_forward: Option<ExactDecimal>,
        /// Mean of the trailing (TTM) yields at the month ends of the last five years, percent (R7).
        "yield_5y_avg" yield_5y_avg: Option<ExactDecimal>,
        /// Highest trailing (TTM) yield at a month end of the last five years, percent (R7).
        "yield_5y_high" yield_5y_high: Option<ExactDecimal>,
        /// Lowest trailing (TTM) yield at a month end of the last five years, percent (R7).
        "yield_5y_low" yield_5y_low: Option<ExactDecimal>,
        /// Number of regular ex-dates in the last 12 months (R7).
        "ttm_payment_count" ttm_payment_count: i32,
        /// True if the data cover the last 12 months (R7). False if the listing or the data began within these months;
        /// trailing figures are then not scaled up to a full year.
        "ttm_complete" ttm_complete: bool,
        /// Payment frequency (R5).
        "frequency" frequency: Frequency,
        /// Payments a year (R5); null if irregular, none or unknown.
        "payments_per_year" payments_per_year: Option<i32>,
        /// Regular dividends over diluted earnings per share, both TTM, percent (R17). For real estate, funds from
        /// operations replace earnings.
        "payout_ratio" payout_ratio: Option<ExactDecimal>,
        /// Dividends paid, divided by free cash flow, percent (R17).
        "fcf_payout_ratio" fcf_payout_ratio: Option<ExactDecimal>,
        /// Dividend cover: earnings over dividends, a ratio (R17).
        "dividend_cover" dividend_cover: Option<ExactDecimal>,
        /// Dividend growth of the last complete year over the previous year, percent (R13).
        "growth_1y" growth_1y: Option<ExactDecimal>,
        /// Compound growth over 3 years, percent a year (R13).
        "growth_3y" growth_3y: Option<ExactDecimal>,
        /// Compound growth over 5 years, percent a year (R13).
        "growth_5y" growth_5y: Option<ExactDecimal>,
        /// Compound growth over 10 years, percent a year (R13).
        "growth_10y" growth_10y: Option<ExactDecimal>,
        /// Increase streak: consecutive years of dividend increases (R14).
        "increase_streak_years" increase_streak_years: i32,
        /// True if the streak may be longer than the data show (R14).
        "streak_lower_bound" streak_lower_bound: bool,
        /// True if the forward dividend is below the total of the last complete year (R14).
        "streak_at_risk" streak_at_risk: bool,
        /// Payment streak: consecutive years with a regular payment in the data (R14). It can be shorter than an
        /// increase streak that includes years entered by an operator (`streak_seeded`).
        "payment_streak_years" payment_streak_years: i32,
        /// First year of the increase streak (R14); null without an increase. Also null if the year begins before the
        /// history of the caller's subscription tier.
        "streak_started" streak_started: Option<i32>,
        /// Ex-date of the newest increase of the regular amount per payment (R13). Null without an increase, and if the
        /// date is before the history of the caller's subscription tier.
        "latest_increase_date" latest_increase_date: Option<NaiveDate>,
        /// Size of the newest increase of the regular amount per payment, percent (R13).
        "latest_increase_percent" latest_increase_percent: Option<ExactDecimal>,
        /// Ex-date of the newest cut of the regular amount per payment (R13). Null without a cut, and if the date is
        /// before the history of the caller's subscription tier.
        "last_cut_date" last_cut_date: Option<NaiveDate>,
        /// Number of cuts of the regular amount per payment in the last ten years (R13).
        "cuts_10y" cuts_10y: i32,
        /// First known regular ex-date (R14). Null if there is none, and if the date is before the history of the
        /// caller's subscription tier.
        "first_payment_date" first_payment_date: Option<NaiveDate>,
        /// Number of known regular ex-dates up to the as-of date (R14).
        "payment_count" payment_count: i32,
        /// True if the security meets the rules for an S&P Dividend Aristocrat (R15).
        "is_dividend_aristocrat" is_dividend_aristocrat: bool,
        /// True for a Dividend King: an increase streak of 50 years or more (R15).
        "is_dividend_king" is_dividend_king: bool,
        /// Tier of the increase streak: champion 25+, contender 10-24, challenger 5-9 years (R15).
        "tier" tier: Option<ListTier>,
        /// The next ex-dividend date (R19).
        #[schema(value_type = Option<NextDividend>)]
        "next" next: JsonColumn<Option<NextDividend>>,
        /// Chowder number: forward yield plus five-year growth, percentage points (R16).
        "chowder_number" chowder_number: Option<ExactDecimal>,
        /// True if the Chowder number reaches the threshold for the security's yield and sector (R16).
        "chowder_pass" chowder_pass: Option<bool>,
        /// Safety label (R18).
        "safety" safety: Option<Safety>,
        /// True if the yield is probably a trap (R18).
        "yield_trap_risk" yield_trap_risk: Option<bool>,
        /// Total return of one year, percent (R12).
        "total_return_1y" total_return_1y: Option<ExactDecimal>,
        /// Total return of five years, percent, not annualised (R12).
        "total_return_5y" total_return_5y: Option<ExactDecimal>,
        /// Annualised volatility of 252 daily returns, percent (R23).
        "volatility_1y" volatility_1y: Option<ExactDecimal>,
        /// Beta against the benchmark, from 60 monthly returns (R23).
        "beta_5y" beta_5y: Option<ExactDecimal>,
        /// Regular dividends of each year, adjusted for splits (R13). The caller's subscription tier limits how far
        /// back the history goes. Years that begin before this limit are left out.
        #[schema(value_type = Vec<AnnualTotal>)]
        "annual_totals" annual_totals: JsonColumn<Vec<AnnualTotal>>,
        /// Warnings about the data behind the figures. Each withdrawn record adds a flag of the form `cancelled:`
        /// followed by the id of the record. A flag is left out if the id has a date before the history of the
        /// caller's subscription tier.
        #[schema(value_type = Vec<String>)]
        "flags" flags: JsonColumn<Vec<String>>,
        /// Rows excluded from the figures (quarantined), with the reason. The caller's subscription tier limits how far
        /// back the history goes. Rows from before this limit are left out.
        #[schema(value_type = Vec<Quarantined>)]
        "quarantined" quarantined: JsonColumn<Vec<Quarantined>>,
        /// Version of the rules, followed by the parameters that differ from their defaults.
        "method_version" method_version: String,
    }
}
