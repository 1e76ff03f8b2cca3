//! Notice: something that happened to a security, for people and programs that want to be informed of it.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{DividendRow, DividendState, SecurityEvent, SplitRow};
use crate::text_enum;

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
