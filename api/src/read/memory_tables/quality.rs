//! Counts that describe the quality of the data: coverage, feeds, quarantined rows and flags.

use chrono::{DateTime, NaiveDate, Utc};
use market::event::Kind;
use serde::Serialize;
use store::{FromRow, sql_row};
use utoipa::ToSchema;

use crate::read::{QueryError, ServedGeneration, lookup};

const COVERAGE: &str = include_str!("../../../queries/quality/coverage.sql");
const FEEDS: &str = include_str!("../../../queries/quality/feeds.sql");
const PRICE_AGES: &str = include_str!("../../../queries/quality/price_ages.sql");
const HELD_ROWS: &str = include_str!("../../../queries/quality/held_rows.sql");
const FLAGS: &str = include_str!("../../../queries/quality/flags.sql");

/// Counts of all securities at one data version.
#[derive(Debug)]
pub(crate) struct QualityTables {
    pub(crate) coverage: CoverageCounts,
    /// Feeds with dividends, most records first.
    pub(crate) feeds: Vec<FeedCount>,
    price_ages: Vec<PriceAge>,
    /// Quarantined rows by feed, kind and reason, most rows first.
    pub(crate) held_rows: Vec<HeldRowCount>,
    /// Flags, most securities first.
    pub(crate) flags: Vec<FlagCount>,
}

sql_row! {
    /// Numbers of securities by the data that they have.
    #[derive(Debug)]
    pub(crate) struct CoverageCounts {
        pub(crate) active: i64,
        pub(crate) priced: i64,
        pub(crate) stale: i64,
        pub(crate) payers: i64,
        pub(crate) unknown_dividends: i64,
        pub(crate) yielding: i64,
        pub(crate) delisted: i64,
    }
}

sql_row! {
    /// Dividend records of a feed.
    #[derive(Debug)]
    pub(crate) struct FeedCount {
        pub(crate) source: String,
        pub(crate) rows: i64,
        pub(crate) securities: i64,
        /// Newest ex-date that is not estimated.
        pub(crate) newest: NaiveDate,
        updated_at: DateTime<Utc>,
    }
}

sql_row! {
    #[derive(Debug)]
    struct PriceAge {
        source: String,
        newest: NaiveDate,
        updated_at: DateTime<Utc>,
    }
}

/// Age of the served data of a feed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FeedAge {
    /// Source of the feed, as in `/v1/sources`.
    pub(crate) source: String,
    /// Kind of the data: price or dividend. Prices older than the previous calendar year do not count.
    pub(crate) kind: &'static str,
    /// Newest trading day with a price, or newest ex-date of a dividend that is not estimated.
    pub(crate) newest: NaiveDate,
    /// Time of the last update of its securities' quotes or of its dividends, in UTC.
    pub(crate) updated_at: DateTime<Utc>,
}

sql_row! {
    /// Quarantined rows with the same feed, kind and reason.
    #[derive(Debug)]
    pub(crate) struct HeldRowCount {
        pub(crate) source: String,
        pub(crate) kind: String,
        pub(crate) reason: String,
        pub(crate) rows: i64,
        pub(crate) securities: i64,
        /// Symbol of one of the securities.
        pub(crate) example: String,
    }
}

sql_row! {
    /// Securities with a flag.
    #[derive(Debug)]
    pub(crate) struct FlagCount {
        pub(crate) flag: String,
        pub(crate) securities: i64,
        /// Symbol of one of the securities.
        pub(crate) example: String,
    }
}

impl QualityTables {
    pub(super) async fn load(generation: &ServedGeneration) -> Result<Self, QueryError> {
        let coverage = lookup::run_query(generation, COVERAGE, &[]).await?;
        Ok(Self {
            coverage: CoverageCounts::from_row(lookup::first_row(generation, &coverage)?)?,
            feeds: read(generation, FEEDS).await?,
            price_ages: read(generation, PRICE_AGES).await?,
            held_rows: read(generation, HELD_ROWS).await?,
            flags: read(generation, FLAGS).await?,
        })
    }

    /// Age of the data, by source and kind.
    pub(crate) fn feed_ages(&self) -> Vec<FeedAge> {
        let age = |source, kind: Kind, newest, updated_at| FeedAge {
            source,
            kind: kind.as_str(),
            newest,
            updated_at,
        };
        let prices = self
            .price_ages
            .iter()
            .map(|feed| age(feed.source.clone(), Kind::Price, feed.newest, feed.updated_at));
        let dividends = self
            .feeds
            .iter()
            .map(|feed| age(feed.source.clone(), Kind::Dividend, feed.newest, feed.updated_at));
        let mut ages: Vec<FeedAge> = prices.chain(dividends).collect();
        ages.sort_by(|a, b| (&a.source, a.kind).cmp(&(&b.source, b.kind)));
        ages
    }
}

async fn read<T: FromRow>(generation: &ServedGeneration, statement: &str) -> Result<Vec<T>, QueryError> {
    let rows = lookup::run_query(generation, statement, &[]).await?;
    Ok(rows.iter().map(T::from_row).collect::<Result<_, _>>()?)
}
