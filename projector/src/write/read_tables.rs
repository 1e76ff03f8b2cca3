//! Functions that write derived rows to the read tables. A change usually replaces all rows of the security in the
//! table. Dividends and prices can keep the rows of unchanged years.

use std::collections::{BTreeMap, BTreeSet};

use bytes::BytesMut;
use chrono::NaiveDate;
use market::identity::{Identity, SecurityDirectory};
use market::row::JsonColumn;
use market::symbol::Symbol;
use store::copy::{CopyRow, copy_values, encode_values};
use store::db::{DbError, generation_schema};
use store::ids::GenerationId;
use store::rows::PricesRow;
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use crate::error::DeriveError;
use crate::write::encoded_security::{EncodedSecurity, NOTHING};
use crate::write::fingerprints::{PublishedFingerprints, have_rows};
use crate::write::journal::{Journal, RenamedSymbols};
use crate::write::{
    JOURNALED_VALUES, PreparedStatements, ReadTable, ReplacedRows, STATUSES, TABLES, digest_index,
};

const DELETE_PRICES: &str = include_str!("../../queries/prices_delete.sql");
const DELETE_YEARS: &str = include_str!("../../queries/prices_delete_years.sql");
const DIFFERING: &str = include_str!("../../queries/digests_differing.sql");
const WITH_DIGESTS: &str = "select symbol from digests where symbol = any ($1)";
const DELETE_DIGESTS: &str = "delete from digests where symbol = any ($1)";
const COPY_DIGESTS: &str = "copy digests (symbol, tables) from stdin binary";
const IDENTITIES: &str = include_str!("../../queries/identities.sql");
const SYMBOLS: &str = include_str!("../../queries/symbols_of.sql");
const COPY_SYMBOLS: &str = "copy symbols (symbol, canonical) from stdin binary";
const DELETE_SYMBOLS: &str = include_str!("../../queries/symbols_delete.sql");

/// Update of one security: the fingerprints of its published rows, and its new rows.
type SecurityUpdate<'a> = (&'a PublishedFingerprints, &'a EncodedSecurity);

/// Deletes all rows of the securities in `gone`, which do not exist anymore. Returns the number of changes.
pub(crate) async fn delete_securities(
    statements: &PreparedStatements<'_>,
    journal: &Journal,
    gone: &[&Symbol],
) -> Result<usize, DbError> {
    // A security with rows has digests. The others have nothing to delete.
    let gone: Vec<&str> = gone.iter().map(|symbol| symbol.as_str()).collect();
    let rows = statements.query(WITH_DIGESTS, &[&gone]).await?;
    let gone: Vec<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    if gone.is_empty() {
        return Ok(0);
    }
    let replaced = ReplacedRows::all_rows(gone.iter().copied());
    for table in &TABLES {
        journal.save_rows(statements, table.name, &replaced).await?;
        table.delete(statements, &replaced).await?;
        journal.record_changes(statements, table.name, &replaced).await?;
    }
    for value in JOURNALED_VALUES {
        journal.record_symbols(statements, value, &replaced.symbols).await?;
    }
    statements.execute(DELETE_DIGESTS, &[&replaced.symbols]).await?;
    statements.execute(DELETE_PRICES, &[&replaced.symbols]).await?;
    // Each deleted security counts as one change per read table, and one more for its prices.
    Ok((TABLES.len() + 1) * gone.len())
}

/// Replaces the changed rows of some securities. Returns the number of changes. Each changed table of a security counts
/// as one change. Each changed year of its prices counts as one too.
pub(crate) async fn replace_securities(
    statements: &PreparedStatements<'_>,
    journal: &Journal,
    securities: &[SecurityUpdate<'_>],
) -> Result<usize, DeriveError> {
    let mut changes = 0;
    let has_other_status = |(served, built): &&SecurityUpdate<'_>| {
        served.digest(STATUSES).is_some_and(|status| built.digest_of_value(STATUSES) != Some(status))
    };
    let statuses = securities.iter().filter(has_other_status).map(|(_, built)| built.symbol.as_str());
    journal.save_statuses(statements, "", &statuses.collect::<Vec<_>>()).await?;
    for (place, table) in TABLES.iter().enumerate() {
        // A security that was never written has no stored digest, and no rows.
        let differs = |(served, built): &&SecurityUpdate<'_>| match served.tables.get(place) {
            Some(digest) => *digest != built.tables[place].digest,
            None => !built.tables[place].encoded.is_empty(),
        };
        let changed: Vec<&SecurityUpdate<'_>> = securities.iter().filter(differs).collect();
        changes += changed.len();
        for (since, securities) in split_by_first_year(table, &changed) {
            replace_rows(statements, journal, place, since, &securities).await?;
        }
    }
    for (index, value) in JOURNALED_VALUES.into_iter().enumerate() {
        let changed = securities.iter().filter(|(served, built)| {
            let nothing = codec::digest([NOTHING]);
            served.digest(value).unwrap_or(nothing) != built.values[index]
        });
        let symbols: Vec<&str> = changed.map(|(_, built)| built.symbol.as_str()).collect();
        journal.record_symbols(statements, value, &symbols).await?;
    }
    replace_digests(statements, securities).await?;
    Ok(changes + replace_prices(statements, securities).await?)
}

