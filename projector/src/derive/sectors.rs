//! Sector statistics. A derivation updates the current and former sectors of the derived securities.
//!
//! The statistics need the figures of all securities in a sector. The figures are loaded once, and then updated from
//! derived rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use market::metrics::sector::{SectorMember, sector_rows, slug};
use market::row::{SectorRow, TableRow};
use market::symbol::Symbol;
use store::FromRow;
use store::copy::copy_values;
use tokio_postgres::Transaction;

use crate::error::DeriveError;

const MEMBERS: &str = include_str!("../../queries/sector_members.sql");
const DELETE: &str = "delete from sectors where slug = any ($1)";

/// Securities (members) of all sectors of a generation, with the figures that the statistics need.
#[derive(Debug, Default)]
pub(crate) struct SectorMembers {
    /// Members by sector, then by symbol. The key of a sector is the slug of its name (lower case, with hyphens).
    /// Different spellings of the name therefore count as one sector.
    sectors: HashMap<String, BTreeMap<String, SectorMember>>,
    /// Slug of each member's sector, by symbol.
    slugs: HashMap<String, String>,
    /// Slugs of the sectors whose members changed since the last write.
    touched: BTreeSet<String>,
    /// `true` after the published members have been loaded.
    is_loaded: bool,
}

impl SectorMembers {
    /// Loads the members from the published rows. Does nothing if this was already called, or if the generation is new
    /// and has no published rows (`is_new`).
    pub(crate) async fn load_members(
        &mut self,
        transaction: &Transaction<'_>,
        is_new: bool,
    ) -> Result<(), DeriveError> {
        if !std::mem::replace(&mut self.is_loaded, true) && !is_new {
            for row in &transaction.query(MEMBERS, &[]).await? {
                self.insert_into_sector(SectorMember::from_row(row)?);
            }
        }
        Ok(())
    }

    /// Replaces the figures of a security in its sector. If `member` is `None`, removes the security.
    pub(crate) fn replace_member(&mut self, symbol: &Symbol, member: Option<SectorMember>) {
        if let Some(slug) = self.slugs.remove(symbol.as_str()) {
            self.sectors.get_mut(&slug).and_then(|members| members.remove(symbol.as_str()));
            self.touched.insert(slug);
        }
        let slug = member.and_then(|member| self.insert_into_sector(member));
        self.touched.extend(slug);
    }

    /// Writes the statistics of the sectors whose members changed since the last call. Sums are in the reporting currency
    /// `currency`. Without a market date, no sector has members.
    pub(crate) async fn write_touched(
        &mut self,
        transaction: &Transaction<'_>,
        as_of: Option<NaiveDate>,
        currency: &str,
    ) -> Result<(), DeriveError> {
        let touched: Vec<String> = std::mem::take(&mut self.touched).into_iter().collect();
        if touched.is_empty() {
            return Ok(());
        }
        let members = touched.iter().filter_map(|slug| self.sectors.get(slug)).flat_map(BTreeMap::values);
        let rows = as_of.map(|as_of| sector_rows(members, as_of, currency)).unwrap_or_default();
        transaction.execute(DELETE, &[&touched]).await?;
        let statement = format!("copy sectors ({}) from stdin binary", SectorRow::COLUMNS.join(", "));
        copy_values(transaction, &statement, SectorRow::types(), rows.iter().map(TableRow::values)).await?;
        Ok(())
    }

    /// Inserts a member into its sector. Returns the slug of the sector, or `None` if the security has no sector.
    fn insert_into_sector(&mut self, member: SectorMember) -> Option<String> {
        let slug = slug(member.sector.as_deref()?);
        self.slugs.insert(member.symbol.clone(), slug.clone());
        self.sectors.entry(slug.clone()).or_default().insert(member.symbol.clone(), member);
        Some(slug)
    }
}
