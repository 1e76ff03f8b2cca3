//! Rows of one security, encoded for COPY, with digests that show which rows changed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use chrono::Datelike;
use codec::bars::PackedBars;
use codec::digest;
use market::bars::Bars;
use market::identity::Identity;
use market::metrics::DerivedRows;
use market::metrics::dividends::grower_lists::lists_of;
use market::metrics::fund::FundRows;
use market::metrics::revisions::ticker_events;
use market::metrics::sector::SectorMember;
use market::row::{DividendRow, JsonColumn};
use market::symbol::Symbol;
use serde::Serialize;
use store::copy::{CopyRow, EncodeError, encode_rows, encode_values};
use store::rows::PricesRow;
use store::symbol_facts::WholeYear;
use tokio_postgres::types::Type;

use crate::error::DeriveError;
use crate::write::fingerprints::{DerivedHashes, HASHER, PublishedFingerprints};
use crate::write::{DIVIDENDS, JOURNALED_VALUES, PAST_DIVIDENDS, ReadTable, TABLES};

/// Encoded rows of one security, ready to be written to the read tables.
pub(crate) struct EncodedSecurity {
    pub(crate) symbol: Symbol,
    /// Encoded rows of each table, in the order of [`TABLES`].
    pub(crate) tables: [EncodedRows; TABLES.len()],
    /// Digest of each journaled value (such as the dividend status), in the order of [`JOURNALED_VALUES`].
    pub(crate) values: [i64; JOURNALED_VALUES.len()],
    /// Encoded dividend rows, by the year of their ex-dates. Empty if no dividend changed.
    dividends: BTreeMap<i32, Bytes>,
    /// Calendar year before the year of the market date. Dividend rows with an ex-date before this year are called
    /// past.
    recent_year: i32,
    /// Digest of the past dividend rows, which are the rows before `recent_year`; `None` if it is unknown.
    past_dividends: Option<i64>,
    hashes: DerivedHashes,
    /// Figures for the sector statistics; `None` if the security is not listed.
    pub(crate) member: Option<SectorMember>,
    pub(crate) years: Vec<EncodedYear>,
    /// Calendar years with unchanged prices. Their published rows stay as they are.
    unchanged_years: Vec<i32>,
}

/// Encoded rows of one table, with their digest. If the rows are unchanged, `encoded` is empty.
pub(crate) struct EncodedRows {
    pub(crate) encoded: Bytes,
    pub(crate) digest: i64,
}

impl EncodedRows {
    fn new(encoded: Bytes) -> Self {
        Self { digest: digest([encoded.as_ref()]), encoded }
    }
}

/// Encoded prices of one calendar year.
pub(crate) struct EncodedYear {
    pub(crate) year: i32,
    pub(crate) digest: i64,
    pub(crate) encoded: Bytes,
}

/// Years of prices that need not be encoded again.
pub(crate) struct PriceYears<'a> {
    /// Calendar years whose published prices are unchanged.
    pub(crate) unchanged: Vec<i32>,
    /// Stored bars of the calendar years that are published as they are stored.
    pub(crate) stored: BTreeMap<i32, WholeYear<'a>>,
}

