//! Feed files that a test writes and then loads into the event log.

use std::fs;

use anyhow::{Context, Result};

use crate::app::TestApp;

/// Feed file of a test: its text, and the options with which it is loaded.
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
    /// Prepares a feed file with the name `name` in the folder of this app. The default source is `test`, and the
    /// default load date is 2024-06-30.
    pub fn feed<'a>(&'a self, name: &'a str, text: impl Into<String>) -> Feed<'a> {
        Feed { app: self, name, text: text.into(), source: "test", today: "2024-06-30" }
    }
}

impl<'a> Feed<'a> {
    /// Sets the source of the feed.
    pub fn source(mut self, source: &'a str) -> Self {
        self.source = source;
        self
    }

    /// Sets the date that the load uses as the current date.
    pub fn today(mut self, today: &'a str) -> Self {
        self.today = today;
        self
    }

    /// Writes the file and loads it into the event log. If the load fails, the error contains the name of the file.
    pub async fn load(self) -> Result<()> {
        let path = self.app.folder().join(self.name);
        fs::write(&path, &self.text).with_context(|| format!("writing {}", path.display()))?;
        let path = path.display().to_string();
        let loaded =
            self.app.ingest(&["load", &path, "--source", self.source, "--today", self.today]).await?;
        loaded.success().with_context(|| format!("loading {}", self.name))?;
        Ok(())
    }

    /// Loads the feed into the event log, and then runs the projector until it has applied the whole log.
    pub async fn apply(self) -> Result<()> {
        let app = self.app;
        self.load().await?;
        app.catch_up().await
    }
}
