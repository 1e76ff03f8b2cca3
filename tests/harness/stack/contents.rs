//! Record of the feeds that the stack has loaded. This record and the options determine which feeds a start loads.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::StackOptions;
use super::folder::StackFolder;

const FILE: &str = "contents.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoadPlan {
    Nothing,
    /// Generated market of this size, and its revisions.
    Demo {
        symbols: u32,
        years: u32,
    },
    Feeds {
        paths: Vec<PathBuf>,
        source: String,
        fingerprint: String,
    },
}

/// Record in the data folder. It is also written before a load, because an interrupted load may have added rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Contents {
    Demo { complete: bool },
    Feeds { loaded: BTreeSet<String> },
}

impl LoadPlan {
    pub(super) fn make(options: &StackOptions, folder: &StackFolder) -> Result<LoadPlan> {
        let contents: Option<Contents> = folder.read_json(FILE);
        if options.empty {
            return Ok(LoadPlan::Nothing);
        }
        if options.feeds.is_empty() {
            return Ok(match contents {
                None | Some(Contents::Demo { complete: false }) => {
                    LoadPlan::Demo { symbols: options.symbols, years: options.years }
                }
                Some(_) => LoadPlan::Nothing,
            });
        }
        let mut paths = Vec::new();
        for feed in &options.feeds {
            paths.push(feed.canonicalize().with_context(|| format!("no feed at {}", feed.display()))?);
        }
        let fingerprint = fingerprint(&paths, &options.source)?;
        match contents {
            Some(Contents::Demo { .. }) => {
                bail!("this stack holds the demo market; add --fresh to load your feeds instead of it")
            }
            Some(Contents::Feeds { loaded }) if loaded.contains(&fingerprint) => Ok(LoadPlan::Nothing),
            _ => Ok(LoadPlan::Feeds { paths, source: options.source.clone(), fingerprint }),
        }
    }

    /// Records that the load begins. Returns the record of the earlier loads.
    pub(super) fn begun(&self, folder: &StackFolder) -> Result<EarlierContents> {
        let earlier = EarlierContents(folder.read_json(FILE));
        self.remember(folder, false)?;
        Ok(earlier)
    }

    pub(super) fn done(&self, folder: &StackFolder) -> Result<()> {
        self.remember(folder, true)
    }

    fn remember(&self, folder: &StackFolder, complete: bool) -> Result<()> {
        let contents = match self {
            LoadPlan::Nothing => return Ok(()),
            LoadPlan::Demo { .. } => Contents::Demo { complete },
            LoadPlan::Feeds { fingerprint, .. } => {
                let mut loaded = match folder.read_json(FILE) {
                    Some(Contents::Feeds { loaded }) => loaded,
                    _ => BTreeSet::new(),
                };
                if complete {
                    loaded.insert(fingerprint.clone());
                }
                Contents::Feeds { loaded }
            }
        };
        folder.write_json(FILE, &contents)
    }
}

#[derive(Debug)]
pub(super) struct EarlierContents(Option<Contents>);

impl EarlierContents {
    /// Writes this record back to the data folder. The stack does this after a load that added no rows to the log.
    pub(super) fn restore(&self, folder: &StackFolder) -> Result<()> {
        match &self.0 {
            Some(contents) => folder.write_json(FILE, contents),
            None => folder.remove(&[FILE]),
        }
    }
}

/// Hash of the source name and of the path, size and modification time of every feed file. The contents of the files
/// are not hashed, because reading gigabytes would slow down a second start.
fn fingerprint(paths: &[PathBuf], source: &str) -> Result<String> {
    let mut hash = Sha256::new_with_prefix(source);
    for path in paths {
        add(&mut hash, path)?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn add(hash: &mut Sha256, path: &Path) -> Result<()> {
    let metadata = fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
    hash.update(path.as_os_str().as_encoded_bytes());
    if metadata.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)?.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        return entries.iter().try_for_each(|entry| add(hash, entry));
    }
    hash.update(format!("{} {}.{}\n", metadata.len(), metadata.mtime(), metadata.mtime_nsec()));
    Ok(())
}
