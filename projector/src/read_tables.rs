//! Writing a generation's read tables: a security's rows are removed and copied in, whole.
//!
//! Prices are the exception in how, not in what: a year whose bytes did not change is not written again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use schema::bars::{Bars, BarsError, Packed};
use schema::db::{DbError, copy_rows, copy_values};
use schema::identity::Identity;
use schema::measure::Derived;
use schema::measure::fund::Fund;
use schema::measure::sector::{Member, sector_rows};
use schema::row::{Json, NextDividend, NextStatus, Quarantined, TableRow};
use schema::symbol::Symbol;
use schema::value::Exact;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Transaction};

use crate::derive::DeriveError;

const DELETE: &str = include_str!("../queries/read_delete.sql");
const DELETE_PRICES: &str = include_str!("../queries/prices_delete.sql");
const DELETE_YEARS: &str = include_str!("../queries/prices_delete_years.sql");
const DIGESTS: &str = include_str!("../queries/prices_digests.sql");
const IDENTITIES: &str = include_str!("../queries/identities.sql");
const SECTOR_MEMBERS: &str = include_str!("../queries/sector_members.sql");
const DELETE_SYMBOLS: &str = include_str!("../queries/symbols_delete.sql");

/// Runs a file of statements that all take the symbols as their parameter.
async fn execute_each(
    transaction: &Transaction<'_>,
    statements: &str,
    symbols: &[&str],
) -> Result<(), DbError> {
    for statement in statements.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        transaction.execute(statement, &[&symbols]).await?;
    }
    Ok(())
}

/// Removes every row of securities that no longer exist.
pub async fn remove(transaction: &Transaction<'_>, symbols: &[&str]) -> Result<(), DbError> {
    if symbols.is_empty() {
        return Ok(());
    }
    execute_each(transaction, DELETE, symbols).await?;
    transaction.execute(DELETE_PRICES, &[&symbols]).await?;
    Ok(())
}

/// Replaces the rows of a chunk of securities by what was derived.
pub async fn replace(
    transaction: &Transaction<'_>,
    identities: &[&Identity],
    built: &[Built],
) -> Result<(), DeriveError> {
    let derived: Vec<&Derived> = built.iter().map(|built| &built.derived).collect();
    let derived = derived.as_slice();
    let symbols: Vec<&str> = identities.iter().map(|identity| identity.symbol.as_str()).collect();
    execute_each(transaction, DELETE, &symbols).await?;
    copy(transaction, "stocks", derived.iter().map(|d| &d.stock)).await?;
    copy(transaction, "quotes", derived.iter().map(|d| &d.quote)).await?;
    copy(transaction, "fundamentals", derived.iter().filter_map(|d| d.fundamentals.as_ref())).await?;
    copy(transaction, "metrics", derived.iter().map(|d| &d.metrics)).await?;
    copy(transaction, "dividends", derived.iter().flat_map(|d| &d.dividends)).await?;
    copy(transaction, "splits", derived.iter().flat_map(|d| &d.splits)).await?;
    copy::<Quarantined>(transaction, "quarantine", derived.iter().flat_map(|d| &d.quarantined)).await?;
    let funds = || built.iter().filter_map(|built| built.fund.as_ref());
    copy(transaction, "etfs", funds().map(|fund| &fund.etf)).await?;
    copy(transaction, "holdings", funds().flat_map(|fund| &fund.holdings)).await?;
    copy_identities(transaction, identities).await?;
    copy_factors(transaction, derived).await?;
    replace_prices(transaction, &symbols, built).await
}

async fn copy<'a, T: TableRow + 'a>(
    transaction: &Transaction<'_>,
    table: &str,
    rows: impl Iterator<Item = &'a T>,
) -> Result<(), DbError> {
    let statement = format!("copy {table} ({}) from stdin binary", T::COLUMNS.join(", "));
    copy_rows(transaction, &statement, rows).await?;
    Ok(())
}

async fn copy_identities(transaction: &Transaction<'_>, identities: &[&Identity]) -> Result<(), DbError> {
    let values: Vec<(&str, Json<&Identity>)> =
        identities.iter().map(|i| (i.symbol.as_str(), Json(*i))).collect();
    let tuples = values.iter().map(|(symbol, identity)| {
        let tuple: Vec<&(dyn ToSql + Sync)> = vec![symbol, identity];
        tuple
    });
    copy_values(
        transaction,
        "copy identities (symbol, identity) from stdin binary",
        &[Type::TEXT, Type::JSON],
        tuples,
    )
    .await?;
    Ok(())
}

