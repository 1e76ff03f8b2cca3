//! Writing a generation's read tables: a security's rows of a table are removed and copied in, whole, unless they are
//! the ones that are there; its dividends from the first year on that differs.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use chrono::{Datelike, NaiveDate};
use market::bars::{Bars, Packed, digest};
use market::identity::Identity;
use market::measure::Derived;
use market::measure::fund::Fund;
use market::row::{
    DividendRow, EtfRow, FundamentalsRow, HoldingRow, Json, Metrics, Quarantined, Quote, SplitRow, Stock,
    TableRow,
};
use market::symbol::Symbol;
use serde::Serialize;
use store::copy::{EncodeError, copy_encoded, copy_values, encode_rows, encode_values};
use store::db::{DbError, generation_schema};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use crate::changes::Change;
use crate::error::DeriveError;
use crate::journal::Journal;
use crate::served::Served;
use crate::stale::Stale;

const DELETE_PRICES: &str = include_str!("../queries/prices_delete.sql");
const DELETE_YEARS: &str = include_str!("../queries/prices_delete_years.sql");
const DIFFERING: &str = include_str!("../queries/digests_differing.sql");
const DELETE_SINCE: &str = include_str!("../queries/delete_since.sql");
const DELETE_DIGESTS: &str = "delete from digests where symbol = any ($1)";
const COPY_DIGESTS: &str = "copy digests (symbol, tables) from stdin binary";
const COPY_PRICES: &str =
    "copy prices (symbol, year, digest, days, close, range, volume, extra) from stdin binary";
const IDENTITIES: &str = include_str!("../queries/identities.sql");
const SYMBOLS: &str = include_str!("../queries/symbols_of.sql");
const DELETE_SYMBOLS: &str = include_str!("../queries/symbols_delete.sql");

/// A table that has rows of each security.
struct Table {
    name: &'static str,
    /// The column that says whose row it is.
    owner: &'static str,
    columns: &'static [&'static str],
}

