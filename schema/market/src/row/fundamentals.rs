//! `fundamentals`: company figures, with per-share figures brought through splits.

use chrono::{DateTime, NaiveDate, Utc};

use crate::table_row;
use crate::value::Exact;

table_row! {
    /// Fundamentals. Money in `reported_currency`, ratios plain, margins and payouts in percent.
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
        /// Whole currency units (R24).
        "market_cap" market_cap: Option<i64>,
        /// Whole currency units.
        "enterprise_value" enterprise_value: Option<i64>,
        /// Shares.
        "shares_outstanding" shares_outstanding: Option<i64>,
        /// Shares.
        "float_shares" float_shares: Option<i64>,
        /// Price over EPS (R24).
        "pe_ratio" pe_ratio: Option<Exact>,
        /// Price over expected EPS.
        "forward_pe" forward_pe: Option<Exact>,
        /// P/E over growth.
        "peg_ratio" peg_ratio: Option<Exact>,
        /// Price over book value.
        "pb_ratio" pb_ratio: Option<Exact>,
        /// Price over sales.
        "ps_ratio" ps_ratio: Option<Exact>,
        /// Enterprise value over EBITDA.
        "ev_to_ebitda" ev_to_ebitda: Option<Exact>,
        /// Per share, split-adjusted.
        "eps_ttm" eps_ttm: Option<Exact>,
        /// Per share, split-adjusted.
        "book_value_per_share" book_value_per_share: Option<Exact>,
        /// Free cash flow per share.
        "fcf_per_share" fcf_per_share: Option<Exact>,
        /// Money of twelve months.
        "revenue_ttm" revenue_ttm: Option<Exact>,
        /// Money of twelve months.
        "net_income_ttm" net_income_ttm: Option<Exact>,
        /// Money of twelve months.
        "free_cash_flow_ttm" free_cash_flow_ttm: Option<Exact>,
        /// Percent.
        "gross_margin" gross_margin: Option<Exact>,
        /// Percent.
        "operating_margin" operating_margin: Option<Exact>,
        /// Percent.
        "net_margin" net_margin: Option<Exact>,
        /// Return on equity, percent.
        "roe" roe: Option<Exact>,
        /// Return on assets, percent.
        "roa" roa: Option<Exact>,
        /// Payout ratio, percent (R17).
        "payout_ratio" payout_ratio: Option<Exact>,
        /// Dividends paid over free cash flow, percent (R17).
        "fcf_payout_ratio" fcf_payout_ratio: Option<Exact>,
        /// Total debt over total equity.
        "debt_to_equity" debt_to_equity: Option<Exact>,
        /// Current assets over current liabilities.
        "current_ratio" current_ratio: Option<Exact>,
        /// Operating income over interest.
        "interest_coverage" interest_coverage: Option<Exact>,
        /// Vendor's beta, else the computed five-year beta (R23).
        "beta" beta: Option<Exact>,
        /// End of the newest fiscal period.
        "fiscal_period_end" fiscal_period_end: Option<NaiveDate>,
        /// ISO 4217.
        "reported_currency" reported_currency: Option<String>,
        /// Day the figures are as of.
        "as_of" as_of: Option<NaiveDate>,
        /// When the newest fact behind the row was observed.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