async fn copy_factors(transaction: &Transaction<'_>, derived: &[&Derived]) -> Result<(), DbError> {
    let values: Vec<(&str, Json<&[schema::measure::Factor]>)> =
        derived.iter().map(|d| (d.stock.symbol.as_str(), Json(d.factors.as_slice()))).collect();
    let tuples = values.iter().map(|(symbol, factors)| {
        let tuple: Vec<&(dyn ToSql + Sync)> = vec![symbol, factors];
        tuple
    });
    copy_values(
        transaction,
        "copy factors (symbol, factors) from stdin binary",
        &[Type::TEXT, Type::JSON],
        tuples,
    )
    .await?;
    Ok(())
}

/// One security, ready to be written.
pub struct Built {
    derived: Derived,
    fund: Option<Fund>,
    years: Vec<Year>,
}

/// One packed year on its way to the table.
struct Year {
    year: i32,
    digest: i64,
    packed: Packed,
}

impl Built {
    /// Packs the security's prices, which are needed in no other form from here on.
    pub fn of(mut derived: Derived, fund: Option<Fund>) -> Result<Self, BarsError> {
        let years = std::mem::take(&mut derived.bars).by_year().into_iter();
        let years = years.map(|(year, bars)| Year::of(year, bars)).collect::<Result<_, _>>()?;
        Ok(Self { derived, fund, years })
    }
}

impl Year {
    fn of(year: i32, mut bars: Bars) -> Result<Self, BarsError> {
        bars.canonicalize();
        let packed = Packed { versions: Vec::new(), ..bars.pack()? };
        Ok(Self { year, digest: digest(&packed), packed })
    }
}

async fn replace_prices(
    transaction: &Transaction<'_>,
    symbols: &[&str],
    built: &[Built],
) -> Result<(), DeriveError> {
    let years: Vec<(&str, &Year)> = built
        .iter()
        .flat_map(|built| built.years.iter().map(|year| (built.derived.stock.symbol.as_str(), year)))
        .collect();
    let mut stored: HashMap<(String, i32), i64> = HashMap::new();
    for row in transaction.query(DIGESTS, &[&symbols]).await? {
        stored.insert((row.try_get("symbol")?, row.try_get("year")?), row.try_get("digest")?);
    }
    let mut written = Vec::new();
    for (symbol, year) in years {
        if stored.remove(&(symbol.to_owned(), year.year)) != Some(year.digest) {
            written.push((symbol, year));
        }
    }
    // Years to be replaced, and years that are no longer there.
    let stale = written
        .iter()
        .map(|(symbol, year)| (*symbol, year.year))
        .chain(stored.keys().map(|(symbol, year)| (symbol.as_str(), *year)));
    let (stale_symbols, stale_years): (Vec<&str>, Vec<i32>) = stale.unzip();
    transaction.execute(DELETE_YEARS, &[&stale_symbols, &stale_years]).await?;
    let tuples = written.iter().map(|(symbol, y)| {
        let p = &y.packed;
        let tuple: Vec<&(dyn ToSql + Sync)> =
            vec![symbol, &y.year, &y.digest, &p.days, &p.close, &p.range, &p.volume, &p.extra];
        tuple
    });
    let types =
        [Type::TEXT, Type::INT4, Type::INT8, Type::BYTEA, Type::BYTEA, Type::BYTEA, Type::BYTEA, Type::BYTEA];
    let statement = "copy prices (symbol, year, digest, days, close, range, volume, extra) from stdin binary";
    copy_values(transaction, statement, &types, tuples).await?;
    Ok(())
}

/// 64 bits that tell one year's bytes from another's.
fn digest(packed: &Packed) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for column in [&packed.days, &packed.close, &packed.range, &packed.volume, &packed.extra] {
        hasher.update(&(column.len() as u64).to_le_bytes()).update(column);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}

/// Replaces the statistics of every sector, from the rows of its members.
pub async fn replace_sectors(transaction: &Transaction<'_>, as_of: NaiveDate) -> Result<(), DeriveError> {
    let members = transaction.query(SECTOR_MEMBERS, &[]).await?;
    let members: Vec<Member> = members.iter().map(member).collect::<Result<_, tokio_postgres::Error>>()?;
    transaction.execute("delete from sectors", &[]).await?;
    copy(transaction, "sectors", sector_rows(&members, as_of).iter()).await?;
    Ok(())
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

/// Points every spelling of the touched securities to their canonical symbol.
pub async fn replace_symbols(
    transaction: &Transaction<'_>,
    symbols: &BTreeMap<Symbol, Symbol>,
    touched: &BTreeSet<Symbol>,
) -> Result<(), DbError> {
    let entries: Vec<(&str, &str)> = symbols
        .iter()
        .filter(|(_, canonical)| touched.contains(*canonical))
        .map(|(s, c)| (s.as_str(), c.as_str()))
        .collect();
    let spellings: Vec<&str> = entries.iter().map(|(symbol, _)| *symbol).collect();
    let canonicals: Vec<&str> = touched.iter().map(Symbol::as_str).collect();
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
    Ok(())
}
