//! Table `fundamentals`: rows of company figures, at most one for each security. Per-share figures are adjusted for
//! splits.

use chrono::{DateTime, NaiveDate, Utc};

use crate::decimal::ExactDecimal;
use crate::table_row;

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
