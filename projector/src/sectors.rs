//! Sector statistics: those of the sectors that derived securities are in, or were in, are made anew.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use market::measure::sector::{Member, sector_rows, slug};
use market::row::{Json, NextDividend, NextStatus, SectorRow, TableRow};
use market::symbol::Symbol;
use market::value::Exact;
use store::copy::copy_rows;
use tokio_postgres::{Row, Transaction};

use crate::error::DeriveError;

const NAMES: &str = "select distinct sector from stocks where sector is not null";
const NAMES_OF: &str = "select distinct sector from stocks where symbol = any ($1) and sector is not null";
const MEMBERS: &str = include_str!("../queries/sector_members.sql");
const DELETE: &str = "delete from sectors where slug = any ($1)";

/// Slugs of the sectors whose statistics may have changed.
pub struct Sectors(BTreeSet<String>);

impl Sectors {
    /// The sectors that securities are in before they are derived.
    pub async fn before(
        transaction: &Transaction<'_>,
        symbols: &BTreeSet<Symbol>,
    ) -> Result<Self, DeriveError> {
        Ok(Self(slugs_of(transaction, symbols).await?))
    }

    /// Replaces the statistics, from the rows of the members, now that these securities are derived.
    pub async fn replace(
        mut self,
        transaction: &Transaction<'_>,
        symbols: &BTreeSet<Symbol>,
        as_of: NaiveDate,
    ) -> Result<(), DeriveError> {
        self.0.extend(slugs_of(transaction, symbols).await?);
        if self.0.is_empty() {
            return Ok(());
        }
        // Sources spell a sector differently; the slug is what makes it one.
        let rows = transaction.query(NAMES, &[]).await?;
        let names: Vec<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let names: Vec<&str> = names.into_iter().filter(|name| self.0.contains(&slug(name))).collect();
        let members = transaction.query(MEMBERS, &[&names]).await?;
        let members: Vec<Member> =
            members.iter().map(member).collect::<Result<_, tokio_postgres::Error>>()?;
        transaction.execute(DELETE, &[&self.0.iter().collect::<Vec<_>>()]).await?;
        let statement = format!("copy sectors ({}) from stdin binary", SectorRow::COLUMNS.join(", "));
        copy_rows(transaction, &statement, sector_rows(&members, as_of).iter()).await?;
        Ok(())
    }
}

async fn slugs_of(
    transaction: &Transaction<'_>,
    symbols: &BTreeSet<Symbol>,
) -> Result<BTreeSet<String>, DeriveError> {
    if symbols.is_empty() {
        return Ok(BTreeSet::new());
    }
    let symbols: Vec<&str> = symbols.iter().map(Symbol::as_str).collect();
    let rows = transaction.query(NAMES_OF, &[&symbols]).await?;
    rows.iter().map(|row| Ok(slug(row.try_get(0)?))).collect()
}

fn member(row: &Row) -> Result<Member, tokio_postgres::Error> {
    let decimal = |name: &str| row.try_get::<_, Option<Exact>>(name).map(|value| value.map(|value| value.0));
    let Json(next): Json<Option<NextDividend>> = row.try_get("next")?;
    Ok(Member {
        symbol: row.try_get("symbol")?,
        sector: row.try_get("sector")?,
        industry: row.try_get("industry")?,
        security_type: row.try_get("type")?,
        is_active: row.try_get("is_active")?,
        pays_dividend: row.try_get("pays_dividend")?,
        dividend_yield: decimal("dividend_yield")?,
        yield_suspect: row.try_get("yield_suspect")?,
        market_cap: row.try_get("market_cap")?,
        payout_ratio: decimal("payout_ratio")?,
        growth_5y: decimal("growth_5y")?,
        pe_ratio: decimal("pe_ratio")?,
        is_aristocrat: row.try_get("is_dividend_aristocrat")?,
        is_king: row.try_get("is_dividend_king")?,
        change_percent_1d: decimal("change_percent")?,
        change_percent_ytd: decimal("change_percent_ytd")?,
        next_ex_date: next.filter(|next| next.status == NextStatus::Declared).map(|next| next.ex_date),
    })
}
