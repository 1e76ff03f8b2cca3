//! A security's rows, encoded for COPY, each with what tells it from what is served.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use chrono::Datelike;
use market::bars::{Bars, digest};
use market::identity::Identity;
use market::measure::Derived;
use market::measure::fund::Fund;
use market::measure::sector::Member;
use market::row::{DividendRow, Json};
use market::symbol::Symbol;
use serde::Serialize;
use store::copy::{CopyRow, EncodeError, encode_rows, encode_values};
use store::years::PricesRow;
use tokio_postgres::types::Type;

use crate::error::DeriveError;
use crate::write::fingerprints::{Marks, Served};
use crate::write::table::{DIVIDENDS, FACTORS, IDENTITIES, TABLES, Table};

/// One security, ready to be written.
pub(crate) struct Built {
    pub(crate) symbol: Symbol,
    /// Its rows of each table.
    pub(crate) tables: [Rows; TABLES.len()],
    /// Its dividends, year by year of the ex-date, where any of them are others.
    dividends: BTreeMap<i32, Bytes>,
    marks: Marks,
    /// What its sector's statistics take of it; `None` where it has no row.
    pub(crate) member: Option<Member>,
    pub(crate) years: Vec<Year>,
    /// Years of prices that stay as they are served.
    kept: Vec<i32>,
}

/// Encoded rows, unless they are those that are served, and what tells them from others.
pub(crate) struct Rows {
    pub(crate) encoded: Bytes,
    pub(crate) digest: i64,
}

impl Rows {
    fn of(encoded: Bytes) -> Self {
        Self { digest: digest([encoded.as_ref()]), encoded }
    }

    /// Those that are served under this digest, which need no encoding; without one they are encoded.
    fn unless(
        served: Option<i64>,
        encode: impl FnOnce() -> Result<Bytes, EncodeError>,
    ) -> Result<Self, EncodeError> {
        match served {
            Some(digest) => Ok(Self { digest, encoded: Bytes::new() }),
            None => encode().map(Self::of),
        }
    }
}

/// One packed year of prices, encoded.
pub(crate) struct Year {
    pub(crate) year: i32,
    pub(crate) digest: i64,
    pub(crate) encoded: Bytes,
}

impl Built {
    /// Encodes what was derived of a security, with the marks of its dividends, but for what is served already; `kept`
    /// years of prices stay as they are.
    pub(crate) fn of(
        identity: &Identity,
        (derived, dividends): (&Derived, BTreeMap<i32, u64>),
        fund: Option<&Fund>,
        mut kept: Vec<i32>,
        served: &Served,
    ) -> Result<Self, DeriveError> {
        let symbol = identity.symbol.clone();
        let read: Vec<(i32, Range<usize>)> =
            derived.bars.years().into_iter().filter(|(year, _)| !kept.contains(year)).collect();
        let marks = Marks::of(identity, derived, dividends, &read);
        let mut years = Vec::new();
        for (year, range) in read {
            if served.has_year(year, marks.years.get(&year)) {
                kept.push(year);
            } else {
                years.push(Year::of(symbol.as_str(), year, derived.bars.slice(range))?);
            }
        }
        let kept_if = |table, same: fn(&Marks, &Marks) -> bool| {
            served.marks.as_ref().filter(|before| same(before, &marks)).and_then(|_| served.digest(table))
        };
        let mut dividends = BTreeMap::new();
        let of_dividends = Rows::unless(served.dividends(&marks.dividends), || {
            dividends = by_year(&derived.dividends)?;
            Ok(concatenated(dividends.values()))
        })?;
        let of_identity = Rows::unless(kept_if(IDENTITIES, |a, b| a.identity == b.identity), || {
            encode_json(symbol.as_str(), identity)
        })?;
        let of_factors = Rows::unless(kept_if(FACTORS, |a, b| a.factors == b.factors), || {
            encode_json(symbol.as_str(), &derived.factors)
        })?;
        let tables = [
            Rows::of(encode_rows([&derived.stock])?),
            Rows::of(encode_rows([&derived.quote])?),
            Rows::of(encode_rows(&derived.fundamentals)?),
            Rows::of(encode_rows([&derived.metrics])?),
            of_dividends,
            Rows::of(encode_rows(&derived.splits)?),
            Rows::of(encode_rows(&derived.quarantined)?),
            Rows::of(encode_rows(fund.map(|fund| &fund.etf))?),
            Rows::of(encode_rows(fund.iter().flat_map(|fund| &fund.holdings))?),
            of_identity,
            of_factors,
        ];
        let member = Some(Member::of(&derived.stock, Some(&derived.metrics)));
        Ok(Self { symbol, tables, dividends, marks, member, years, kept })
    }