/// Groups the securities by the rows to replace: all rows (`None`), or the rows from one common first year on.
fn split_by_first_year<'a>(
    table: &ReadTable,
    changed: &[&SecurityUpdate<'a>],
) -> [(Option<i32>, Vec<SecurityUpdate<'a>>); 2] {
    let (mut whole, mut later, mut since) = (Vec::new(), Vec::new(), None);
    for (served, built) in changed {
        match built.first_differing_year(table, served) {
            Some(year) => {
                since = Some(since.map_or(year, |since: i32| since.min(year)));
                later.push((*served, *built));
            }
            None => whole.push((*served, *built)),
        }
    }
    [(None, whole), (since, later)]
}

/// Replaces the rows of some securities in the table `TABLES[place]`. If `since` has a year, only dividend rows with an
/// ex-date in this year or later are replaced.
async fn replace_rows(
    statements: &PreparedStatements<'_>,
    journal: &Journal,
    place: usize,
    since: Option<i32>,
    securities: &[SecurityUpdate<'_>],
) -> Result<(), DeriveError> {
    if securities.is_empty() {
        return Ok(());
    }
    let table = &TABLES[place];
    let written = ReplacedRows {
        symbols: securities.iter().map(|(_, built)| built.symbol.as_str()).collect(),
        since: since.and_then(|year| NaiveDate::from_ymd_opt(year, 1, 1)),
    };
    // A security of a new generation has no rows to delete.
    let before = securities.iter().filter(|(served, _)| !served.is_new);
    let replaced =
        ReplacedRows { symbols: before.map(|(_, built)| built.symbol.as_str()).collect(), ..written };
    journal.save_rows(statements, table.name, &replaced).await?;
    table.delete(statements, &replaced).await?;
    table
        .copy(statements, securities.iter().flat_map(|(_, built)| built.rows(place, since)).collect())
        .await?;
    journal.record_changes(statements, table.name, &written).await?;
    Ok(())
}

/// Replaces the stored digests of some securities. A security without any row has none.
async fn replace_digests(
    statements: &PreparedStatements<'_>,
    securities: &[SecurityUpdate<'_>],
) -> Result<(), DeriveError> {
    let news = securities.iter().map(|(served, built)| (*served, built.symbol.as_str(), built.digests()));
    let news: Vec<(&PublishedFingerprints, &str, Vec<i64>)> =
        news.filter(|(served, _, digests)| served.tables != *digests).collect();
    if news.is_empty() {
        return Ok(());
    }
    let owners = news.iter().filter(|(served, ..)| !served.tables.is_empty());
    let owners: Vec<&str> = owners.map(|(_, symbol, _)| *symbol).collect();
    if !owners.is_empty() {
        statements.execute(DELETE_DIGESTS, &[&owners]).await?;
    }
    let rows = news.iter().filter(|(_, _, digests)| have_rows(digests)).map(|(_, symbol, digests)| {
        let mut row = BytesMut::new();
        encode_values(&[Type::TEXT, Type::INT8_ARRAY], &[symbol, digests], &mut row)?;
        Ok(row.freeze())
    });
    statements.copy(COPY_DIGESTS, rows).await?;
    Ok(())
}

/// Replaces the changed years of prices. Returns the number of written and removed years.
async fn replace_prices(
    statements: &PreparedStatements<'_>,
    securities: &[SecurityUpdate<'_>],
) -> Result<usize, DeriveError> {
    let (mut stale_symbols, mut stale_years, mut written) = (Vec::new(), Vec::new(), Vec::new());
    let mut removed = 0;
    for (served, built) in securities {
        let after = built.published_years(served)?;
        for year in &built.years {
            if served.years.get(&year.year) != Some(&year.digest) {
                written.push(Ok(year.encoded.clone()));
            }
        }
        // Delete the years that changed or were removed.
        for (year, digest) in &served.years {
            if after.get(year) != Some(digest) {
                stale_symbols.push(built.symbol.as_str());
                stale_years.push(*year);
            }
            removed += usize::from(!after.contains_key(year));
        }
    }
    if !stale_symbols.is_empty() {
        statements.execute(DELETE_YEARS, &[&stale_symbols, &stale_years]).await?;
    }
    let changes = written.len() + removed;
    if !written.is_empty() {
        statements.copy(PricesRow::STATEMENT, written).await?;
    }
    Ok(changes)
}

/// Compares two generations: `before`, and the generation first in the search path. Returns the securities whose rows
/// in `table` differ. `table` can also name a journaled value.
pub async fn find_differing(
    transaction: &Transaction<'_>,
    before: GenerationId,
    table: &str,
) -> Result<Vec<String>, DbError> {
    // SQL arrays start at 1.
    let place = digest_index(table).and_then(|index| i32::try_from(index + 1).ok());
    let statement = DIFFERING.replace("{before}", &generation_schema(before));
    let rows = transaction.query(&statement, &[&place]).await?;
    rows.iter().map(|row| Ok(row.try_get("symbol")?)).collect()
}

/// Loads the identities of all published securities, by canonical symbol.
pub async fn load_identities(
    transaction: &Transaction<'_>,
) -> Result<BTreeMap<Symbol, Identity>, DeriveError> {
    let rows = transaction.query(IDENTITIES, &[]).await?;
    rows.iter()
        .map(|row| {
            let JsonColumn(identity): JsonColumn<Identity> = row.try_get("identity")?;
            Ok((identity.symbol.clone(), identity))
        })
        .collect()
}

/// Replaces the rows of the securities in `touched` in the table `symbols`: their symbols and their other addresses.
/// Deletes the rows of unlisted securities. Returns the number of securities with changed rows.
pub(crate) async fn replace_symbols(
    statements: &PreparedStatements<'_>,
    journal: &Journal,
    directory: &SecurityDirectory,
    touched: &BTreeSet<Symbol>,
    unlisted: impl Fn(&Symbol) -> bool,
) -> Result<usize, DeriveError> {
    let listed = |canonical: &Symbol| touched.contains(canonical) && !unlisted(canonical);
    let mut symbols: BTreeMap<&Symbol, Vec<&str>> = BTreeMap::new();
    for (symbol, canonical) in directory.symbols.iter().filter(|(_, canonical)| listed(canonical)) {
        symbols.entry(canonical).or_default().push(symbol.as_str());
    }
    let mut addresses: Vec<(String, &str)> = Vec::new();
    for (canonical, symbols) in &symbols {
        let keys = directory.address_keys(canonical, symbols.iter().copied());
        addresses.extend(keys.into_iter().map(|key| (key, canonical.as_str())));
    }
    let names = symbols.iter().flat_map(|(of, symbols)| symbols.iter().map(|symbol| (*symbol, of.as_str())));
    let addresses = addresses.iter().map(|(key, canonical)| (key.as_str(), *canonical));
    let entries: BTreeSet<(&str, &str)> = names.chain(addresses).collect();
    let spellings: Vec<&str> = entries.iter().map(|(symbol, _)| *symbol).collect();
    let canonicals: Vec<&str> = touched.iter().map(Symbol::as_str).collect();
    let rows = statements.query(SYMBOLS, &[&spellings, &canonicals]).await?;
    let stored: BTreeSet<(&str, &str)> = rows
        .iter()
        .map(|row| Ok((row.try_get("symbol")?, row.try_get("canonical")?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    let changed: BTreeSet<&str> = stored.symmetric_difference(&entries).map(|(_, of)| *of).collect();
    if changed.is_empty() {
        return Ok(0);
    }
    statements.execute(DELETE_SYMBOLS, &[&spellings, &canonicals]).await?;
    let tuples =
        entries.iter().map(|(symbol, canonical)| -> Vec<&(dyn ToSql + Sync)> { vec![symbol, canonical] });
    copy_values(statements.transaction, COPY_SYMBOLS, &[Type::TEXT, Type::TEXT], tuples).await?;
    journal.record_renamed(statements, &RenamedSymbols::between(&stored, &entries)).await?;
    Ok(changed.len())
}
