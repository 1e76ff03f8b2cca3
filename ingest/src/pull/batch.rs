//! Batch of fetched answers on disk, until their rows are in the log.
//!
//! Invariant: every complete answer is recorded at once. A killed pull therefore loads it without a second request,
//! and rows already in the log are not published twice.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use market::event::Bookmark;
use serde::{Deserialize, Serialize};

use super::plan::Unit;

/// File with the notes of a batch.
const NOTES: &str = "notes.json";
/// Maximum number of answers loaded in one run, and of their bytes.
const MOST_UNITS: usize = 200;
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Part of a batch, with its load mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Rows already in the log are not published again.
    New,
    /// Answers that the vendor replaced. Their rows are published again, even if they equal an older version.
    Replaced,
}

impl Part {
    pub(super) const ALL: [Self; 2] = [Self::New, Self::Replaced];

    fn folder(self) -> &'static str {
        match self {
            Self::New => "files",
            Self::Replaced => "replaced",
        }
    }
}

/// Batch of answers to one request of the manifest.
pub(super) struct Batch {
    folder: PathBuf,
    pub notes: Notes,
    bytes: u64,
}

/// Notes on a batch's answers, stored next to them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Name of the request in the manifest.
    pub request: String,
    /// Options of `ingest load` for the files: observation time, and symbol pattern of the file names.
    pub options: Vec<String>,
    pub answers: Vec<Fetched>,
}

/// Unit that was fetched completely.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fetched {
    pub key: String,
    /// Paths of its pages, relative to the folder of files; empty for an answer without rows.
    pub files: Vec<String>,
    pub bookmark: Bookmark,
    /// True if the vendor replaced an earlier answer.
    #[serde(default)]
    pub replaced: bool,
}

impl Fetched {
    /// Unit whose answer has no rows, or no new ones.
    pub(super) fn without_rows(unit: &Unit, bookmark: Bookmark) -> Self {
        Self { key: unit.key.clone(), files: Vec::new(), bookmark, replaced: false }
    }

    pub(super) fn part(&self) -> Part {
        if self.replaced { Part::Replaced } else { Part::New }
    }
}

impl Batch {
    /// Creates an empty batch in a connector's folder.
    pub(super) fn begin(folder: &Path, request: &str, options: Vec<String>) -> io::Result<Self> {
        let notes = Notes { request: request.to_owned(), options, answers: Vec::new() };
        let batch = Self { folder: folder.join("batch"), notes, bytes: 0 };
        batch.remove()?;
        for part in Part::ALL {
            fs::create_dir_all(batch.files(part))?;
        }
        Ok(batch)
    }

    /// Opens the batch of an earlier pull; `None` if there is no complete one.
    pub(super) fn left(folder: &Path) -> io::Result<Option<Self>> {
        let folder = folder.join("batch");
        let notes = match fs::read(folder.join(NOTES)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let batch = Self { folder, notes: serde_json::from_slice(&notes)?, bytes: 0 };
        // A batch of an older program has no folder of replaced files.
        fs::create_dir_all(batch.files(Part::Replaced))?;
        Ok(Some(batch))
    }

    /// Folder of a part's files.
    pub(super) fn files(&self, part: Part) -> PathBuf {
        self.folder.join(part.folder())
    }

    /// Options that load the files of a part.
    pub(super) fn options(&self, part: Part) -> Vec<String> {
        let mut options = self.notes.options.clone();
        if part == Part::Replaced {
            // The name of the repeated load is the same after a kill, so nothing is published twice.
            options.push(format!("--again={}", self.notes.options.join(" ")));
        }
        options
    }

    /// Path of a unit's page, counted from 1, relative to the folder of new files. Each page has a separate folder,
    /// because the file name gives the symbol.
    pub(super) fn page(&self, unit: &Unit, page: usize) -> io::Result<String> {
        let folder = format!("{:03}-{page:03}", self.notes.answers.len() + 1);
        // An earlier failed unit may have left pages under this number.
        removed(&self.files(Part::New).join(&folder))?;
        fs::create_dir_all(self.files(Part::New).join(&folder))?;
        Ok(format!("{folder}/{}", unit.file))
    }

    /// Records a fetched unit.
    pub(super) fn add(&mut self, answer: Fetched) -> io::Result<()> {
        for file in &answer.files {
            let part = self.files(answer.part());
            if let Some((folder, _)) = file.split_once('/').filter(|_| answer.replaced) {
                removed(&part.join(folder))?;
                fs::rename(self.files(Part::New).join(folder), part.join(folder))?;
            }
            self.bytes += fs::metadata(part.join(file))?.len();
        }
        self.notes.answers.push(answer);
        let new = self.folder.join("notes.new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&self.notes)?)?;
        file.sync_all()?;
        fs::rename(new, self.folder.join(NOTES))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notes.answers.is_empty()
    }

    /// True if the batch must be loaded before further requests.
    pub(super) fn is_full(&self) -> bool {
        self.notes.answers.len() >= MOST_UNITS || self.bytes >= MOST_BYTES
    }

    /// True if an answer of this part has rows.
    pub(super) fn has_files(&self, part: Part) -> bool {
        self.notes.answers.iter().any(|answer| answer.part() == part && !answer.files.is_empty())
    }

    /// Moves a refused file to the folder of refused files, with the reason. It replaces an older file of the same
    /// name.
    pub(super) fn refuse(&self, part: Part, file: &str, reason: &str) -> io::Result<PathBuf> {
        let folder = self.folder.with_file_name("refused");
        fs::create_dir_all(&folder)?;
        let name = file.rsplit('/').next().unwrap_or(file);
        let kept = folder.join(format!("{}-{name}", self.notes.request));
        fs::write(kept.with_added_extension("reason.txt"), reason)?;
        fs::copy(self.files(part).join(file), &kept)?;
        Ok(kept)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        removed(&self.folder)
    }

    /// Removes the pages of incomplete units, which must not be loaded.
    pub(super) fn drop_the_unfinished(&self) -> io::Result<()> {
        for part in Part::ALL {
            let answers = self.notes.answers.iter().filter(|answer| answer.part() == part);
            let files = answers.flat_map(|answer| &answer.files);
            let whole: HashSet<&str> = files.filter_map(|file| file.split('/').next()).collect();
            for entry in fs::read_dir(self.files(part))? {
                let entry = entry?;
                if !whole.contains(&*entry.file_name().to_string_lossy()) {
                    fs::remove_dir_all(entry.path())?;
                }
            }
        }
        Ok(())
    }
}

fn removed(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
