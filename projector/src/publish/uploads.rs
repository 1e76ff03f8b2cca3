//! Uploads of Parquet files to the object store, some at a time while the next file is written.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context;
use object_store::{ObjectStoreExt, PutPayload};
use store::published_files::{DATA, FileStore, PublishedFile, PublishedVersion};
use tokio::task::{JoinSet, block_in_place};

use super::parquet_writer::ParquetWriter;
use crate::progress::ProgressReport;

/// Version of the layout and of the columns. A file of another version is never used again.
pub(super) const FORMAT: u32 = 2;
/// Maximum number of uploads at the same time. Their files are in memory.
const MAX_UPLOADS: usize = 4;

/// Parquet file in memory.
pub(super) type ParquetFile = ParquetWriter<Vec<u8>>;

pub(super) struct Uploads {
    store: Arc<FileStore>,
    /// Files of the newest published version, by digest and by path.
    published: HashMap<String, PublishedFile>,
    running: JoinSet<anyhow::Result<()>>,
    progress: ProgressReport,
    new_files: u64,
    new_bytes: u64,
}

impl Uploads {
    /// `newest` is the newest published version. `files` is the number of files of the version to publish.
    pub(super) fn new(store: &Arc<FileStore>, newest: Option<PublishedVersion>, files: usize) -> Self {
        let mut published = HashMap::new();
        for file in newest.into_iter().flat_map(|version| version.tables).flat_map(|table| table.files) {
            published.insert(file.path.clone(), file.clone());
            published.extend(file.digest.clone().map(|digest| (digest, file)));
        }
        let progress = ProgressReport::new("published", "files", files as u64);
        let (store, running) = (Arc::clone(store), JoinSet::new());
        Self { store, published, running, progress, new_files: 0, new_bytes: 0 }
    }

    /// File of the newest published version with these rows; `None` if there is none.
    pub(super) fn find_unchanged(&mut self, digest: Option<&str>) -> Option<PublishedFile> {
        let file = self.published.get(digest?)?.clone();
        self.progress.add(1);
        Some(file)
    }

    /// Finishes a file and begins its upload, unless the newest published version has it. Waits while too many uploads
    /// are running.
    pub(super) async fn add(
        &mut self,
        table: &str,
        digest: Option<String>,
        file: ParquetFile,
    ) -> anyhow::Result<PublishedFile> {
        let (content, rows) = block_in_place(|| file.finish())?;
        let hash = block_in_place(|| blake3::hash(&content));
        let bytes = content.len() as u64;
        let file =
            PublishedFile { path: format!("{DATA}/{table}/{hash}.parquet"), rows, bytes, digest, url: None };
        self.progress.add(1);
        if self.published.contains_key(&file.path) {
            return Ok(file);
        }
        while self.running.len() >= MAX_UPLOADS {
            self.finish_one().await?;
        }
        let (store, path) = (Arc::clone(&self.store), self.store.path(&file.path));
        // A file that exists already is written again: retention keeps new files.
        self.running.spawn(async move {
            let put = store.objects.put(&path, PutPayload::from(content)).await;
            put.with_context(|| format!("cannot write {path}")).map(drop)
        });
        self.published.insert(file.path.clone(), file.clone());
        self.new_files += 1;
        self.new_bytes += bytes;
        Ok(file)
    }

    async fn finish_one(&mut self) -> anyhow::Result<()> {
        self.running.join_next().await.unwrap_or(Ok(Ok(())))?
    }

    /// Waits for all uploads. Returns the number of new files and of their bytes.
    pub(super) async fn finish(mut self) -> anyhow::Result<(u64, u64)> {
        while !self.running.is_empty() {
            self.finish_one().await?;
        }
        self.progress.finish();
        Ok((self.new_files, self.new_bytes))
    }
}
