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

/// Starts an app with open sign-up and self-service billing, and an API process.
pub(crate) async fn open() -> Result<(TestApp, Api)> {
    let app = TestApp::builder().env("SIGN_UP", "open").env("BILLING", "self_service").start().await?;
    let api = app.api_serve().await?;
    Ok((app, api))
}
