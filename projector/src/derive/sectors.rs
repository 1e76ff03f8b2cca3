//! Sector statistics: those of the sectors that derived securities are in, or were in, are made anew.
//!
//! Their members are read once and then known from what was derived: a sector changes with each of its thousand members.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use market::measure::sector::{Member, sector_rows, slug};
use market::row::{Json, NextDividend, NextStatus, SectorRow, TableRow};
use market::symbol::Symbol;
use market::value::Exact;
use store::copy::copy_rows;
use tokio_postgres::{Row, Transaction};

use crate::error::DeriveError;

const MEMBERS: &str = include_str!("../../queries/sector_members.sql");
const DELETE: &str = "delete from sectors where slug = any ($1)";

/// The members of all sectors that a generation serves.
#[derive(Debug, Default)]
pub(crate) struct SectorMembers {
    /// By slug: sources spell a sector differently, and the slug is what makes it one.
    sectors: HashMap<String, BTreeMap<String, Member>>,
    /// The slug of each member's sector.
    slugs: HashMap<String, String>,
    /// Slugs of the sectors whose statistics may be others now.
    touched: BTreeSet<String>,
    /// Whether those that were served before are among them.
    is_loaded: bool,
}

impl SectorMembers {
    /// Reads the members that are served, once; of a new generation there are none.
    pub(crate) async fn load_members(
        &mut self,
        transaction: &Transaction<'_>,
        is_new: bool,
    ) -> Result<(), DeriveError> {
        if !std::mem::replace(&mut self.is_loaded, true) && !is_new {
            for row in &transaction.query(MEMBERS, &[]).await? {
                self.add_member(read_member(row)?);
            }
        }
        Ok(())
    }

    /// Puts what was derived of a security in place of what is known of it; `None`: it has no row any more.
    pub(crate) fn replace_member(&mut self, symbol: &Symbol, member: Option<Member>) {
        if let Some(slug) = self.slugs.remove(symbol.as_str()) {
            self.sectors.get_mut(&slug).and_then(|members| members.remove(symbol.as_str()));
            self.touched.insert(slug);
        }
        let slug = member.and_then(|member| self.add_member(member));
        self.touched.extend(slug);
    }

    /// Replaces the statistics of the sectors that were touched since the last time.
    pub(crate) async fn write_touched(
        &mut self,
        transaction: &Transaction<'_>,
        as_of: NaiveDate,
    ) -> Result<(), DeriveError> {
        let touched: Vec<String> = std::mem::take(&mut self.touched).into_iter().collect();
        if touched.is_empty() {
            return Ok(());
        }
        let members = touched.iter().filter_map(|slug| self.sectors.get(slug)).flat_map(BTreeMap::values);
        let rows = sector_rows(members, as_of);
        transaction.execute(DELETE, &[&touched]).await?;
        let statement = format!("copy sectors ({}) from stdin binary", SectorRow::COLUMNS.join(", "));
        copy_rows(transaction, &statement, rows.iter()).await?;
        Ok(())
    }

    /// Adds a member to its sector, and gives the sector's slug.
    fn add_member(&mut self, member: Member) -> Option<String> {
        let slug = slug(member.sector.as_deref()?);
        self.slugs.insert(member.symbol.clone(), slug.clone());
        self.sectors.entry(slug.clone()).or_default().insert(member.symbol.clone(), member);
        Some(slug)
    }
}

fn read_member(row: &Row) -> Result<Member, tokio_postgres::Error> {
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
