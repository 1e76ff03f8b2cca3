//! Table `quotes`: one row for each security, with its end-of-day quote.
//!
//! Table `fundamentals`: rows of company figures, at most one for each security. Per-share figures are adjusted for
//! splits.
//!
//! Row of an exchange rate.

use chrono::{DateTime, NaiveDate, Utc};

use crate::decimal::ExactDecimal;
use crate::{table_row, text_enum};

text_enum! {
    /// Kind of the quote: end of day.
    pub enum QuoteSource { Eod = "eod" }
}

table_row! {
    /// End-of-day quote. Prices, averages and ranges are in `currency`, adjusted for splits, but not for dividends.
    pub struct Quote {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Name of the company or fund.
        "name" name: String,
        /// Market identifier code.
        "exchange" exchange: Option<String>,
        /// Sector name.
        "sector" sector: Option<String>,
        /// ISO 4217 currency of the prices.
        "currency" currency: String,
        /// Latest close, adjusted for the splits after its session (R9); null without a price.
        "price" price: Option<ExactDecimal>,
        /// Open of the latest session.
        "open" open: Option<ExactDecimal>,
        /// High of the latest session.
        "day_high" day_high: Option<ExactDecimal>,
        /// Low of the latest session.
        "day_low" day_low: Option<ExactDecimal>,
        /// Close of the previous session, adjusted for splits after it.
        "previous_close" previous_close: Option<ExactDecimal>,
        /// Change of the price since the previous session: price - previous_close.
        "change" change: Option<ExactDecimal>,
        /// Change of the price since the previous session, percent: change / previous_close.
        "change_percent" change_percent: Option<ExactDecimal>,
        /// Shares traded in the latest session.
        "volume" volume: Option<i64>,
        /// Mean split-adjusted volume of the newest 30 sessions, shares (R22).
        "avg_volume_30d" avg_volume_30d: Option<i64>,
        /// Mean split-adjusted close of the newest 50 sessions (R22); null with fewer sessions.
        "sma_50" sma_50: Option<ExactDecimal>,
        /// Mean split-adjusted close of the newest 200 sessions (R22); null with fewer sessions.
        "sma_200" sma_200: Option<ExactDecimal>,
        /// Highest split-adjusted intraday price of the last 12 months (R22).
        "year_high" year_high: Option<ExactDecimal>,
        /// Session (trading day) of `year_high` (R22).
        "year_high_date" year_high_date: Option<NaiveDate>,
        /// Lowest split-adjusted intraday price of the last 12 months (R22).
        "year_low" year_low: Option<ExactDecimal>,
        /// Session of `year_low` (R22).
        "year_low_date" year_low_date: Option<NaiveDate>,
        /// Market capitalisation, whole currency units (R24).
        "market_cap" market_cap: Option<i64>,
        /// Shares outstanding, adjusted for splits (R24).
        "shares_outstanding" shares_outstanding: Option<i64>,
        /// Price over split-adjusted diluted EPS of twelve months (R24); null if EPS is 0 or less.
        "pe_ratio" pe_ratio: Option<ExactDecimal>,
        /// Diluted earnings per share of twelve months, split-adjusted (R24).
        "eps_ttm" eps_ttm: Option<ExactDecimal>,
        /// Headline dividend yield, percent (R9).
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
        /// Annual dividend per share from which the headline yield is computed, in `dividend_currency`: the forward
        /// dividend, or else the trailing dividend (R9).
        "annual_dividend" annual_dividend: Option<ExactDecimal>,
        /// ISO 4217 currency of the dividends; null for non-payers.
        "dividend_currency" dividend_currency: Option<String>,
        /// Session of the latest close.
        "price_date" price_date: Option<NaiveDate>,
        /// Kind of the quote, always `eod` (end of day). Unlike the `source` of a dividend, this field does not name a
        /// feed.
        "source" source: QuoteSource,
        /// Time at which a feed reported the newest data used for the row.
        "updated_at" updated_at: DateTime<Utc>,
    }
}