const fn table(name: &'static str, columns: &'static [&'static str]) -> Table {
    Table { name, owner: "symbol", columns }
}

/// In this order a security's digests are kept.
const TABLES: [Table; 11] = [
    table("stocks", Stock::COLUMNS),
    table("quotes", Quote::COLUMNS),
    table("fundamentals", FundamentalsRow::COLUMNS),
    table("metrics", Metrics::COLUMNS),
    table("dividends", DividendRow::COLUMNS),
    table("splits", SplitRow::COLUMNS),
    table("quarantine", Quarantined::COLUMNS),
    table("etfs", EtfRow::COLUMNS),
    Table { owner: "etf_symbol", ..table("holdings", HoldingRow::COLUMNS) },
    table("identities", &["symbol", "identity"]),
    table("factors", &["symbol", "factors"]),
];

/// Where dividends stand among them.
const DIVIDENDS: usize = 4;

/// Where the digest of a table's rows stands among a security's digests.
pub fn digest_place(table: &str) -> Option<usize> {
    TABLES.iter().position(|known| known.name == table)
}

impl Table {
    async fn delete(&self, transaction: &Transaction<'_>, stale: &Stale<'_>) -> Result<(), DbError> {
        if let Some(since) = stale.since {
            let statement = DELETE_SINCE.replace("{table}", self.name);
            transaction.execute(&statement, &[&stale.symbols, &since]).await?;
        } else {
            let statement = format!("delete from {} where {} = any ($1)", self.name, self.owner);
            transaction.execute(&statement, &[&stale.symbols]).await?;
        }
        Ok(())
    }

    async fn copy(&self, transaction: &Transaction<'_>, rows: Vec<Bytes>) -> Result<(), DbError> {
        let statement = format!("copy {} ({}) from stdin binary", self.name, self.columns.join(", "));
        copy_encoded(transaction, &statement, rows.into_iter().map(Ok)).await?;
        Ok(())
    }
}

/// One security, ready to be written.
pub struct Built {
    symbol: Symbol,
    /// Its rows of each table.
    tables: [Rows; TABLES.len()],
    /// Its dividends, year by year of the ex-date.
    dividends: BTreeMap<i32, Rows>,
    years: Vec<Year>,
    /// Years of prices that stay as they are served.
    kept: Vec<i32>,
}

/// Encoded rows, and what tells them from others.
struct Rows {
    encoded: Bytes,
    digest: i64,
}

impl Rows {
    fn of(encoded: Bytes) -> Self {
        Self { digest: digest([encoded.as_ref()]), encoded }
    }
}

/// One packed year of prices, encoded.
struct Year {
    year: i32,
    digest: i64,
    encoded: Bytes,
}

impl Built {
    /// Encodes what was derived of a security; `kept` years of prices stay as they are served.
    pub fn of(
        identity: &Identity,
        derived: &Derived,
        fund: Option<&Fund>,
        kept: Vec<i32>,
    ) -> Result<Self, DeriveError> {
        let symbol = identity.symbol.clone();
        let years = derived.bars.years().into_iter().filter(|(year, _)| !kept.contains(year));
        let years = years
            .map(|(year, range)| Year::of(symbol.as_str(), year, derived.bars.slice(range)))
            .collect::<Result<_, _>>()?;
        let of_year = |rows: &[DividendRow]| Ok((rows[0].ex_date.year(), Rows::of(encode_rows(rows)?)));
        let dividends = derived.dividends.chunk_by(|row, next| row.ex_date.year() == next.ex_date.year());
        let dividends = dividends.map(of_year).collect::<Result<BTreeMap<i32, Rows>, EncodeError>>()?;
        let tables = [
            encode_rows([&derived.stock])?,
            encode_rows([&derived.quote])?,
            encode_rows(&derived.fundamentals)?,
            encode_rows([&derived.metrics])?,
            concatenated(dividends.values()),
            encode_rows(&derived.splits)?,
            encode_rows(&derived.quarantined)?,
            encode_rows(fund.map(|fund| &fund.etf))?,
            encode_rows(fund.iter().flat_map(|fund| &fund.holdings))?,
            encode_json(symbol.as_str(), identity)?,
            encode_json(symbol.as_str(), &derived.factors)?,
        ];
        Ok(Self { symbol, tables: tables.map(Rows::of), dividends, years, kept })
    }

    /// A symbol of which no row stands: nothing of it is served.
    pub fn unlisted(identity: &Identity) -> Self {
        let tables = std::array::from_fn(|_| Rows::of(Bytes::new()));
        let (dividends, years, kept) = Default::default();
        Self { symbol: identity.symbol.clone(), tables, dividends, years, kept }
    }

    /// Its rows of a table; of dividends those from a year on.
    fn rows(&self, place: usize, since: Option<i32>) -> Vec<Bytes> {
        match since {
            Some(year) => self.dividends.range(year..).map(|(_, rows)| rows.encoded.clone()).collect(),
            None => vec![self.tables[place].encoded.clone()],
        }
    }

    /// The first year whose dividends are not those that are served; `None` when it is not known what is served, or all
    /// are the same.
    fn differs_since(&self, served: &Served) -> Option<i32> {
        let (served, built) = (served.dividends.as_ref()?, self.dividend_years());
        let differs = |year: &&i32| served.get(*year) != built.get(*year);
        served.keys().chain(built.keys()).filter(differs).min().copied()
    }

    fn dividend_years(&self) -> BTreeMap<i32, i64> {
        self.dividends.iter().map(|(year, rows)| (*year, rows.digest)).collect()
    }

    fn digests(&self) -> Vec<i64> {
        self.tables.iter().map(|rows| rows.digest).collect()
    }

    /// What is served once this is written, in place of what was served before.
    pub fn served(&self, before: &Served) -> Result<Served, DeriveError> {
        let (tables, years) = (self.digests(), self.served_years(before)?);
        Ok(Served { tables, years, dividends: Some(self.dividend_years()) })
    }

    fn served_years(&self, before: &Served) -> Result<BTreeMap<i32, i64>, DeriveError> {
        let kept = |year: &i32| match before.years.get(year) {
            Some(digest) => Ok((*year, *digest)),
            None => Err(DeriveError::Moved { symbol: self.symbol.clone(), year: *year }),
        };
        let mut years: BTreeMap<i32, i64> = self.kept.iter().map(kept).collect::<Result<_, _>>()?;
        years.extend(self.years.iter().map(|year| (year.year, year.digest)));
        Ok(years)
    }
}

fn concatenated<'a>(rows: impl Iterator<Item = &'a Rows>) -> Bytes {
    rows.flat_map(|rows| rows.encoded.iter().copied()).collect()
}

fn encode_json<T: Serialize + Sync + std::fmt::Debug>(symbol: &str, value: &T) -> Result<Bytes, EncodeError> {
    let mut out = BytesMut::new();
    encode_values(&[Type::TEXT, Type::JSON], &[&symbol, &Json(value)], &mut out)?;
    Ok(out.freeze())
}

