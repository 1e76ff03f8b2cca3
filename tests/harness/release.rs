//! Release number of a server program, read from its output for `--version`.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Major and minor number of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release(pub(crate) u32, pub(crate) u32);

impl Release {
    pub(crate) fn of(program: &Path) -> Result<Release> {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .with_context(|| format!("running {} --version", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Release::parse(&text).with_context(|| format!("{} printed no version: {text}", program.display()))
    }

    /// Parses the first release number in a text, such as `nats-server: v2.10.3` or `postgres (PostgreSQL) 15.14
    /// (Debian 15.14-0)`.
    pub(crate) fn parse(text: &str) -> Option<Release> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Some(Release(major, minor))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}
