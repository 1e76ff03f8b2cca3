//! The columns of a price row.

/// A column, so that a row costs no comparisons of names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
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

impl Cell {
    /// The column of this name.
    pub(super) fn named(column: &str) -> Self {
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
