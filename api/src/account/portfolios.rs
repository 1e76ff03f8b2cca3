//! Saved portfolios of an account.

use chrono::{DateTime, Utc};
use serde_json::json;
use store::sql_row;
use tokio_postgres::Client;

use super::audit::AccountActor;
use super::names::parse_name;
use super::query::{AccountError, Result, find_row, find_rows};
use crate::auth::AccountId;
use crate::parameters::{SymbolList, parse_holdings};

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
        /// Holdings in the format of the API's parameter `holdings`.
        pub(crate) holdings: String,
        /// Number of changes after the first save.
        pub(crate) edits: i64,
        pub(crate) saved_at: DateTime<Utc>,
    }
}

impl Portfolio {
    /// Symbols of the holdings.
    pub(crate) fn symbols(&self) -> Result<SymbolList> {
        let parsed = parse_holdings(&self.holdings);
        let unreadable = |error| AccountError::Refused(format!("cannot read the portfolio: it {error}"));
        Ok(parsed.map_err(unreadable)?.symbols)
    }
}

/// Lists the portfolios of an account, ordered by name.
pub(crate) async fn list_portfolios(client: &Client, account_id: AccountId) -> Result<Vec<Portfolio>> {
    find_rows(client, LIST, &[&account_id]).await
}

/// Finds the portfolio with this name; `None` if it does not exist. No portfolio has an invalid name.
pub(crate) async fn find_portfolio(
    client: &Client,
    account_id: AccountId,
    name: &str,
) -> Result<Option<Portfolio>> {
    let Ok(name) = parse_name("find the portfolio", name) else { return Ok(None) };
    find_row(client, FIND, &[&account_id, &name]).await
}

/// Saves holdings under a name. If the account already has a portfolio with this name, replaces its holdings.
pub(crate) async fn save_portfolio(
    client: &mut Client,
    actor: AccountActor<'_>,
    name: &str,
    holdings: &str,
) -> Result<()> {
    let name = parse_name("save the portfolio", name)?;
    let refused = |cause: String| AccountError::Refused(format!("cannot save the portfolio: {cause}"));
    let parsed = parse_holdings(holdings).map_err(|error| refused(format!("it {error}")))?;
    let account = actor.begin(client).await?;
    if account.transaction.execute(SAVE, &[&account.id, &name, &holdings, &MOST]).await? == 0 {
        return Err(refused(format!("an account can have at most {MOST}; delete one first")));
    }
    let details = json!({ "name": name, "holdings": parsed.holdings.len() });
    account.record("portfolio.save", details).await?;
    account.commit().await
}

/// Deletes the portfolio with this name, if there is one.
pub(crate) async fn delete_portfolio(client: &mut Client, actor: AccountActor<'_>, name: &str) -> Result<()> {
    let Ok(name) = parse_name("delete the portfolio", name) else { return Ok(()) };
    let account = actor.begin(client).await?;
    if account.transaction.execute(DELETE, &[&account.id, &name]).await? > 0 {
        account.record("portfolio.delete", json!({ "name": name })).await?;
    }
    account.commit().await
}
