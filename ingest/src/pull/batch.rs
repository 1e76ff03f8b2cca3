//! Batch of fetched responses. They stay on disk until their rows are in the log.
//!
//! Invariants: every complete response is recorded immediately, and not requested again after a kill. Files are created
//! through a folder handle, never through a symbolic link.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use market::event::Bookmark;
use serde::{Deserialize, Serialize};

use super::plan::PlannedRequest;
use crate::source::file_access::FolderHandle;

/// Name of the batch's folder, in the folder of its connector.
const BATCH: &str = "batch";
/// Name of the file with the notes about a batch.
const NOTES: &str = "notes.json";
/// Maximum number of responses in a batch. A batch is also full at [`MAX_BATCH_BYTES`] bytes.
const MAX_BATCH_RESPONSES: usize = 200;
const MAX_BATCH_BYTES: u64 = 256 * 1024 * 1024;

/// Part of a batch: responses whose rows are published in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchPart {
    /// Responses to requests that had no earlier response. Rows that the log already has are not published.
    New,
    /// Responses that replace an earlier response to the same request. All their rows are published, even rows that the
    /// log already has.
    Replaced,
}

impl BatchPart {
    pub(super) const ALL: [Self; 2] = [Self::New, Self::Replaced];

    fn folder_name(self) -> &'static str {
        match self {
            Self::New => "files",
            Self::Replaced => "replaced",
        }
    }
}

/// Batch of responses. All of them belong to the same `[[request]]` of the manifest, for example for different symbols.
pub(super) struct ResponseBatch {
    /// Folder of the connector, which contains the folder of the batch.
    connector: Arc<FolderHandle>,
    folder: FolderHandle,
    pub notes: BatchNotes,
    bytes: u64,
}

/// File for one page of a response.
pub(super) struct PageFile {
    folder: FolderHandle,
    name: String,
    /// Path of the written page, for reading.
    pub path: PathBuf,
    /// Path of the page file, relative to the folder of the batch part: `NUMBER/FILE`.
    pub relative: String,
}

impl PageFile {
    /// Creates the file. A file from an earlier attempt is replaced.
    pub(super) fn create(&self) -> io::Result<File> {
        self.folder.replace_file(OsStr::new(&self.name))
    }
}

/// Notes about a batch and its responses. They are stored in the folder of the batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BatchNotes {
    /// Name of the request in the manifest.
    pub request: String,
    /// Options of `ingest load` for these responses: the observation time, and the pattern for the symbol in file
    /// names.
    pub options: Vec<String>,
    #[serde(rename = "answers")]
    pub responses: Vec<FetchedResponse>,
}

/// Response to a [`PlannedRequest`], with all its pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FetchedResponse {
    pub key: String,
    /// Paths of the page files, relative to the folder of the batch part; empty for a response without rows.
    pub files: Vec<String>,
    pub bookmark: Bookmark,
    /// True if an earlier response to the same request had other content. This response then replaces the earlier one.
    #[serde(default)]
    pub replaced: bool,
}

impl FetchedResponse {
    /// Response without rows to load: it is empty, or it equals the earlier response.
    pub(super) fn without_rows(request: &PlannedRequest, bookmark: Bookmark) -> Self {
        Self { key: request.key.clone(), files: Vec::new(), bookmark, replaced: false }
    }

    pub(super) fn part(&self) -> BatchPart {
        if self.replaced { BatchPart::Replaced } else { BatchPart::New }
    }
}

impl ResponseBatch {
    /// Creates an empty batch in a connector's folder.
    pub(super) fn create(
        connector: &Arc<FolderHandle>,
        request: &str,
        options: Vec<String>,
    ) -> io::Result<Self> {
        remove_folder(&connector.path().join(BATCH))?;
        let folder = connector.create_folder(BATCH)?;
        for part in BatchPart::ALL {
            folder.create_folder(part.folder_name())?;
        }
        let notes = BatchNotes { request: request.to_owned(), options, responses: Vec::new() };
        Ok(Self { connector: connector.clone(), folder, notes, bytes: 0 })
    }

    /// Opens the batch that an earlier pull left unfinished. `None` if no such batch exists.
    pub(super) fn open_unfinished(connector: &Arc<FolderHandle>) -> io::Result<Option<Self>> {
        let folder = connector.open_folder(Path::new(BATCH));
        let opened = folder.and_then(|folder| Ok((folder.open_file(Path::new(NOTES))?, folder)));
        let (notes, folder) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // The batch may come from an older program version, which created no folder for replaced responses.
        folder.create_folder(BatchPart::Replaced.folder_name())?;
        let notes = serde_json::from_reader(BufReader::new(notes))?;
        Ok(Some(Self { connector: connector.clone(), folder, notes, bytes: 0 }))
    }

