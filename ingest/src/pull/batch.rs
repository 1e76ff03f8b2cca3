//! Fetched answers on disk, until their rows are in the log.
//!
//! Invariant: an answer that was fetched whole is written down at once, so that a pull that was killed loads it without
//! asking again; what the log has of it already is not published twice.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use market::event::Bookmark;
use serde::{Deserialize, Serialize};

use super::plan::Unit;

/// The file that says what a batch holds.
const NOTES: &str = "notes.json";
/// Answers loaded in one run, and their bytes.
const MOST_UNITS: usize = 200;
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// How the files of a batch are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What is in the log is not published again.
    New,
    /// Replaced by the vendor: they count again, also when they are what they once were.
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

/// The answers to one kind of request.
pub(super) struct Batch {
    folder: PathBuf,
    pub notes: Notes,
    bytes: u64,
}

/// What is known of a batch's answers; the file beside them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Notes {
    /// Name of the request.
    pub request: String,
    /// Options that load its files: when they were observed, whose they are by their names.
    pub options: Vec<String>,
    pub answers: Vec<Fetched>,
}

/// A unit that was fetched whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fetched {
    pub key: String,
    /// Its pages below the folder of files; none for an answer without rows.
    pub files: Vec<String>,
    pub bookmark: Bookmark,
    /// The vendor replaced what it answered before.
    #[serde(default)]
    pub replaced: bool,
}

impl Fetched {
    /// A unit whose answer has no rows, or none that are new.
    pub(super) fn without_rows(unit: &Unit, bookmark: Bookmark) -> Self {
        Self { key: unit.key.clone(), files: Vec::new(), bookmark, replaced: false }
    }

    pub(super) fn part(&self) -> Part {
        if self.replaced { Part::Replaced } else { Part::New }
    }
}

impl Batch {
    /// An empty batch in a connector's folder.
    pub(super) fn begin(folder: &Path, request: &str, options: Vec<String>) -> io::Result<Self> {
        let notes = Notes { request: request.to_owned(), options, answers: Vec::new() };
        let batch = Self { folder: folder.join("batch"), notes, bytes: 0 };
        batch.remove()?;
        for part in Part::ALL {
            fs::create_dir_all(batch.files(part))?;
        }
        Ok(batch)
    }

    /// The batch that a pull before this one left; none when it left nothing that is whole.
    pub(super) fn left(folder: &Path) -> io::Result<Option<Self>> {
        let folder = folder.join("batch");
        let notes = match fs::read(folder.join(NOTES)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let batch = Self { folder, notes: serde_json::from_slice(&notes)?, bytes: 0 };
        // One that an older program left has no replaced files.
        fs::create_dir_all(batch.files(Part::Replaced))?;
        Ok(Some(batch))
    }

    /// The folder of a part's files.
    pub(super) fn files(&self, part: Part) -> PathBuf {
        self.folder.join(part.folder())
    }

    /// The options that load the files of a part.
    pub(super) fn options(&self, part: Part) -> Vec<String> {
        let mut options = self.notes.options.clone();
        if part == Part::Replaced {
            // Killed and loaded once more, they are the same again.
            options.push(format!("--again={}", self.notes.options.join(" ")));
        }
        options
    }

    /// The file of a unit's page, counted from 1, below the folder of new files. Pages have folders of their own, since
    /// the names of files say whose rows they hold.
    pub(super) fn page(&self, unit: &Unit, page: usize) -> io::Result<String> {
        let folder = format!("{:03}-{page:03}", self.notes.answers.len() + 1);
        // A unit that failed before this one may have left pages under its number.
        removed(&self.files(Part::New).join(&folder))?;
        fs::create_dir_all(self.files(Part::New).join(&folder))?;
        Ok(format!("{folder}/{}", unit.file))
    }

    /// Writes down that a unit was fetched.
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

    /// True if it is to be loaded before more is fetched.
    pub(super) fn is_full(&self) -> bool {
        self.notes.answers.len() >= MOST_UNITS || self.bytes >= MOST_BYTES
    }

    /// True if any answer of a part has rows.
    pub(super) fn has_files(&self, part: Part) -> bool {
        self.notes.answers.iter().any(|answer| answer.part() == part && !answer.files.is_empty())
    }

    /// Keeps a refused file for people, with the reason beside it, in the place of an older one of its name.
    pub(super) fn refuse(&self, part: Part, file: &str, reason: &str) -> io::Result<PathBuf> {
        let folder = self.folder.with_file_name("refused");
        fs::create_dir_all(&folder)?;
        let name = file.rsplit('/').next().unwrap_or(file);
        let kept = folder.join(format!("{}-{name}", self.notes.request));
        fs::write(kept.with_added_extension("reason.txt"), reason)?;
        fs::copy(self.files(part).join(file), &kept)?;
        Ok(kept)
    }

    /// Forgets the batch.
    pub(super) fn remove(&self) -> io::Result<()> {
        removed(&self.folder)
    }

    /// Removes the pages of units that were not fetched whole, which are not to be loaded.
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
