//! Feeds that a test writes itself.

use std::fs;

use anyhow::{Context, Result};

use crate::app::TestApp;

/// A feed file in the making: its text, and how it is loaded.
#[derive(Debug)]
#[must_use = "a feed is in the log once it is loaded"]
pub struct Feed<'a> {
    app: &'a TestApp,
    name: &'a str,
    text: String,
    source: &'a str,
    today: &'a str,
}

impl TestApp {
    /// A feed named `name` in this app's folder, from source `test` and loaded on 2024-06-30 unless it says otherwise.
    pub fn feed<'a>(&'a self, name: &'a str, text: impl Into<String>) -> Feed<'a> {
        Feed { app: self, name, text: text.into(), source: "test", today: "2024-06-30" }
    }
}

impl<'a> Feed<'a> {
    /// The source that its rows come from.
    pub fn source(mut self, source: &'a str) -> Self {
        self.source = source;
        self
    }

    /// The day on which it is loaded.
    pub fn today(mut self, today: &'a str) -> Self {
        self.today = today;
        self
    }

    /// Loads it into the log; an error names the file.
    pub async fn load(self) -> Result<()> {
        let path = self.app.folder().join(self.name);
        fs::write(&path, &self.text).with_context(|| format!("writing {}", path.display()))?;
        let path = path.display().to_string();
        let loaded =
            self.app.ingest(&["load", &path, "--source", self.source, "--today", self.today]).await?;
        loaded.success().with_context(|| format!("loading {}", self.name))?;
        Ok(())
    }

    /// Loads it, and applies everything that is in the log.
    pub async fn apply(self) -> Result<()> {
        let app = self.app;
        self.load().await?;
        app.catch_up().await
    }
}
