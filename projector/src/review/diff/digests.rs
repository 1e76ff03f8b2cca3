//! Search for the rows that may differ between two generations, by comparing digests.
//!
//! A digest covers all rows of a security in a table; for prices, in one calendar year. Rows with equal digests are
//! equal. Rows without a digest are always compared.

use std::collections::HashMap;
use std::pin::Pin;

use futures::TryStreamExt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, RowStream};

use super::generation_reader::GenerationReader;
use super::tables::{ComparedTable, PRICES, SECTORS, TABLES};
use crate::write::table::digest_index;

const DIGESTS: &str = include_str!("../../../queries/diff_digests.sql");
const YEARS: &str = include_str!("../../../queries/diff_years.sql");
const SECTOR_SLUGS: &str = "select slug from sectors order by slug";

/// Rows that must be compared column by column.
#[derive(Debug, Default)]
pub(super) struct DiffCandidates {
    /// Owners whose rows must be compared, by table. An owner is a security, fund or sector.
    owners: HashMap<&'static str, Vec<String>>,
    /// Price years to compare, as symbol and calendar year. A price year is one row that contains the prices of one
    /// security in one calendar year.
    pub(super) years: Vec<(String, i32)>,
    /// Number of all price years in the first and in the second generation. Years with equal digests are counted too.
    pub(super) years_in_all: [u64; 2],
    /// Sum of all digests of each table, in the first and in the second generation. A sum does not depend on the order
    /// of the rows. `None` if a digest is missing.
    sums: HashMap<&'static str, [Option<i128>; 2]>,
}

fn add_digest(sum: &mut Option<i128>, digest: Option<i64>) {
    *sum = sum.zip(digest).map(|(sum, digest)| sum + i128::from(digest));
}

impl DiffCandidates {
    /// Finds the rows to compare, limited to the securities in `only`. `include_equal` adds rows with equal digests.
    /// Price years before `first_price_year` are skipped.
    pub(super) async fn find(
        readers: &[GenerationReader; 2],
        only: Option<&[String]>,
        first_price_year: Option<i32>,
        include_equal: bool,
    ) -> Result<Self, Error> {
        let mut found = Self::default();
        found.compare_securities(readers, only, include_equal).await?;
        found.compare_years(readers, only, first_price_year, include_equal).await?;
        if only.is_none() {
            let slugs = found.owners.entry(SECTORS).or_default();
            for reader in readers {
                for row in reader.client.query(SECTOR_SLUGS, &[]).await? {
                    slugs.push(row.try_get(0)?);
                }
            }
            slugs.sort_unstable();
            slugs.dedup();
        }
        Ok(found)
    }

    /// Owners (securities, funds or sectors) whose rows of a table must be compared.
    pub(super) fn owners(&self, table: &ComparedTable) -> &[String] {
        self.owners.get(table.name).map_or(&[], Vec::as_slice)
    }

    /// Sum of a table's digests in each generation; `None` if a digest is missing.
    pub(super) fn checksums(&self, table: &ComparedTable) -> [Option<String>; 2] {
        let sums = self.sums.get(table.name).copied().unwrap_or_default();
        sums.map(|sum| sum.map(|sum| sum.to_string()))
    }

    async fn compare_securities(
        &mut self,
        readers: &[GenerationReader; 2],
        only: Option<&[String]>,
        include_equal: bool,
    ) -> Result<(), Error> {
        let mut pairs =
            MergeJoin::open(readers, DIGESTS, &[&only], |row| row.try_get::<_, String>("symbol")).await?;
        while let Some((symbol, sides)) = pairs.next().await? {
            let mut digests = [const { None }; 2];
            for (digests, row) in digests.iter_mut().zip(&sides) {
                *digests = match row {
                    Some(row) => row.try_get::<_, Option<Vec<i64>>>("tables")?,
                    // The generation does not have the security, so it has no rows of the security.
                    None => Some(Vec::new()),
                };
            }
            let present = sides.map(|row| row.is_some());
            for table in TABLES.iter().filter(|table| !matches!(table.name, PRICES | SECTORS)) {
                let place = digest_index(table.name);
                let digest = |side: usize| Some(*digests[side].as_ref()?.get(place?)?);
                let both = [digest(0), digest(1)];
                let sums = self.sums.entry(table.name).or_insert([Some(0); 2]);
                for side in (0..2).filter(|side| present[*side]) {
                    add_digest(&mut sums[side], both[side]);
                }
                if include_equal || both[0].is_none() || both[0] != both[1] {
                    self.owners.entry(table.name).or_default().push(symbol.clone());
                }
            }
        }
        Ok(())
    }

    async fn compare_years(
        &mut self,
        readers: &[GenerationReader; 2],
        only: Option<&[String]>,
        first_price_year: Option<i32>,
        include_equal: bool,
    ) -> Result<(), Error> {
        let key = |row: &Row| Ok((row.try_get::<_, String>("symbol")?, row.try_get::<_, i32>("year")?));
        let mut pairs = MergeJoin::open(readers, YEARS, &[&only, &first_price_year], key).await?;
        let mut sums = [Some(0); 2];
        while let Some((key, sides)) = pairs.next().await? {
            let mut digests = [None; 2];
            for side in 0..2 {
                if let Some(row) = &sides[side] {
                    digests[side] = Some(row.try_get::<_, i64>("digest")?);
                    self.years_in_all[side] += 1;
                    add_digest(&mut sums[side], digests[side]);
                }
            }
            if include_equal || digests[0] != digests[1] {
                self.years.push(key);
            }
        }
        self.sums.insert(PRICES, sums);
        Ok(())
    }
}

/// Merge join of the results of one query in two generations. Both results are sorted by key. Rows are read one by one
/// and are not collected in memory.
struct MergeJoin<K, F> {
    rows: [Pin<Box<RowStream>>; 2],
    next: [Option<(K, Row)>; 2],
    key: F,
}

impl<K: Ord, F: Fn(&Row) -> Result<K, Error>> MergeJoin<K, F> {
    async fn open(
        readers: &[GenerationReader; 2],
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
        key: F,
    ) -> Result<Self, Error> {
        let open = async |reader: &GenerationReader| {
            Ok::<_, Error>(Box::pin(reader.client.query_raw(query, parameters.iter().copied()).await?))
        };
        let rows = [open(&readers[0]).await?, open(&readers[1]).await?];
        let mut pairs = Self { rows, next: [None, None], key };
        pairs.advance(0).await?;
        pairs.advance(1).await?;
        Ok(pairs)
    }

    /// Returns the next key, with its row in the first and in the second generation. A row is `None` if its generation
    /// lacks the key. Returns `None` at the end.
    async fn next(&mut self) -> Result<Option<(K, [Option<Row>; 2])>, Error> {
        let keys = self.next.each_ref().map(|next| next.as_ref().map(|(key, _)| key));
        let Some(least) = keys.into_iter().flatten().min() else { return Ok(None) };
        let has_least = keys.map(|key| key == Some(least));
        let (mut key, mut rows) = (None, [None, None]);
        for side in (0..2).filter(|side| has_least[*side]) {
            if let Some((own, row)) = self.next[side].take() {
                (key, rows[side]) = (Some(own), Some(row));
                self.advance(side).await?;
            }
        }
        Ok(key.map(|key| (key, rows)))
    }

    async fn advance(&mut self, side: usize) -> Result<(), Error> {
        let row = self.rows[side].as_mut().try_next().await?;
        self.next[side] = row.map(|row| Ok::<_, Error>(((self.key)(&row)?, row))).transpose()?;
        Ok(())
    }
}