table_row! {
    /// Fundamentals. Money is in `reported_currency`, except that `market_cap` is in the currency of the prices.
    /// Margins, payout ratios, and the returns on equity and assets are in percent. All other ratios are plain numbers.
    #[derive(Default)]
    pub struct FundamentalsRow {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Name of the company or fund.
        "name" name: String,
        /// Sector name.
        "sector" sector: Option<String>,
        /// Industry name.
        "industry" industry: Option<String>,
        /// Country of domicile.
        "country" country: Option<String>,
        /// Website.
        "website" website: Option<String>,
        /// Number of employees.
        "employees" employees: Option<i64>,
        /// Day of the initial public offering.
        "ipo_date" ipo_date: Option<NaiveDate>,
        /// Market capitalisation, whole units of the currency of the prices (R24).
        "market_cap" market_cap: Option<i64>,
        /// Enterprise value, whole currency units.
        "enterprise_value" enterprise_value: Option<i64>,
        /// Shares outstanding.
        "shares_outstanding" shares_outstanding: Option<i64>,
        /// Freely traded shares.
        "float_shares" float_shares: Option<i64>,
        /// Price over twelve-month earnings per share (EPS) (R24).
        "pe_ratio" pe_ratio: Option<ExactDecimal>,
        /// Price over expected earnings per share.
        "forward_pe" forward_pe: Option<ExactDecimal>,
        /// P/E ratio divided by the growth of earnings in percent (PEG).
        "peg_ratio" peg_ratio: Option<ExactDecimal>,
        /// Price over book value per share.
        "pb_ratio" pb_ratio: Option<ExactDecimal>,
        /// Price over sales per share.
        "ps_ratio" ps_ratio: Option<ExactDecimal>,
        /// Enterprise value over earnings before interest, taxes, depreciation and amortisation.
        "ev_to_ebitda" ev_to_ebitda: Option<ExactDecimal>,
        /// Twelve-month earnings per share, split-adjusted.
        "eps_ttm" eps_ttm: Option<ExactDecimal>,
        /// Book value per share, split-adjusted.
        "book_value_per_share" book_value_per_share: Option<ExactDecimal>,
        /// Twelve-month free cash flow per share.
        "fcf_per_share" fcf_per_share: Option<ExactDecimal>,
        /// Revenue of twelve months.
        "revenue_ttm" revenue_ttm: Option<ExactDecimal>,
        /// Net income of twelve months.
        "net_income_ttm" net_income_ttm: Option<ExactDecimal>,
        /// Free cash flow of twelve months.
        "free_cash_flow_ttm" free_cash_flow_ttm: Option<ExactDecimal>,
        /// Gross margin, percent.
        "gross_margin" gross_margin: Option<ExactDecimal>,
        /// Operating margin, percent.
        "operating_margin" operating_margin: Option<ExactDecimal>,
        /// Net margin, percent.
        "net_margin" net_margin: Option<ExactDecimal>,
        /// Return on equity, percent.
        "roe" roe: Option<ExactDecimal>,
        /// Return on assets, percent.
        "roa" roa: Option<ExactDecimal>,
        /// Payout ratio: dividends over earnings, percent (R17).
        "payout_ratio" payout_ratio: Option<ExactDecimal>,
        /// Dividends paid, divided by free cash flow, percent (R17).
        "fcf_payout_ratio" fcf_payout_ratio: Option<ExactDecimal>,
        /// Total debt divided by total equity.
        "debt_to_equity" debt_to_equity: Option<ExactDecimal>,
        /// Current assets divided by current liabilities.
        "current_ratio" current_ratio: Option<ExactDecimal>,
        /// Operating income divided by interest expense.
        "interest_coverage" interest_coverage: Option<ExactDecimal>,
        /// Vendor's beta; if the vendor gives none, the computed five-year beta (R23).
        "beta" beta: Option<ExactDecimal>,
        /// Last day of the newest fiscal period.
        "fiscal_period_end" fiscal_period_end: Option<NaiveDate>,
        /// ISO 4217 currency of the money figures.
        "reported_currency" reported_currency: Option<String>,
        /// Date of the figures.
        "as_of" as_of: Option<NaiveDate>,
        /// Time at which a feed reported the newest data used for the row.
        "updated_at" updated_at: DateTime<Utc>,
    }
}

table_row! {
    /// Exchange rate of one day.
    pub struct FxRow {
        /// Day of the rate.
        "date" date: NaiveDate,
        /// ISO 4217 code of the base currency.
        "base" base: String,
        /// ISO 4217 code of the quote currency.
        "quote" quote: String,
        /// Units of `quote` for one unit of `base`, to 15 significant digits.
        "rate" rate: ExactDecimal,
        /// Currency through which the rate was computed from two rates; null for the rate of a pair or of its inverse.
        "through" through: Option<String>,
        /// Name of the feed of the rate. If two rates of different feeds were used, both names.
        "source" source: String,
    }
}
