//! Tests of the account dashboard in a simulated browser without scripts: actions of account holders, and attacks.

mod account;
mod keys;
mod plans;
mod security;
mod sign_in;
mod sign_in_floods;
mod site;
mod usage_statistics;
pub(crate) mod visitor;

use anyhow::Result;
use harness::{Api, TestApp};

/// Starts an app with open sign-up, self-service billing and a database of the accounts, and an API process.
pub(crate) async fn open() -> Result<(TestApp, Api)> {
    let app = TestApp::builder().separate_accounts().env("SIGN_UP", "open").env("BILLING", "self_service");
    let app = app.start().await?;
    let api = app.api_serve().await?;
    Ok((app, api))
}