impl EncodedSecurity {
    /// Encodes the derived rows of a security, except unchanged ones. `dividends` has a hash for each year of ex-dates.
    pub(crate) fn encode(
        identity: &Identity,
        (derived, dividends): (&DerivedRows, BTreeMap<i32, u64>),
        fund: Option<&FundRows>,
        PriceYears { unchanged: mut unchanged_years, stored }: PriceYears<'_>,
        served: &PublishedFingerprints,
    ) -> Result<Self, DeriveError> {
        let symbol = identity.symbol.clone();
        let mut hashes = DerivedHashes { dividends, prices: BTreeMap::new() };
        let mut years = Vec::new();
        for (year, range) in derived.bars.years() {
            if unchanged_years.contains(&year) {
                continue;
            }
            let encoded;
            let (digest, packed) = match stored.get(&year) {
                Some(WholeYear { digest, packed }) => {
                    debug_assert_eq!(
                        *digest,
                        pack_values(&derived.bars, range)?.digest(),
                        "the stored bars are the published bars"
                    );
                    (*digest, *packed)
                }
                None => {
                    let mut state = HASHER.build_hasher();
                    derived.bars.hash_range(range.clone(), &mut state);
                    let hash = state.finish();
                    hashes.prices.insert(year, hash);
                    if served.are_prices_unchanged(year, hash) {
                        unchanged_years.push(year);
                        continue;
                    }
                    encoded = pack_values(&derived.bars, range)?;
                    (encoded.digest(), &encoded)
                }
            };
            if served.years.get(&year) == Some(&digest) {
                unchanged_years.push(year);
            } else {
                years.push(EncodedYear::from_packed(symbol.as_str(), year, digest, packed)?);
            }
        }
        let unchanged_dividends = served.unchanged_dividends(&hashes.dividends);
        let mut dividends = BTreeMap::new();
        let of_dividends = match unchanged_dividends {
            Some(digest) => EncodedRows { digest, encoded: Bytes::new() },
            None => {
                dividends = encode_dividends(&derived.dividends)?;
                EncodedRows::new(
                    dividends.values().map(Bytes::as_ref).collect::<Vec<&[u8]>>().concat().into(),
                )
            }
        };
        let recent_year = derived.metrics.as_of.year() - 1;
        let past_dividends = match unchanged_dividends {
            Some(_) => served.digest(PAST_DIVIDENDS),
            None => Some(digest_past(&dividends, recent_year)),
        };
        let tables = [
            EncodedRows::new(encode_rows([&derived.stock])?),
            EncodedRows::new(encode_rows([&derived.quote])?),
            EncodedRows::new(encode_rows(&derived.fundamentals)?),
            EncodedRows::new(encode_rows([&derived.metrics])?),
            of_dividends,
            EncodedRows::new(encode_rows(&derived.splits)?),
            EncodedRows::new(encode_rows(&derived.quarantined)?),
            EncodedRows::new(encode_rows(fund.map(|fund| &fund.etf))?),
            EncodedRows::new(encode_rows(fund.iter().flat_map(|fund| &fund.holdings))?),
            EncodedRows::new(encode_json(symbol.as_str(), identity)?),
            EncodedRows::new(encode_json(symbol.as_str(), &derived.factors)?),
        ];
        let values = digest_values(identity, derived)?;
        let member = Some(SectorMember::from_rows(&derived.stock, Some(&derived.metrics)));
        Ok(Self {
            symbol,
            tables,
            values,
            dividends,
            recent_year,
            past_dividends,
            hashes,
            member,
            years,
            unchanged_years,
        })
    }

    /// Returns the encoding of a security that is not listed. It has no rows in any table.
    pub(crate) fn unlisted(identity: &Identity) -> Self {
        let tables = std::array::from_fn(|_| EncodedRows::new(Bytes::new()));
        let (dividends, hashes, member, years, unchanged_years) = Default::default();
        Self {
            symbol: identity.symbol.clone(),
            tables,
            values: [digest([NOTHING]); JOURNALED_VALUES.len()],
            dividends,
            recent_year: 0,
            past_dividends: None,
            hashes,
            member,
            years,
            unchanged_years,
        }
    }

    /// Digest of a journaled value.
    pub(crate) fn digest_of_value(&self, name: &str) -> Option<i64> {
        let index = JOURNALED_VALUES.iter().position(|value| *value == name)?;
        self.values.get(index).copied()
    }

    /// Encoded rows of the table at `table_index`. `first_year` has a value only for the table of dividends. Rows with
    /// an ex-date before this year are then left out.
    pub(crate) fn rows(&self, table_index: usize, first_year: Option<i32>) -> Vec<Bytes> {
        match first_year {
            Some(year) => self.dividends.range(year..).map(|(_, rows)| rows.clone()).collect(),
            None => vec![self.tables[table_index].encoded.clone()],
        }
    }

    /// First year with changed dividends. The rows of this and later years must be replaced. `None` if all rows of the
    /// table must be replaced.
    pub(crate) fn first_differing_year(
        &self,
        table: &ReadTable,
        served: &PublishedFingerprints,
    ) -> Option<i32> {
        if table.name != DIVIDENDS {
            return None;
        }
        // Another process derived the published rows. Only the digest of the past rows is known then.
        let Some(published) = &served.derived else {
            let is_past_unchanged =
                self.past_dividends.is_some() && self.past_dividends == served.digest(PAST_DIVIDENDS);
            return is_past_unchanged.then_some(self.recent_year);
        };
        let (published, derived) = (&published.dividends, &self.hashes.dividends);
        let differs = |year: &&i32| published.get(*year) != derived.get(*year);
        published.keys().chain(derived.keys()).filter(differs).min().copied()
    }

    /// Digests in the order of [`digest_index`](crate::write::digest_index).
    pub(crate) fn digests(&self) -> Vec<i64> {
        self.tables.iter().map(|rows| rows.digest).chain(self.values).chain(self.past_dividends).collect()
    }

