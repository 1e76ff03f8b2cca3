//! Row structs of the read tables. Each struct is a table row, a JSON body and an OpenAPI schema.
//!
//! Percentages are numbers of percent: 4.5 means 4.5 %. Amounts are rounded to 6 places, percents and ratios to 4,
//! factors to 12.

mod dividend;
mod etf;
mod flag;
mod fx;
mod metrics;
mod notice;
mod quote;
mod security_event;
mod stock;
mod table;

pub use crate::column::{ColumnType, JsonColumn};
pub use dividend::{AmountReading, AmountStatus, DividendRow, DividendStatus};
pub use dividend::{SplitRow, SplitStatus, SplitType};
pub use etf::{CountryWeight, EtfRow, HoldingRow, SectorWeight};
pub use flag::Quarantined;
pub use flag::{Flag, Flags, QuarantineReason};
pub use fx::FxRow;
pub use metrics::{
    AnnualTotal, DividendState, ForwardBasis, ListTier, Metrics, NextDividend, NextStatus, Safety, YieldBasis,
};
pub use notice::{Notice, NoticeCause, NoticeEvent, NoticeKind, NoticeRow, StatusRow};
pub use quote::FundamentalsRow;
pub use quote::{Quote, QuoteSource};
pub use security_event::{RevisedKind, Revision, RevisionReason};
pub use security_event::{SecurityEvent, SecurityEventType};
pub use stock::{
    Company, Coverage, Identifiers, LastDividend, Listing, Pricing, ScreenerFigures, Stock, StockDividends,
    StockFigures, StockRow,
};
pub use stock::{Industry, SectorRow};
pub use table::{ColumnReader, TableRow, count_columns, describe_properties, join_columns};
