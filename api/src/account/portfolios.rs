//! Saved portfolios of an account.

use chrono::{DateTime, Utc};
use serde_json::json;
use store::{find_rows, sql_row};
use tokio_postgres::Client;

use super::audit::{AccountActor, AccountError, Result, find_row};
use super::names::parse_name;
use crate::auth::AccountId;
use crate::parameters::parse_holdings;

const LIST: &str = include_str!("../../queries/accounts/list_portfolios.sql");
const FIND: &str = include_str!("../../queries/accounts/find_portfolio.sql");
const SAVE: &str = include_str!("../../queries/accounts/save_portfolio.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_portfolio.sql");
/// Maximum number of portfolios of an account.
const MOST: i64 = 20;
/// Maximum size of saved transactions, in bytes: about 4,000 transactions.
pub(crate) const MAX_TRANSACTION_BYTES: usize = 128 * 1024;

/// Content of a portfolio that is saved.
pub(crate) enum PortfolioContent {
    /// Holdings in the format of the API's parameter `holdings`.
    Holdings(String),
    /// Transactions as CSV, with their number.
    Transactions { csv: String, count: usize },
}

sql_row! {
    /// Saved holdings or transactions.
    #[derive(Clone)]
    pub(crate) struct Portfolio {
        /// Name of 1 to 64 characters, unique in the account.
        pub(crate) name: String,
        /// Holdings in the format of the API's parameter `holdings`; empty with transactions.
        pub(crate) holdings: String,
        /// Transactions as CSV, in the format of `POST /v1/portfolio/dividends`; empty with holdings.
        pub(crate) transactions: String,
        /// Number of changes after the first save.
        pub(crate) edits: i64,
        pub(crate) saved_at: DateTime<Utc>,
    }
}

/// Lists the portfolios of an account, ordered by name.
pub(crate) async fn list_portfolios(client: &Client, account_id: AccountId) -> Result<Vec<Portfolio>> {
    Ok(find_rows(client, LIST, &[&account_id]).await?)
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

/// Saves holdings or transactions under a name. If the account already has a portfolio with this name, replaces its
/// content.
pub(crate) async fn save_portfolio(
    client: &mut Client,
    actor: AccountActor<'_>,
    name: &str,
    content: &PortfolioContent,
) -> Result<()> {
    let name = parse_name("save the portfolio", name)?;
    let refused = |cause: String| AccountError::Refused(format!("cannot save the portfolio: {cause}"));
    let (holdings, transactions, details) = match content {
        PortfolioContent::Holdings(holdings) => {
            let parsed = parse_holdings(holdings).map_err(|error| refused(format!("it {error}")))?;
            (holdings.as_str(), "", json!({ "name": name, "holdings": parsed.holdings.len() }))
        }
        PortfolioContent::Transactions { csv, .. } if csv.len() > MAX_TRANSACTION_BYTES => {
            let most = MAX_TRANSACTION_BYTES / 1024;
            return Err(refused(format!("its transactions are longer than {most} KiB")));
        }
        PortfolioContent::Transactions { csv, count } => {
            ("", csv.as_str(), json!({ "name": name, "transactions": count }))
        }
    };
    let account = actor.begin(client).await?;
    if account.transaction.execute(SAVE, &[&account.id, &name, &holdings, &transactions, &MOST]).await? == 0 {
        return Err(refused(format!("an account can have at most {MOST}; delete one first")));
    }
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
