//! The read tables' rows: one struct is table row, JSON body and OpenAPI schema.
//!
//! Percent fields are percent points, amounts are in the row's `currency`, dates are exchange-local days,
//! unknown is `null`. Rounding has happened: amounts 6 places, percents and ratios 4, factors 12.

mod column;
mod dividend;
mod etf;
mod flag;
mod fundamentals;
mod metrics;
mod quarantine;
mod quote;
mod sector;
mod split;
mod stock;
mod table;

pub use column::{Column, Json, Mark};
pub use dividend::{AmountStatus, DividendRow, DividendStatus};
pub use etf::{CountryWeight, EtfRow, HoldingRow, SectorWeight};
pub use flag::{Flag, Flags, HoldReason};
pub use fundamentals::FundamentalsRow;
pub use metrics::{
    AnnualTotal, DividendState, ForwardBasis, ListTier, Metrics, NextDividend, NextStatus, Safety, YieldBasis,
};
pub use quarantine::Quarantined;
pub use quote::{Quote, QuoteSource};
pub use sector::{Industry, SectorRow};
pub use split::{SplitRow, SplitStatus, SplitType};
pub use stock::{
    Company, Coverage, Figures, Identifiers, LastDividend, Pricing, ScreenerFigures, Stock, StockDividends,
    StockRow,
};
pub use table::{Columns, TableRow, joined, length};
