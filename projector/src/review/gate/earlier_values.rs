//! Values that the gate measured for earlier loads. They show how often a limit would have held a load.

use std::collections::BTreeMap;

use market::decimal::ExactDecimal;
use market::event::Kind;
use market::expectation::{Expectation, ExpectationCheck};
use rust_decimal::Decimal;
use store::{FromRow, sql_row};
use tokio_postgres::{Client, Transaction};

const EARLIER: &str = include_str!("../../../queries/gate/earlier_values.sql");
const STORE: &str = include_str!("../../../queries/gate/store_values.sql");

sql_row! {
    #[derive(Debug)]
    struct ValueRow {
        kind: Kind,
        expectation: Expectation,
        value: ExactDecimal,
    }
}

/// Values of the loads of one source that were measured in the 90 days before a load.
pub(super) struct EarlierValues(BTreeMap<(Kind, Expectation), Vec<Decimal>>);

impl EarlierValues {
    pub(super) async fn load(transaction: &Transaction<'_>, source: &str, run: &str) -> anyhow::Result<Self> {
        let mut values = BTreeMap::<_, Vec<Decimal>>::new();
        for row in transaction.query(EARLIER, &[&source, &run]).await? {
            let ValueRow { kind, expectation, value } = ValueRow::from_row(&row)?;
            values.entry((kind, expectation)).or_default().push(value.0);
        }
        Ok(Self(values))
    }

    pub(super) fn get(&self, expectation: Expectation, kind: Kind) -> &[Decimal] {
        self.0.get(&(kind, expectation)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Stores the values of a run. Values of an earlier comparison of the run stay instead.
pub(super) async fn store_values(
    client: &Client,
    [run, source]: [&str; 2],
    checks: &[ExpectationCheck],
) -> anyhow::Result<()> {
    let kinds: Vec<&str> = checks.iter().map(|check| check.kind.as_str()).collect();
    let expectations: Vec<&str> = checks.iter().map(|check| check.expectation.as_str()).collect();
    let values: Vec<ExactDecimal> = checks.iter().map(|check| check.value).collect();
    client.execute(STORE, &[&run, &source, &kinds, &expectations, &values]).await?;
    Ok(())
}
