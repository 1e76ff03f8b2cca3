//! Row structs of the read tables. Each struct is a table row, a JSON body and an OpenAPI schema.
//!
//! Percentages are numbers of percent: 4.5 means 4.5 %. Amounts are rounded to 6 places, percents and ratios to 4,
//! factors to 12.

mod dividend;
mod etf;
mod flag;
mod metrics;
mod quote;
mod security_event;
mod stock;
mod table;

pub use crate::column::{ColumnType, JsonColumn};
pub use dividend::{
    AmountReading, AmountStatus, DividendRow, DividendStatus, SplitRow, SplitStatus, SplitType,
};
pub use etf::{CountryWeight, EtfRow, HoldingRow, SectorWeight};
pub use flag::{Flag, Flags, QuarantineReason, Quarantined};
pub use metrics::{
    AnnualTotal, DividendState, ForwardBasis, ListTier, Metrics, NextDividend, NextStatus, Safety, YieldBasis,
};
pub use quote::{FundamentalsRow, FxRow, Quote, QuoteSource};
pub use security_event::{
    Notice, NoticeCause, NoticeEvent, NoticeKind, NoticeRow, RevisedKind, Revision, RevisionReason,
    SecurityEvent, SecurityEventType, StatusRow,
};
pub use stock::{
    Company, Coverage, Identifiers, Industry, LastDividend, Listing, Pricing, ScreenerFigures, SectorRow,
    Stock, StockDividends, StockFigures, StockRow,
};
pub use table::{ColumnReader, TableRow, count_columns, describe_properties, join_columns};
