//! Every security's list row in memory, for lists that filter and sort by anything.
//!
//! Invariant: the rows and the version they carry are one snapshot; a newer version replaces them whole.

use market::row::{Json, StockRow};
use market::table_row;
use market::value::Exact;
use store::FromRow;

use crate::read::ReadError;
use crate::read::lookup;
use crate::read::projection::{Generation, Version};

const LIST: &str = include_str!("../../../queries/stocks/list.sql");

table_row! {
    /// The screeners' figures of one security, beside its list row.
    pub struct Figures {
        "yield_ttm" yield_ttm: Option<Exact>,
        "yield_forward" yield_forward: Option<Exact>,
        "payout_ratio" payout_ratio: Option<Exact>,
        "growth_1y" growth_1y: Option<Exact>,
        "growth_3y" growth_3y: Option<Exact>,
        "growth_5y" growth_5y: Option<Exact>,
        "growth_10y" growth_10y: Option<Exact>,
        "payment_streak_years" payment_streak_years: Option<i32>,
        "pe_ratio" pe_ratio: Option<Exact>,
        "beta" beta: Option<Exact>,
        "volume" volume: Option<i64>,
        "is_dividend_aristocrat" is_dividend_aristocrat: bool,
        "is_dividend_king" is_dividend_king: bool,
        "price_age_sessions" price_age_sessions: Option<i32>,
        "yield_suspect" yield_suspect: bool,
        "change_percent" change_percent: Option<Exact>,
        "change_percent_ytd" change_percent_ytd: Option<Exact>,
        #[schema(value_type = Vec<String>)]
        "indexes" indexes: Json<Vec<String>>,
    }
}

/// One security.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) stock: StockRow,
    pub(crate) figures: Figures,
}

/// Every security of one version, by symbol.
#[derive(Debug)]
pub(crate) struct Universe {
    pub(crate) version: Version,
    pub(crate) members: Vec<Member>,
}

impl Universe {
    /// Reads every security in one statement.
    pub(super) async fn load(generation: &Generation) -> Result<Self, ReadError> {
        let rows = lookup::query(generation, LIST, &[]).await?;
        let version = Version::of(rows.first().ok_or_else(|| lookup::unversioned(generation))?)?;
        let present =
            rows.iter().filter(|row| matches!(row.try_get::<_, Option<&str>>("symbol"), Ok(Some(_))));
        let member = |row| Ok(Member { stock: StockRow::from_row(row)?, figures: Figures::from_row(row)? });
        let mut members = present.map(member).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
        // The database's collation need not be that of bytes.
        members.sort_by(|a, b| a.stock.symbol.cmp(&b.stock.symbol));
        Ok(Self { version, members })
    }
}