    /// Folder for the responses of a batch part.
    pub(super) fn files_folder(&self, part: BatchPart) -> PathBuf {
        self.folder.path().join(part.folder_name())
    }

    /// Opens the folder for the responses of a batch part.
    pub(super) fn open_files_folder(&self, part: BatchPart) -> io::Result<FolderHandle> {
        self.folder.open_folder(Path::new(part.folder_name()))
    }

    /// Options of `ingest load` for the responses of a batch part.
    pub(super) fn load_options(&self, part: BatchPart) -> Vec<String> {
        let mut options = self.notes.options.clone();
        if part == BatchPart::Replaced {
            // The value of `--again` names this repetition of the load. If the load is run again after a kill, it has
            // the same name, so that no row is published twice.
            options.push(format!("--again={}", self.notes.options.join(" ")));
        }
        options
    }

    /// Creates the folder for a page, counted from 1. The returned file does not exist yet.
    pub(super) fn create_page(&self, request: &PlannedRequest, page: usize) -> io::Result<PageFile> {
        // Each page has its own folder, because all pages of a response have the same file name.
        let number = format!("{:03}-{page:03}", self.notes.responses.len() + 1);
        // A failed request may have left pages in this folder, because only a recorded response increases the number.
        remove_folder(&self.files_folder(BatchPart::New).join(&number))?;
        let folder = self.open_files_folder(BatchPart::New)?.create_folder(&number)?;
        let (name, path) = (request.file.clone(), folder.path().join(&request.file));
        Ok(PageFile { folder, name, path, relative: format!("{number}/{}", request.file) })
    }

    /// Records a fetched response in the notes on disk. If the response replaces an earlier one, its pages are first
    /// moved to the folder of [`BatchPart::Replaced`].
    pub(super) fn record_response(&mut self, response: FetchedResponse) -> io::Result<()> {
        for file in &response.files {
            let part = self.files_folder(response.part());
            if let Some((folder, _)) = file.split_once('/').filter(|_| response.replaced) {
                remove_folder(&part.join(folder))?;
                fs::rename(self.files_folder(BatchPart::New).join(folder), part.join(folder))?;
            }
            self.bytes += fs::metadata(part.join(file))?.len();
        }
        self.notes.responses.push(response);
        let new = OsStr::new("notes.new");
        let mut file = self.folder.replace_file(new)?;
        file.write_all(&serde_json::to_vec(&self.notes)?)?;
        file.sync_all()?;
        self.folder.move_entry(new, &self.folder, OsStr::new(NOTES))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notes.responses.is_empty()
    }

    /// True if the batch must be loaded before further requests.
    pub(super) fn is_full(&self) -> bool {
        self.notes.responses.len() >= MAX_BATCH_RESPONSES || self.bytes >= MAX_BATCH_BYTES
    }

    /// True if this part of the batch has a response with rows.
    pub(super) fn has_files(&self, part: BatchPart) -> bool {
        self.notes.responses.iter().any(|response| response.part() == part && !response.files.is_empty())
    }

    /// Copies a refused file to the folder `refused`, with the reason. A file with the same name from an earlier pull
    /// is replaced.
    pub(super) fn keep_refused_file(&self, part: BatchPart, file: &str, reason: &str) -> io::Result<PathBuf> {
        let folder = self.connector.create_folder("refused")?;
        let name = format!("{}-{}", self.notes.request, file.rsplit('/').next().unwrap_or(file));
        folder.replace_file(OsStr::new(&format!("{name}.reason.txt")))?.write_all(reason.as_bytes())?;
        let mut refused = self.open_files_folder(part)?.open_file(Path::new(file))?;
        io::copy(&mut refused, &mut folder.replace_file(OsStr::new(&name))?)?;
        Ok(folder.path().join(name))
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove_folder(self.folder.path())
    }

    /// Removes the pages of incompletely fetched responses, because they must not be loaded.
    pub(super) fn remove_unrecorded_pages(&self) -> io::Result<()> {
        for part in BatchPart::ALL {
            let responses = self.notes.responses.iter().filter(|response| response.part() == part);
            let files = responses.flat_map(|response| &response.files);
            let whole: HashSet<&str> = files.filter_map(|file| file.split('/').next()).collect();
            for entry in fs::read_dir(self.files_folder(part))? {
                let entry = entry?;
                if !whole.contains(&*entry.file_name().to_string_lossy()) {
                    fs::remove_dir_all(entry.path())?;
                }
            }
        }
        Ok(())
    }
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
