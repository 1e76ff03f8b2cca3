//! Tests of the dashboard and the public pages in a real browser: user workflows, accessibility, and page layout.
//!
//! If Chromium or its driver is not installed, these tests are recorded as skipped.

mod journey;
mod market;
mod pages;
mod phone;
mod reference;

use anyhow::{Result, ensure};
use harness::{Browser, BrowserOptions};

use crate::api_world::World;
use crate::market_pages::PUBLIC;

const PASSWORD: &str = "correct horse battery";
const CALL: &str = "/v1/stocks?limit=1";

/// A running service with a small test market, and a browser. The pages of the market are public.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) browser: Browser,
}

impl Stage {
    async fn set(options: BrowserOptions) -> Result<Option<Self>> {
        let world = World::start_with(&PUBLIC).await?;
        let browser = Browser::start(world.app.folder(), options).await?;
        Ok(browser.map(|browser| Self { world, browser }))
    }

    pub(crate) async fn open(&self, path: &str) -> Result<()> {
        self.browser.open(&format!("{}{path}", self.world.api.base_url)).await
    }

    /// Opens the landing page when its example is ready: pages are served before, without an example.
    pub(crate) async fn open_with_example(&self) -> Result<()> {
        harness::eventually(std::time::Duration::from_secs(300), async || {
            self.open("/").await?;
            ensure!(self.browser.has(".example .answer").await?, "no example yet");
            Ok(())
        })
        .await
    }

    pub(crate) async fn path(&self) -> Result<String> {
        let url = self.browser.url().await?;
        Ok(url.strip_prefix(&self.world.api.base_url).unwrap_or(&url).to_owned())
    }

    pub(crate) async fn sign_up(&self, email: &str) -> Result<()> {
        self.open("/sign-up").await?;
        self.browser.fill("#email", email).await?;
        self.browser.fill("#new-password", PASSWORD).await?;
        self.browser.click("main button[type=submit]").await
    }

    pub(crate) async fn create_key(&self, name: &str) -> Result<String> {
        self.browser.fill("#name", name).await?;
        self.browser.click("form[action='/dashboard/keys'] button[type=submit]").await?;
        self.browser.text("#secret").await
    }

    pub(crate) async fn status(&self, key: &str) -> Result<u16> {
        Ok(self.world.api.get(CALL, Some(key)).await?.status.as_u16())
    }
}
