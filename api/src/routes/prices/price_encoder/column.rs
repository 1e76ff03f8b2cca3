//! Identifiers of the columns of a price row.

/// Identifier of a column. It avoids comparing column names for each row.
#[derive(Debug, Clone, Copy)]
pub(super) enum PriceColumn {
    Symbol,
    Currency,
    Date,
    Open,
    High,
    Low,
    Close,
    Volume,
    Vwap,
    TradeCount,
    RawClose,
    AdjClose,
    SplitFactor,
    TotalFactor,
    Dividend,
    SplitRatio,
    Change,
    ChangePercent,
}

impl PriceColumn {
    pub(super) fn from_name(column: &str) -> Self {
        match column {
            "symbol" => Self::Symbol,
            "currency" => Self::Currency,
            "date" => Self::Date,
            "open" => Self::Open,
            "high" => Self::High,
            "low" => Self::Low,
            "close" => Self::Close,
            "volume" => Self::Volume,
            "vwap" => Self::Vwap,
            "trade_count" => Self::TradeCount,
            "raw_close" => Self::RawClose,
            "adj_close" => Self::AdjClose,
            "split_factor" => Self::SplitFactor,
            "total_factor" => Self::TotalFactor,
            "dividend" => Self::Dividend,
            "split_ratio" => Self::SplitRatio,
            "change" => Self::Change,
            _ => Self::ChangePercent,
        }
    }
}