    /// A symbol of which no row stands: nothing of it is served.
    pub(crate) fn unlisted(identity: &Identity) -> Self {
        let tables = std::array::from_fn(|_| Rows::of(Bytes::new()));
        let (dividends, marks, member, years, kept) = Default::default();
        Self { symbol: identity.symbol.clone(), tables, dividends, marks, member, years, kept }
    }

    /// Its rows of a table; of dividends those from a year on.
    pub(crate) fn rows(&self, place: usize, since: Option<i32>) -> Vec<Bytes> {
        match since {
            Some(year) => self.dividends.range(year..).map(|(_, rows)| rows.clone()).collect(),
            None => vec![self.tables[place].encoded.clone()],
        }
    }

    /// The first year from which on a table's rows are to be written again, where the years are told apart; `None`: all of
    /// its rows are.
    pub(crate) fn differs_since(&self, table: &Table, served: &Served) -> Option<i32> {
        if table.name != DIVIDENDS {
            return None;
        }
        let (served, built) = (&served.marks.as_ref()?.dividends, &self.marks.dividends);
        let differs = |year: &&i32| served.get(*year) != built.get(*year);
        served.keys().chain(built.keys()).filter(differs).min().copied()
    }

    pub(crate) fn digests(&self) -> Vec<i64> {
        self.tables.iter().map(|rows| rows.digest).collect()
    }

    /// What is served once this is written, in place of what was served before.
    pub(crate) fn into_served(self, before: &Served) -> Result<Served, DeriveError> {
        let (tables, years) = (self.digests(), self.served_years(before)?);
        Ok(Served { is_new: false, tables, years, marks: Some(self.marks) })
    }

    pub(crate) fn served_years(&self, before: &Served) -> Result<BTreeMap<i32, i64>, DeriveError> {
        let kept = |year: &i32| match before.years.get(year) {
            Some(digest) => Ok((*year, *digest)),
            None => Err(DeriveError::Moved { symbol: self.symbol.clone(), year: *year }),
        };
        let mut years: BTreeMap<i32, i64> = self.kept.iter().map(kept).collect::<Result<_, _>>()?;
        years.extend(self.years.iter().map(|year| (year.year, year.digest)));
        Ok(years)
    }
}

fn by_year(dividends: &[DividendRow]) -> Result<BTreeMap<i32, Bytes>, EncodeError> {
    let years = dividends.chunk_by(|row, next| row.ex_date.year() == next.ex_date.year());
    years.map(|rows| Ok((rows[0].ex_date.year(), encode_rows(rows)?))).collect()
}

fn concatenated<'a>(rows: impl Iterator<Item = &'a Bytes>) -> Bytes {
    rows.map(Bytes::as_ref).collect::<Vec<&[u8]>>().concat().into()
}

fn encode_json<T: Serialize + Sync + std::fmt::Debug>(symbol: &str, value: &T) -> Result<Bytes, EncodeError> {
    let mut out = BytesMut::new();
    encode_values(&[Type::TEXT, Type::JSON], &[&symbol, &Json(value)], &mut out)?;
    Ok(out.freeze())
}

impl Year {
    fn of(symbol: &str, year: i32, mut bars: Bars) -> Result<Self, DeriveError> {
        bars.canonicalize();
        let packed = bars.pack()?;
        let digest = packed.digest();
        let row = PricesRow::of(symbol, year, digest, &packed);
        let mut out = BytesMut::new();
        encode_values(PricesRow::TYPES, &row.values(), &mut out)?;
        Ok(Self { year, digest, encoded: out.freeze() })
    }
}
