//! Row of a dated event of a security: a ticker change, a corporate action or a special dividend.
//!
//! Revisions: later changes of dividends, splits and headline figures that were already published in responses. A
//! change is caused by new data, a changed rule parameter or a changed source policy.

use chrono::{DateTime, NaiveDate, Utc};

use super::dividend::{DividendRow, DividendStatus};
use super::dividend::{SplitRow, SplitStatus, SplitType};
use crate::decimal::ExactDecimal;
use crate::event::DividendType;
use crate::{table_row, text_enum};

text_enum! {
    /// Type of a security event.
    pub enum SecurityEventType {
        /// Change of the ticker.
        Rename = "rename",
        /// Merger into another security, the successor.
        Merger = "merger",
        /// End of trading without a known successor.
        Delisting = "delisting",
        /// Change of the share count: split, reverse split or stock dividend.
        Split = "split",
        /// Distribution of a subsidiary's shares. The event has either a ratio or a value per share.
        SpinOff = "spin_off",
        /// Distribution of subscription rights.
        Rights = "rights",
        /// Distribution of shares of another class.
        ClassDistribution = "class_distribution",
        /// Special, supplemental or liquidating dividend.
        SpecialDividend = "special_dividend",
    }
}

table_row! {
    /// Dated event of a security: ticker change, corporate action or special dividend.
    #[derive(serde::Deserialize)]
    pub struct SecurityEvent {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Ex-date of the event. For a rename, the first session with the new ticker; for a delisting or merger, the
        /// last trading day.
        "date" date: NaiveDate,
        /// Type of the event.
        "type" r#type: SecurityEventType,
        /// Status on the market's as-of date.
        "status" status: SplitStatus,
        /// Id of the split or dividend record; null for other events.
        "id" id: Option<String>,
        /// Ticker before a rename; null for other events.
        "from_symbol" from_symbol: Option<String>,
        /// Ticker after a rename, or ticker of the successor after a merger; null for other events.
        "to_symbol" to_symbol: Option<String>,
        /// New shares per old share. For a merger, shares of the successor per share of this security.
        "ratio" ratio: Option<ExactDecimal>,
        /// Multiplier of prices before the event; null if the event does not adjust prices.
        "price_factor" price_factor: Option<ExactDecimal>,
        /// Amount per share, as declared: the cash of a special dividend, or the value of the spun-off shares.
        "amount" amount: Option<ExactDecimal>,
        /// ISO 4217 currency of the amount.
        "currency" currency: Option<String>,
    }
}

impl From<&SplitRow> for SecurityEvent {
    fn from(split: &SplitRow) -> Self {
        let r#type = match split.r#type {
            SplitType::SpinOff => SecurityEventType::SpinOff,
            SplitType::Rights => SecurityEventType::Rights,
            SplitType::ClassDistribution => SecurityEventType::ClassDistribution,
            SplitType::Forward | SplitType::Reverse | SplitType::StockDividend => SecurityEventType::Split,
        };
        Self {
            id: Some(split.id.clone()),
            ratio: Some(split.ratio),
            price_factor: Some(split.price_factor),
            ..Self::new(&split.symbol, split.ex_date, r#type, split.status)
        }
    }
}

impl SecurityEvent {
    /// Event with the common fields. The fields that depend on the type are `None`.
    pub(crate) fn new(symbol: &str, date: NaiveDate, r#type: SecurityEventType, status: SplitStatus) -> Self {
        Self {
            symbol: symbol.to_owned(),
            date,
            r#type,
            status,
            id: None,
            from_symbol: None,
            to_symbol: None,
            ratio: None,
            price_factor: None,
            amount: None,
            currency: None,
        }
    }

    /// Event of a special, supplemental or liquidating dividend, or of a spin-off. `None` for all other dividends, and
    /// for cancelled or projected ones.
    pub fn of_dividend(dividend: &DividendRow, as_of: Option<NaiveDate>) -> Option<Self> {
        let r#type = match dividend.r#type {
            DividendType::SpinOff => SecurityEventType::SpinOff,
            DividendType::Special | DividendType::Supplemental | DividendType::Liquidation => {
                SecurityEventType::SpecialDividend
            }
            _ => return None,
        };
        if !matches!(dividend.status, DividendStatus::Declared | DividendStatus::Paid) {
            return None;
        }
        let is_effective = as_of.is_some_and(|as_of| dividend.ex_date <= as_of);
        let status = if is_effective { SplitStatus::Effective } else { SplitStatus::Announced };
        Some(Self {
            id: dividend.id.clone(),
            price_factor: dividend.price_factor,
            amount: Some(dividend.amount),
            currency: Some(dividend.currency.clone()),
            ..Self::new(&dividend.symbol, dividend.ex_date, r#type, status)
        })
    }
}

text_enum! {
    /// Kind of the revised value.
    pub enum RevisedKind {
        /// Dividend record.
        Dividend = "dividend",
        /// Split record.
        Split = "split",
        /// Figure of the dividend metrics, for example `dps_ttm`.
        Figure = "figure",
    }
}

text_enum! {
    /// Reason for a revision.
    pub enum RevisionReason {
        /// The source corrected the record.
        Correction = "correction",
        /// The source withdrew the record.
        Retraction = "retraction",
        /// The record now comes from another source.
        NewSource = "new_source",
        /// A new record changed the figure.
        NewRecord = "new_record",
        /// The source policy changed.
        Policy = "policy",
        /// A rule parameter changed.
        Rule = "rule",
    }
}

table_row! {
    /// Change of a value that was already published in responses. It is caused by new data, a changed rule parameter
    /// or a changed source policy.
    pub struct Revision {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Time at which the first data version with the new value became current.
        "known_at" known_at: DateTime<Utc>,
        /// First data version with the new value.
        "data_version" data_version: String,
        /// Kind of the revised value.
        "kind" kind: RevisedKind,
        /// Id of the dividend or split record; null for a figure.
        "id" id: Option<String>,
        /// Ex-date of the record. For a figure, the market date of both values: before and after the revision.
        "date" date: NaiveDate,
        /// Name of the revised field.
        "field" field: String,
        /// Value before the revision, as text; null if it was unknown.
        "before" before: Option<String>,
        /// Value after the revision, as text; null if it is unknown.
        "after" after: Option<String>,
        /// First value of the field in responses, as text; null if it was unknown.
        "first_reported" first_reported: Option<String>,
        /// Value after the newest revision of the field, as text; null if it is unknown.
        "latest" latest: Option<String>,
        /// Reason for the revision.
        "reason" reason: RevisionReason,
        /// Feed of the dividend record after the revision; null for a figure, for a split, and for a dividend that no
        /// longer exists.
        "source" source: Option<String>,
    }
}
