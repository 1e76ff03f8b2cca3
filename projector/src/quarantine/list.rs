//! `projector quarantine list`: quarantined rows of the served generation.

use market::row::{Quarantined, TableRow};
use store::FromRow;
use telemetry::out;
use tokio_postgres::Client;

use super::args::ListQuarantineArgs;
use crate::generation::{Generation, begin_snapshot};
use crate::report::lists;

const LIST: &str = include_str!("../../queries/quarantine_list.sql");
const CANONICAL: &str = include_str!("../../queries/symbols_canonical.sql");

/// Prints the rows as text, CSV or JSON.
pub(super) async fn print_quarantine(client: &mut Client, args: &ListQuarantineArgs) -> anyhow::Result<()> {
    let rows = load_quarantined(client, args).await?;
    if args.csv {
        return print_csv(&rows);
    }
    lists::print_quarantine(&rows, &args.output)
}

async fn load_quarantined(
    client: &mut Client,
    args: &ListQuarantineArgs,
) -> anyhow::Result<Vec<Quarantined>> {
    let transaction = begin_snapshot(client).await?;
    Generation::load_served(&transaction).await?;
    let symbol = match &args.symbol {
        Some(symbol) => {
            let row = transaction.query_opt(CANONICAL, &[&symbol.as_str()]).await?;
            let Some(row) = row else { anyhow::bail!("security {symbol} does not exist") };
            Some(row.try_get::<_, String>(0)?)
        }
        None => None,
    };
    let reason = args.reason.map(|reason| reason.as_str());
    let rows = transaction.query(LIST, &[&symbol, &reason]).await?;
    Ok(rows.iter().map(Quarantined::from_row).collect::<Result<_, _>>()?)
}

fn print_csv(rows: &[Quarantined]) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if rows.is_empty() {
        writer.write_record(Quarantined::COLUMNS)?;
    }
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    out!("{}", String::from_utf8(writer.into_inner()?)?);
    Ok(())
}
