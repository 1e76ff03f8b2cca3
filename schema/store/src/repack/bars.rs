//! Bars and prices of databases made before their columns were written in blocks are packed again.
//!
//! In one transaction for each fact set and each generation, so a migration that is interrupted has changed nothing of it and
//! is made again. Bars and the prices that are served of them get equal digests again, so no year is derived anew for this.

use market::bars::Packed;
use tokio_postgres::{Client, Row, Transaction};

use crate::analysts;
use crate::copy::copy_into;
use crate::error::{DbError, RepackError};
use crate::facts::packed;
use crate::years::{BarsRow, PricesRow};

const FACT_SETS: &str = "select name from control.fact_sets where packed_form < 2";
const GENERATIONS: &str = "select id from control.generations where packed_form < 2";
const FACT_SET_DONE: &str = "update control.fact_sets set packed_form = 2 where name = $1";
const GENERATION_DONE: &str = "update control.generations set packed_form = 2 where id = $1";
const BARS: &str = include_str!("../../queries/bars_older.sql");
const PRICES: &str = include_str!("../../queries/prices_older.sql");
/// Years read at a time.
const FETCH: &str = "fetch 5000 from older_years";

/// Packs the bars of every fact set and the prices of every generation that have the older form. `schema_of` names the
/// schema of a generation.
pub(crate) async fn pack_bars(client: &mut Client, schema_of: fn(i32) -> String) -> Result<(), DbError> {
    for row in client.query(FACT_SETS, &[]).await? {
        let fact_set: &str = row.try_get(0)?;
        tracing::info!(fact_set, "packing the bars of an older program; this is done once");
        let transaction = enter(client, fact_set).await?;
        transaction.batch_execute(BARS).await?;
        while let Some(rows) = next(&transaction).await? {
            bars(&transaction, &rows).await?;
        }
        transaction.execute(FACT_SET_DONE, &[&fact_set]).await?;
        transaction.commit().await?;
    }
    for row in client.query(GENERATIONS, &[]).await? {
        let id: i32 = row.try_get(0)?;
        tracing::info!(generation = id, "packing the prices of an older program; this is done once");
        let transaction = enter(client, &schema_of(id)).await?;
        transaction.batch_execute(PRICES).await?;
        while let Some(rows) = next(&transaction).await? {
            prices(&transaction, &rows).await?;
        }
        analysts::unpack(&transaction).await?;
        transaction.execute(GENERATION_DONE, &[&id]).await?;
        transaction.commit().await?;
    }
    Ok(())
}

async fn enter<'a>(client: &'a mut Client, schema: &str) -> Result<Transaction<'a>, DbError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute("set local role dds_projector").await?;
    transaction.execute("select set_config('search_path', $1, true)", &[&schema]).await?;
    Ok(transaction)
}

async fn next(transaction: &Transaction<'_>) -> Result<Option<Vec<Row>>, DbError> {
    let rows = transaction.query(FETCH, &[]).await?;
    Ok((!rows.is_empty()).then_some(rows))
}

async fn bars(transaction: &Transaction<'_>, rows: &[Row]) -> Result<(), DbError> {
    let years: Vec<Again> = rows.iter().map(Again::of).collect::<Result<_, _>>()?;
    let written = rows.iter().zip(&years).map(|(row, year)| {
        let (source, last_day) = (row.try_get("source")?, row.try_get("last_day")?);
        Ok(BarsRow::of(&year.symbol, source, year.year, last_day, year.packed.digest(), &year.packed))
    });
    copy_into(transaction, &written.collect::<Result<Vec<_>, tokio_postgres::Error>>()?).await?;
    Ok(())
}

async fn prices(transaction: &Transaction<'_>, rows: &[Row]) -> Result<(), DbError> {
    let years: Vec<Again> = rows.iter().map(Again::of).collect::<Result<_, _>>()?;
    let written =
        years.iter().map(|year| PricesRow::of(&year.symbol, year.year, year.packed.digest(), &year.packed));
    copy_into(transaction, &written.collect::<Vec<_>>()).await?;
    Ok(())
}

/// A year in the form of today.
struct Again {
    symbol: String,
    year: i32,
    packed: Packed,
}

impl Again {
    fn of(row: &Row) -> Result<Self, DbError> {
        let symbol: String = row.try_get("symbol")?;
        let bars = packed(row)?.unpack();
        let again = bars.and_then(|bars| bars.pack());
        let packed = again.map_err(|source| RepackError::Bars { symbol: symbol.clone(), source })?;
        Ok(Self { symbol, year: row.try_get("year")?, packed })
    }
}
