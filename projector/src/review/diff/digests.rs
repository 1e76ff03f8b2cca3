//! Rows that may differ between two generations, found by their digests.
//!
//! Every row is stored with its digest. Rows with equal digests are equal and are not compared.

use std::cmp::Ordering;
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
    /// Owners of the rows to compare, by table. An owner is a security, fund or sector.
    owners: HashMap<&'static str, Vec<String>>,
    /// Years of packed prices to compare: symbol and calendar year.
    pub(super) years: Vec<(String, i32)>,
    /// Number of price years in the first and in the second generation, including years with equal digests.
    pub(super) years_in_all: [u64; 2],
    sums: HashMap<&'static str, [DigestSum; 2]>,
}

/// Sum of the digests of a table's rows. The order of the rows has no effect on the sum.
#[derive(Debug, Clone, Copy)]
enum DigestSum {
    Known(i128),
    /// Some rows have no digest.
    Unknown,
}

impl DigestSum {
    fn add(&mut self, digest: Option<i64>) {
        *self = match (*self, digest) {
            (Self::Known(sum), Some(digest)) => Self::Known(sum + i128::from(digest)),
            _ => Self::Unknown,
        };
    }
}

impl DiffCandidates {
    /// Finds the rows to compare, among all securities or among `only`.
    ///
    /// If `include_equal` is true, rows with equal digests are included. Price years before `first_price_year` are
    /// skipped.
    pub(super) async fn find(
        a: &GenerationReader,
        b: &GenerationReader,
        only: Option<&[String]>,
        first_price_year: Option<i32>,
        include_equal: bool,
    ) -> Result<Self, Error> {
        let mut found = Self::default();
        found.compare_securities(a, b, only, include_equal).await?;
        found.compare_years(a, b, only, first_price_year, include_equal).await?;
        if only.is_none() {
            let slugs = found.owners.entry(SECTORS).or_default();
            for reader in [a, b] {
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

    /// Checksum of a table in the first and in the second generation; `None` if some rows have no digest.
    pub(super) fn checksums(&self, table: &ComparedTable) -> [Option<String>; 2] {
        let sums = self.sums.get(table.name).copied().unwrap_or([DigestSum::Unknown; 2]);
        sums.map(|sum| match sum {
            DigestSum::Known(sum) => Some(sum.to_string()),
            DigestSum::Unknown => None,
        })
    }

    async fn compare_securities(
        &mut self,
        a: &GenerationReader,
        b: &GenerationReader,
        only: Option<&[String]>,
        include_equal: bool,
    ) -> Result<(), Error> {
        let mut pairs =
            MergeJoin::open(a, b, DIGESTS, &[&only], |row| row.try_get::<_, String>("symbol")).await?;
        while let Some((symbol, sides)) = pairs.next().await? {
            let mut digests = [const { None }; 2];
            for (digests, row) in digests.iter_mut().zip(&sides) {
                *digests = match row {
                    Some(row) => row.try_get::<_, Option<Vec<i64>>>("tables")?,
                    // A security that a generation lacks has no rows there.
                    None => Some(Vec::new()),
                };
            }
            let present = sides.map(|row| row.is_some());
            for table in TABLES.iter().filter(|table| !matches!(table.name, PRICES | SECTORS)) {
                let place = digest_index(table.name);
                let digest = |side: usize| Some(*digests[side].as_ref()?.get(place?)?);
                let both = [digest(0), digest(1)];
                let sums = self.sums.entry(table.name).or_insert([DigestSum::Known(0); 2]);
                for side in (0..2).filter(|side| present[*side]) {
                    sums[side].add(both[side]);
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
        a: &GenerationReader,
        b: &GenerationReader,
        only: Option<&[String]>,
        first_price_year: Option<i32>,
        include_equal: bool,
    ) -> Result<(), Error> {
        let key = |row: &Row| Ok((row.try_get::<_, String>("symbol")?, row.try_get::<_, i32>("year")?));
        let mut pairs = MergeJoin::open(a, b, YEARS, &[&only, &first_price_year], key).await?;
        let mut sums = [DigestSum::Known(0); 2];
        while let Some((key, sides)) = pairs.next().await? {
            let mut digests = [None; 2];
            for side in 0..2 {
                if let Some(row) = &sides[side] {
                    digests[side] = Some(row.try_get::<_, i64>("digest")?);
                    self.years_in_all[side] += 1;
                    sums[side].add(digests[side]);
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

/// Merge join of one query in two generations, sorted by key. Rows are read one by one and are not collected in memory.
struct MergeJoin<K, F> {
    rows: [Pin<Box<RowStream>>; 2],
    next: [Option<(K, Row)>; 2],
    key: F,
}

impl<K: Ord, F: Fn(&Row) -> Result<K, Error>> MergeJoin<K, F> {
    async fn open(
        a: &GenerationReader,
        b: &GenerationReader,
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
        key: F,
    ) -> Result<Self, Error> {
        let open = async |reader: &GenerationReader| {
            Ok::<_, Error>(Box::pin(reader.client.query_raw(query, parameters.iter().copied()).await?))
        };
        let mut pairs = Self { rows: [open(a).await?, open(b).await?], next: [None, None], key };
        pairs.advance(0).await?;
        pairs.advance(1).await?;
        Ok(pairs)
    }

    /// Next key, with its row in the first and in the second generation; `None` at the end.
    async fn next(&mut self) -> Result<Option<(K, [Option<Row>; 2])>, Error> {
        let order = match (&self.next[0], &self.next[1]) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let mut rows = [None, None];
        let mut key = None;
        for (side, absent) in [(0, Ordering::Greater), (1, Ordering::Less)] {
            if order != absent
                && let Some((own, row)) = self.next[side].take()
            {
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
