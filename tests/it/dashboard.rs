//! The account dashboard as a browser without scripts sees it: what a person can do, and what nobody can.

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

/// An app whose dashboard is open to everybody, and one process that serves it.
pub(crate) async fn open() -> Result<(TestApp, Api)> {
    let app = TestApp::builder().env("SIGN_UP", "open").env("BILLING", "self_service").start().await?;
    let api = app.api_serve().await?;
    Ok((app, api))
}
