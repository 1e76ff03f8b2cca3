//! Columns of a price row: their identifiers, and the text before each value.

/// Identifier of a column. Comparing it is faster than comparing column names for each row.
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

/// Text before the value of a column: the separator and, in JSON, the column name.
#[derive(Debug)]
pub(super) struct Label {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl Label {
    /// Maximum length, in bytes. `write` copies this number of bytes for every label and then removes the excess,
    /// because a copy of constant size is fast.
    const MAX: usize = 32;

    pub(super) fn new(text: &str) -> Self {
        debug_assert!(text.len() <= Self::MAX, "the label {text} is too long");
        let mut bytes = [0; Self::MAX];
        bytes.iter_mut().zip(text.bytes()).for_each(|(byte, of_text)| *byte = of_text);
        Self { bytes, length: text.len() }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}
