//! Search for the rows that may differ between two generations, by comparing digests.
//!
//! A digest covers all rows of a security in a table; for prices, in one calendar year. Rows with equal digests are
//! equal. Rows without a digest are always compared.

use std::collections::HashMap;

use store::db::generation_schema;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::generation_reader::GenerationReader;
use crate::review::compare::{ComparedTable, PRICES, SECTORS, TABLES};
use crate::write::table::digest_index;

const DIGESTS: &str = include_str!("../../../queries/diff_digests.sql");
const YEARS: &str = include_str!("../../../queries/diff_years.sql");
const YEAR_COUNT: &str = include_str!("../../../queries/diff_year_count.sql");
const SECTOR_SLUGS: &str = "select slug from sectors";

pub(super) struct DiffScope<'a> {
    pub(super) only: Option<&'a [String]>,
    pub(super) first_price_year: Option<i32>,
    pub(super) include_equal: bool,
}

/// Rows that must be compared column by column. An owner of rows is a security, fund or sector.
#[derive(Debug, Default)]
pub(super) struct DiffCandidates {
    owners: HashMap<&'static str, Vec<String>>,
    /// Price years to compare, as symbol and calendar year. A price year is one row that contains the prices of one
    /// security in one calendar year.
    pub(super) years: Vec<(String, i32)>,
    /// Number of all price years in each generation. Years with equal digests are counted too.
    pub(super) years_in_all: [u64; 2],
    /// Sum of all digests of each table, in each generation; `None` if a digest is missing.
    checksums: HashMap<&'static str, [Option<String>; 2]>,
}

impl DiffCandidates {
    pub(super) async fn find(readers: &[GenerationReader; 2], scope: &DiffScope<'_>) -> Result<Self, Error> {
        let mut found = Self::default();
        let [a, b] = readers.each_ref().map(|reader| generation_schema(reader.generation.generation));
        let [digests, years] = [DIGESTS, YEARS].map(|query| query.replace("{a}", &a).replace("{b}", &b));
        found.compare_digests(&readers[0].client.query(&digests, &[&scope.only]).await?, scope)?;
        let of_years: [&(dyn ToSql + Sync); 3] = [&scope.only, &scope.first_price_year, &scope.include_equal];
        for row in readers[0].client.query(&years, &of_years).await? {
            found.years.push((row.try_get("symbol")?, row.try_get("year")?));
        }
        let mut checksums = [None, None];
        for (side, reader) in readers.iter().enumerate() {
            let row = reader.client.query_one(YEAR_COUNT, &of_years[..2]).await?;
            found.years_in_all[side] = row.try_get::<_, i64>("years")?.unsigned_abs();
            checksums[side] = row.try_get("checksum")?;
            if scope.only.is_none() {
                for row in reader.client.query(SECTOR_SLUGS, &[]).await? {
                    found.owners.entry(SECTORS).or_default().push(row.try_get(0)?);
                }
            }
        }
        found.checksums.insert(PRICES, checksums);
        if let Some(slugs) = found.owners.get_mut(SECTORS) {
            slugs.sort_unstable();
            slugs.dedup();
        }
        Ok(found)
    }

    pub(super) fn owners(&self, table: &ComparedTable) -> &[String] {
        self.owners.get(table.name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn checksums(&self, table: &ComparedTable) -> [Option<String>; 2] {
        self.checksums.get(table.name).cloned().unwrap_or_default()
    }

    fn compare_digests(&mut self, rows: &[Row], scope: &DiffScope<'_>) -> Result<(), Error> {
        for table in TABLES.iter().filter(|table| !matches!(table.name, PRICES | SECTORS)) {
            let index = digest_index(table.name);
            let (mut sums, mut owners) = ([Some(0); 2], Vec::new());
            for row in rows {
                let mut digests = [None, None];
                for (side, (column, present)) in [("a", "in_a"), ("b", "in_b")].into_iter().enumerate() {
                    if row.try_get(present)? {
                        let tables: Option<Vec<i64>> = row.try_get(column)?;
                        digests[side] =
                            tables.zip(index).and_then(|(tables, index)| tables.get(index).copied());
                        sums[side] = sums[side]
                            .zip(digests[side])
                            .map(|(sum, digest): (i128, i64)| sum + i128::from(digest));
                    }
                }
                if scope.include_equal || digests[0].is_none() || digests[0] != digests[1] {
                    owners.push(row.try_get("symbol")?);
                }
            }
            self.owners.insert(table.name, owners);
            self.checksums.insert(table.name, sums.map(|sum| sum.map(|sum| sum.to_string())));
        }
        Ok(())
    }
}