impl Year {
    fn of(symbol: &str, year: i32, mut bars: Bars) -> Result<Self, DeriveError> {
        const TYPES: [Type; 8] = [
            Type::TEXT,
            Type::INT4,
            Type::INT8,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
        ];
        bars.canonicalize();
        let packed = bars.pack()?;
        let digest = packed.digest();
        let Packed { days, close, range, volume, extra, .. } = packed;
        let mut out = BytesMut::new();
        let values: [&(dyn ToSql + Sync); 8] =
            [&symbol, &year, &digest, &days, &close, &range, &volume, &extra];
        encode_values(&TYPES, &values, &mut out)?;
        Ok(Self { year, digest, encoded: out.freeze() })
    }
}

/// Removes every row of securities that no longer exist.
pub async fn remove(
    transaction: &Transaction<'_>,
    journal: &Journal,
    gone: &[&Symbol],
) -> Result<Vec<Change>, DbError> {
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let stale = Stale::whole(gone.iter().map(|symbol| symbol.as_str()));
    for table in &TABLES {
        journal.keep(transaction, table.name, &stale).await?;
        table.delete(transaction, &stale).await?;
        journal.note(transaction, table.name, &stale).await?;
    }
    transaction.execute(DELETE_DIGESTS, &[&stale.symbols]).await?;
    transaction.execute(DELETE_PRICES, &[&stale.symbols]).await?;
    let tables = TABLES.iter().map(|table| table.name).chain(["prices"]);
    Ok(tables.flat_map(|table| gone.iter().map(move |symbol| Change::of_table(table, symbol))).collect())
}

/// Replaces the rows of a chunk of securities, of which the digests say what is served, by what was derived, where they
/// differ, and gives what changed.
pub async fn replace(
    transaction: &Transaction<'_>,
    journal: &Journal,
    securities: &[(&Served, &Built)],
) -> Result<Vec<Change>, DeriveError> {
    let mut changes = Vec::new();
    for (place, table) in TABLES.iter().enumerate() {
        let differs = |(served, built): &&(&Served, &Built)| {
            served.tables.get(place) != Some(&built.tables[place].digest)
        };
        let changed: Vec<&(&Served, &Built)> = securities.iter().filter(differs).collect();
        if !changed.is_empty() {
            // Rows that were never there and are not there now are no change.
            let seen = changed.iter().filter(|(served, built)| {
                served.tables.get(place).is_some() || !built.tables[place].encoded.is_empty()
            });
            changes.extend(seen.map(|(_, built)| Change::of_table(table.name, &built.symbol)));
            let (mut whole, mut later) = (Vec::new(), Vec::new());
            for (served, built) in changed {
                match built.differs_since(served).filter(|_| place == DIVIDENDS) {
                    Some(year) => later.push((year, *built)),
                    None => whole.push(*built),
                }
            }
            // One date for all is a plan that looks each security up.
            let since = later.iter().map(|(year, _)| *year).min();
            let later = later.into_iter().map(|(_, built)| built).collect();
            for (since, securities) in [(None, whole), (since, later)] {
                replace_rows(transaction, journal, place, since, &securities).await?;
            }
        }
    }
    replace_digests(transaction, securities).await?;
    changes.extend(replace_prices(transaction, securities).await?);
    Ok(changes)
}

/// Replaces rows of a table, of dividends those from a year on.
async fn replace_rows(
    transaction: &Transaction<'_>,
    journal: &Journal,
    place: usize,
    since: Option<i32>,
    securities: &[&Built],
) -> Result<(), DeriveError> {
    if securities.is_empty() {
        return Ok(());
    }
    let table = &TABLES[place];
    let stale = Stale {
        symbols: securities.iter().map(|built| built.symbol.as_str()).collect(),
        since: since.and_then(|year| NaiveDate::from_ymd_opt(year, 1, 1)),
    };
    journal.keep(transaction, table.name, &stale).await?;
    table.delete(transaction, &stale).await?;
    table.copy(transaction, securities.iter().flat_map(|built| built.rows(place, since)).collect()).await?;
    journal.note(transaction, table.name, &stale).await?;
    Ok(())
}

async fn replace_digests(
    transaction: &Transaction<'_>,
    securities: &[(&Served, &Built)],
) -> Result<(), DeriveError> {
    let news = securities.iter().map(|(served, built)| (*served, built.symbol.as_str(), built.digests()));
    let news: Vec<(&Served, &str, Vec<i64>)> =
        news.filter(|(served, _, digests)| served.tables != *digests).collect();
    if news.is_empty() {
        return Ok(());
    }
    let owners = news.iter().filter(|(served, ..)| !served.tables.is_empty());
    let owners: Vec<&str> = owners.map(|(_, symbol, _)| *symbol).collect();
    transaction.execute(DELETE_DIGESTS, &[&owners]).await?;
    let tuples = news.iter().map(|(_, symbol, digests)| {
        let tuple: Vec<&(dyn ToSql + Sync)> = vec![symbol, digests];
        tuple
    });
    copy_values(transaction, COPY_DIGESTS, &[Type::TEXT, Type::INT8_ARRAY], tuples).await?;
    Ok(())
}

