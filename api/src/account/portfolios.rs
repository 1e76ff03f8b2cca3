//! Saved portfolios of an account.

use chrono::{DateTime, Utc};
use serde_json::json;
use store::{FromRow, sql_row};
use tokio_postgres::Client;

use super::actor::AccountActor;
use super::error::AccountError;
use super::key_name::parse_name;
use crate::auth::ids::AccountId;
use crate::parameters::parse_holdings;

const LIST: &str = include_str!("../../queries/accounts/list_portfolios.sql");
const FIND: &str = include_str!("../../queries/accounts/find_portfolio.sql");
const SAVE: &str = include_str!("../../queries/accounts/save_portfolio.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_portfolio.sql");
/// Maximum number of portfolios of an account.
const MOST: i64 = 20;

sql_row! {
    /// Saved holdings.
    #[derive(Debug, Clone)]
    pub(crate) struct Portfolio {
        /// Name of 1 to 64 characters, unique in the account.
        pub(crate) name: String,
        /// Value of the API's parameter `holdings`.
        pub(crate) holdings: String,
        /// Number of changes after the first save.
        pub(crate) edits: i64,
        pub(crate) saved_at: DateTime<Utc>,
    }
}

/// Lists the portfolios of an account, ordered by name.
pub(crate) async fn list_portfolios(
    client: &Client,
    account_id: AccountId,
) -> Result<Vec<Portfolio>, AccountError> {
    let rows = client.query(LIST, &[&account_id]).await?;
    Ok(rows.iter().map(Portfolio::from_row).collect::<Result<_, _>>()?)
}

/// Finds the portfolio with this name; `None` if it does not exist.
pub(crate) async fn find_portfolio(
    client: &Client,
    account_id: AccountId,
    name: &str,
) -> Result<Option<Portfolio>, AccountError> {
    let row = client.query_opt(FIND, &[&account_id, &name]).await?;
    Ok(row.as_ref().map(Portfolio::from_row).transpose()?)
}

/// Saves holdings under a name. A portfolio of this name is replaced.
pub(crate) async fn save_portfolio(
    client: &mut Client,
    actor: AccountActor<'_>,
    name: &str,
    holdings: &str,
) -> Result<(), AccountError> {
    let name = parse_name("save the portfolio", name)?;
    let refused = |cause: String| AccountError::Refused(format!("cannot save the portfolio: {cause}"));
    let parsed = parse_holdings(holdings).map_err(|error| refused(format!("it {error}")))?;
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    if transaction.execute(SAVE, &[&account.id, &name, &holdings, &MOST]).await? == 0 {
        return Err(refused(format!("an account can have at most {MOST}; delete one first")));
    }
    let details = json!({ "name": name, "holdings": parsed.holdings.len() });
    account.record(&transaction, "portfolio.save", details).await?;
    Ok(transaction.commit().await?)
}

/// Deletes the portfolio with this name, if there is one.
pub(crate) async fn delete_portfolio(
    client: &mut Client,
    actor: AccountActor<'_>,
    name: &str,
) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    if transaction.execute(DELETE, &[&account.id, &name]).await? > 0 {
        account.record(&transaction, "portfolio.delete", json!({ "name": name })).await?;
    }
    Ok(transaction.commit().await?)
}