    /// Returns the fingerprints of the published rows after this security is written. `before` are the fingerprints of
    /// the rows that were published before the write.
    pub(crate) fn into_fingerprints(
        self,
        before: &PublishedFingerprints,
    ) -> Result<PublishedFingerprints, DeriveError> {
        let (tables, years) = (self.digests(), self.published_years(before)?);
        Ok(PublishedFingerprints { is_new: false, tables, years, derived: Some(self.hashes) })
    }

    pub(crate) fn published_years(
        &self,
        before: &PublishedFingerprints,
    ) -> Result<BTreeMap<i32, i64>, DeriveError> {
        let unchanged_years = |year: &i32| match before.years.get(year) {
            Some(digest) => Ok((*year, *digest)),
            None => Err(DeriveError::ConcurrentChange { symbol: self.symbol.clone(), year: *year }),
        };
        let mut years: BTreeMap<i32, i64> =
            self.unchanged_years.iter().map(unchanged_years).collect::<Result<_, _>>()?;
        years.extend(self.years.iter().map(|year| (year.year, year.digest)));
        Ok(years)
    }
}

/// Bytes whose digest marks the absence of a journaled value, for example of ticker events.
pub(crate) const NOTHING: &[u8] = b"";

/// Computes the digest of each journaled value. If a security has no ticker events or is in no dividend list, the
/// digest is that of [`NOTHING`].
fn digest_values(
    identity: &Identity,
    derived: &DerivedRows,
) -> Result<[i64; JOURNALED_VALUES.len()], DeriveError> {
    let security = identity.security.as_ref().map(|security| &security.record);
    let events = security.map(|record| ticker_events(record, derived.metrics.as_of)).unwrap_or_default();
    let events = if events.is_empty() { vec![] } else { serde_json::to_vec(&events)? };
    let status = derived.metrics.dividend_status.as_str();
    let lists: Vec<&str> =
        lists_of(&derived.stock.listed, &derived.stock.figures).map(|list| list.as_str()).collect();
    Ok([digest([&events]), digest([status.as_bytes()]), digest([lists.join(",").as_bytes()])])
}

fn encode_dividends(dividends: &[DividendRow]) -> Result<BTreeMap<i32, Bytes>, EncodeError> {
    let years = dividends.chunk_by(|row, next| row.ex_date.year() == next.ex_date.year());
    years.map(|rows| Ok((rows[0].ex_date.year(), encode_rows(rows)?))).collect()
}

/// Digest of `recent_year` and of the dividend rows before this year. Digests for different years are therefore
/// different, even if the rows are equal.
fn digest_past(dividends: &BTreeMap<i32, Bytes>, recent_year: i32) -> i64 {
    let rows: Vec<&[u8]> = dividends.range(..recent_year).map(|(_, rows)| rows.as_ref()).collect();
    digest([&recent_year.to_le_bytes(), rows.concat().as_slice()])
}

fn encode_json<T: Serialize + Sync + std::fmt::Debug>(symbol: &str, value: &T) -> Result<Bytes, EncodeError> {
    let mut out = BytesMut::new();
    encode_values(&[Type::TEXT, Type::JSON], &[&symbol, &JsonColumn(value)], &mut out)?;
    Ok(out.freeze())
}

/// Packs the values of some bars in their canonical form, without versions.
fn pack_values(bars: &Bars, range: Range<usize>) -> Result<PackedBars, DeriveError> {
    let mut values = bars.slice_values(range);
    values.canonicalize();
    Ok(PackedBars::pack(&values)?)
}

impl EncodedYear {
    fn from_packed(symbol: &str, year: i32, digest: i64, packed: &PackedBars) -> Result<Self, DeriveError> {
        let row = PricesRow::new(symbol, year, digest, packed);
        let mut out = BytesMut::new();
        encode_values(PricesRow::TYPES, &row.values(), &mut out)?;
        Ok(Self { year, digest, encoded: out.freeze() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_dividends_differ_by_their_rows_and_by_the_first_recent_year() {
        let rows = |text: &'static str| Bytes::from_static(text.as_bytes());
        let dividends = BTreeMap::from([(2020, rows("a")), (2023, rows("b"))]);
        let past = digest_past(&dividends, 2022);
        let with_recent = BTreeMap::from([(2020, rows("a")), (2022, rows("c"))]);
        assert_eq!(past, digest_past(&with_recent, 2022));
        assert_ne!(past, digest_past(&BTreeMap::from([(2020, rows("d"))]), 2022));
        // No row lies between the two years. A later row of 2022 could not be found without the year in the digest.
        assert_ne!(past, digest_past(&dividends, 2023));
    }
}