async fn replace_prices(
    transaction: &Transaction<'_>,
    securities: &[(&Served, &Built)],
) -> Result<Vec<Change>, DeriveError> {
    let (mut stale_symbols, mut stale_years, mut written) = (Vec::new(), Vec::new(), Vec::new());
    let mut changes = Vec::new();
    for (served, built) in securities {
        let after = built.served_years(served)?;
        for year in &built.years {
            if served.years.get(&year.year) != Some(&year.digest) {
                changes.push(Change::of_year(&built.symbol, year.year));
                written.push(Ok(year.encoded.clone()));
            }
        }
        // Years that are others now, or no longer there.
        for (year, digest) in &served.years {
            if after.get(year) != Some(digest) {
                stale_symbols.push(built.symbol.as_str());
                stale_years.push(*year);
            }
            if !after.contains_key(year) {
                changes.push(Change::of_year(&built.symbol, *year));
            }
        }
    }
    if !stale_symbols.is_empty() {
        transaction.execute(DELETE_YEARS, &[&stale_symbols, &stale_years]).await?;
    }
    if !written.is_empty() {
        copy_encoded(transaction, COPY_PRICES, written).await?;
    }
    Ok(changes)
}

/// The securities whose rows of a table are not the ones they have in another generation.
pub async fn differing(
    transaction: &Transaction<'_>,
    before: i32,
    table: &str,
) -> Result<Vec<String>, DbError> {
    // Arrays begin with 1 in SQL.
    let place = (1i32..).zip(&TABLES).find(|(_, known)| known.name == table).map(|(place, _)| place);
    let statement = DIFFERING.replace("{before}", &generation_schema(before));
    let rows = transaction.query(&statement, &[&place]).await?;
    rows.iter().map(|row| Ok(row.try_get("symbol")?)).collect()
}

/// The identities the read tables were last derived with.
pub async fn identities(transaction: &Transaction<'_>) -> Result<BTreeMap<Symbol, Identity>, DeriveError> {
    let rows = transaction.query(IDENTITIES, &[]).await?;
    rows.iter()
        .map(|row| {
            let Json(identity): Json<Identity> = row.try_get("identity")?;
            Ok((identity.symbol.clone(), identity))
        })
        .collect()
}

/// Points every spelling of the touched securities to their canonical symbol, but for those that are not listed, and gives
/// the securities whose spellings are others now.
pub async fn replace_symbols(
    transaction: &Transaction<'_>,
    symbols: &BTreeMap<Symbol, Symbol>,
    touched: &BTreeSet<Symbol>,
    unlisted: impl Fn(&Symbol) -> bool,
) -> Result<Vec<Change>, DeriveError> {
    let listed = |canonical: &Symbol| touched.contains(canonical) && !unlisted(canonical);
    let entries = symbols.iter().filter(|(_, canonical)| listed(canonical));
    let entries: BTreeSet<(&str, &str)> = entries.map(|(s, c)| (s.as_str(), c.as_str())).collect();
    let spellings: Vec<&str> = entries.iter().map(|(symbol, _)| *symbol).collect();
    let canonicals: Vec<&str> = touched.iter().map(Symbol::as_str).collect();
    let rows = transaction.query(SYMBOLS, &[&spellings, &canonicals]).await?;
    let stored: BTreeSet<(&str, &str)> = rows
        .iter()
        .map(|row| Ok((row.try_get("symbol")?, row.try_get("canonical")?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    let changed: BTreeSet<&str> = stored.symmetric_difference(&entries).map(|(_, of)| *of).collect();
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    transaction.execute(DELETE_SYMBOLS, &[&spellings, &canonicals]).await?;
    let tuples = entries.iter().map(|(symbol, canonical)| {
        let tuple: Vec<&(dyn ToSql + Sync)> = vec![symbol, canonical];
        tuple
    });
    copy_values(
        transaction,
        "copy symbols (symbol, canonical) from stdin binary",
        &[Type::TEXT, Type::TEXT],
        tuples,
    )
    .await?;
    let change = |canonical: &str| {
        let symbol = canonical.parse().map_err(|_| DeriveError::Symbol(canonical.to_owned()))?;
        Ok(Change::of_table("symbols", &symbol))
    };
    changed.into_iter().map(change).collect()
}
