//! Row of a dated event of a security: a ticker change, a corporate action or a special dividend.
//!
//! Revisions: later changes of dividends, splits and headline figures that were already published in responses. A
//! change is caused by new data, a changed rule parameter or a changed source policy.
//!
//! Notice: something that happened to a security, for people and programs that want to be informed of it.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::DividendState;
use super::dividend::{DividendRow, DividendStatus, SplitRow, SplitStatus, SplitType};
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

text_enum! {
    /// What happened to the security.
    pub enum NoticeEvent {
        /// A dividend was declared.
        Declared = "declared",
        /// A declared regular dividend is higher than the previous one. A half-yearly payer's dividend is compared with
        /// the one a year before if interim and final dividends differ (R13).
        Raised = "raised",
        /// A declared regular dividend is lower than the one that it is compared with (R13).
        Cut = "cut",
        /// A special, supplemental or liquidating dividend was declared, or one with a special part (R34).
        Special = "special",
        /// The dividend status changed from active to suspended or lapsed (R6).
        Suspended = "suspended",
        /// The dividend status changed from suspended or lapsed to active (R6).
        Resumed = "resumed",
        /// A known date, amount, currency or type of a dividend changed, or the date, ratio or type of a split.
        Corrected = "corrected",
        /// A dividend or split was cancelled or withdrawn.
        Cancelled = "cancelled",
        /// A split, a stock dividend, or a distribution of rights or of shares of another class was announced.
        Split = "split",
        /// A spin-off was announced (R35).
        SpinOff = "spin_off",
        /// The ticker changed, or its change was announced (R27).
        Renamed = "renamed",
        /// The security was delisted or merged into another one, or this was announced.
        Delisted = "delisted",
        /// The next session after the market's as-of date is the ex-date of a declared dividend.
        ExDateSoon = "ex_date_soon",
    }
}

text_enum! {
    /// Reason for the change of the data.
    pub enum NoticeCause {
        /// New data of a feed, or the passing of time.
        Data = "data",
        /// Other rules or rule parameters.
        Rule = "rule",
        /// Another source policy.
        Policy = "policy",
        /// Data that were rebuilt with the same rules.
        Promotion = "promotion",
    }
}

text_enum! {
    /// Kind of the rows of a notice.
    pub enum NoticeKind { Dividends = "dividends", Splits = "splits", Events = "events", Statuses = "statuses" }
}

/// Dividend status of a security.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SecurityStatus)]
pub struct StatusRow {
    /// Canonical ticker.
    pub symbol: String,
    /// Dividend status, equal to `dividend_status` in the metrics of the security.
    pub dividend_status: DividendState,
}

/// Row of a notice.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NoticeRow {
    /// Row of the kind `dividends`.
    Dividend(Box<DividendRow>),
    /// Row of the kind `splits`.
    Split(Box<SplitRow>),
    /// Row of the kind `events`: a rename, merger or delisting.
    Event(Box<SecurityEvent>),
    /// Row of the kind `statuses`.
    Status(StatusRow),
}

/// Something that happened to a security.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Notice {
    /// What happened.
    pub event: NoticeEvent,
    /// Canonical ticker at that time.
    pub symbol: String,
    /// Kind of the rows `before` and `after`.
    pub kind: NoticeKind,
    /// Id of the dividend or split; null for the kinds `events` and `statuses`.
    pub id: Option<String>,
    /// Day of the event: ex-date of a dividend or split, date of a rename or delisting. For `suspended`, the market's
    /// as-of date; for `resumed`, the ex-date of the newest regular dividend.
    pub date: NaiveDate,
    /// Reason for the change of the data.
    pub cause: NoticeCause,
    /// Time at which the service published the change.
    pub known_at: DateTime<Utc>,
    /// True if `date` was more than ten sessions before the market's as-of date when the change became known.
    pub is_backfill: bool,
    /// Row before the event; null if there was none. For `raised` and `cut`, the dividend that was compared.
    pub before: Option<NoticeRow>,
    /// Row after the event; null if it no longer exists.
    pub after: Option<NoticeRow>,
}

impl NoticeRow {
    /// Parses the JSON of a row.
    pub fn parse(kind: NoticeKind, json: &str) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            NoticeKind::Dividends => Self::Dividend(serde_json::from_str(json)?),
            NoticeKind::Splits => Self::Split(serde_json::from_str(json)?),
            NoticeKind::Events => Self::Event(serde_json::from_str(json)?),
            NoticeKind::Statuses => Self::Status(serde_json::from_str(json)?),
        })
    }
}
