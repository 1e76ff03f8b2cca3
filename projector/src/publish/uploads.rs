//! Uploads of Parquet files to the object store, some at a time while the next file is written.
//!
//! Removal of old versions from the object store: first their manifests, then the files that no manifest names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};
use store::published_files::{DATA, FileStore, PublishedFile, PublishedVersion, VERSIONS};
use tokio::task::{JoinSet, block_in_place};

use super::column::ParquetWriter;
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

/// Age below which a file is kept although no manifest names it: a publisher may be about to name it.
const MIN_FILE_AGE: TimeDelta = TimeDelta::days(1);

/// Maximum number of manifests that are read at the same time.
const MAX_READS: usize = 16;

/// Removes the versions that a newer one replaced more than `keep` ago, and then the files that no version names. Without
/// such a version, files stay too. Returns the number of removed versions and files.
pub(super) async fn remove_old_versions(store: &FileStore, keep: Duration) -> anyhow::Result<(u64, u64)> {
    let Some((latest, _)) = store.latest().await? else { return Ok((0, 0)) };
    let keep_from = before(TimeDelta::from_std(keep).context("cannot keep versions for so long")?);
    let mut manifests = list(store, VERSIONS).await?;
    manifests.sort_by_key(|manifest| manifest.last_modified);
    let replaced_at: Vec<_> = manifests.iter().skip(1).map(|next| next.last_modified).collect();
    let (mut kept, mut removed_versions, mut removed_files) = (Vec::new(), 0, 0);
    for (number, manifest) in manifests.iter().enumerate() {
        let name = manifest.location.parts().rev().nth(1).context("cannot list the versions")?;
        let is_old = replaced_at.get(number).is_some_and(|replaced_at| *replaced_at < keep_from);
        if name.as_ref() != latest.data_version && is_old {
            store.objects.delete(&manifest.location).await?;
            removed_versions += 1;
        } else {
            kept.push(name.as_ref().to_owned());
        }
    }
    if removed_versions == 0 {
        return Ok((0, 0));
    }
    let mut named: HashSet<Path> = HashSet::new();
    let mut versions = stream::iter(&kept).map(|name| store.version(name)).buffered(MAX_READS);
    while let Some(version) = versions.try_next().await? {
        let files = version.iter().flat_map(|version| &version.tables).flat_map(|table| &table.files);
        named.extend(files.map(|file| store.path(&file.path)));
    }
    let old = before(MIN_FILE_AGE);
    for file in list(store, DATA).await? {
        if file.last_modified < old && !named.contains(&file.location) {
            store.objects.delete(&file.location).await?;
            removed_files += 1;
        }
    }
    Ok((removed_versions, removed_files))
}

async fn list(store: &FileStore, folder: &str) -> Result<Vec<ObjectMeta>, object_store::Error> {
    store.objects.list(Some(&store.path(folder))).try_collect().await
}

/// Instant before now; the earliest instant if the difference is too large.
fn before(age: TimeDelta) -> DateTime<Utc> {
    Utc::now().checked_sub_signed(age).unwrap_or(DateTime::<Utc>::MIN_UTC)
}
