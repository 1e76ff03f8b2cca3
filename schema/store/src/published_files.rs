//! Published data versions: Parquet files on an object store, with one manifest for each version.
//!
//! Below the prefix of the store, `data/TABLE/HASH.parquet` is a file named by its content, which versions share.
//! `versions/VERSION/manifest.json` lists the files of a version. It is written last and never changes. `latest.json` names
//! the newest version.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::signer::{Method, Signer};
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, RetryConfig, UpdateVersion,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{GenerationId, JournalPosition};

/// Folder of the manifests, below the prefix.
pub const VERSIONS: &str = "versions";
/// Folder of the Parquet files, below the prefix.
pub const DATA: &str = "data";
const LATEST: &str = "latest.json";
/// Time from the first attempt of a request after which it is not repeated. An attempt has the timeout of
/// `object_store`: 5 s for the connection and 30 s in all.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Files of one data version: its manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublishedVersion {
    /// Version of the layout of the files.
    pub format: u32,
    /// Data version of the files, as in other responses.
    pub data_version: String,
    /// Number of the generation.
    #[schema(value_type = i32)]
    pub generation: GenerationId,
    /// Sequence of the last log message in the data.
    pub sequence: i64,
    /// Position in the journal. It is greater for newer data.
    #[schema(value_type = i64)]
    pub position: JournalPosition,
    /// Start of the changes after this version, for the parameters `updated_since` and `since`.
    pub sync_from: String,
    /// As-of date of the market: the newest session in the data.
    pub as_of: Option<NaiveDate>,
    /// Version of the rules that derived the data.
    pub method_version: String,
    /// Rule parameters that differ from their defaults.
    pub rules: BTreeMap<String, String>,
    /// Time at which the files were published.
    pub published_at: DateTime<Utc>,
    /// Time until which the addresses of the files are valid. Omitted in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Sources of the data, with their licences.
    pub sources: Vec<PublishedSource>,
    /// Securities without rows in the files; only the statistics in `sectors` count them. Omitted if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<UnpublishedSecurities>,
    /// Tables, with their files.
    pub tables: Vec<PublishedTable>,
}

crate::sql_row! {
    /// Licence of a source, as the operator stated it. All fields except the name are null without a statement.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    pub struct PublishedSource {
        /// Name of the source.
        pub source: String,
        /// Name of the licence.
        pub licence: Option<String>,
        /// Address of the text of the licence.
        pub url: Option<String>,
        /// Text that names the source wherever its data is shown.
        pub attribution: Option<String>,
    }
}

/// Securities that rest on sources which must not be redistributed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnpublishedSecurities {
    /// Names of these sources.
    pub sources: Vec<String>,
    /// Number of securities.
    pub securities: usize,
}

/// Table of a data version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublishedTable {
    /// Name of the table.
    pub name: String,
    /// Columns, in the order of the files.
    pub columns: Vec<PublishedColumn>,
    /// Number of rows in all files.
    pub rows: u64,
    /// Files of the table. Together they have each row once.
    pub files: Vec<PublishedFile>,
}

/// Column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublishedColumn {
    /// Name of the column.
    pub name: String,
    /// SQL name of the type.
    pub r#type: String,
}

/// Parquet file of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedFile {
    /// Path below the prefix of the store. It contains the BLAKE3 hash of the file.
    pub path: String,
    /// Number of rows.
    pub rows: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Digest of the generation's digests of the rows. Files with equal digests have equal rows. Null for a table
    /// without digests.
    pub digest: Option<String>,
    /// Signed address of the file. Omitted in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Content of `latest.json`: the newest published version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestVersion {
    /// Name of the version.
    pub data_version: String,
    /// Position of the version in the journal.
    pub position: JournalPosition,
}

impl PublishedVersion {
    /// True if both versions are from the journal of one database. Only their positions are comparable.
    pub fn has_same_journal(&self, other: &Self) -> bool {
        self.sync_from.split('.').next() == other.sync_from.split('.').next()
    }

    /// True if the other version has the same rows. The bytes of its files may differ.
    pub fn has_same_rows(&self, other: &Self) -> bool {
        let rows = |version: &Self| {
            let digests = |table: &PublishedTable| -> Vec<Option<String>> {
                table.files.iter().map(|file| file.digest.clone()).collect()
            };
            let tables = version.tables.iter().map(|table| (table.name.clone(), table.rows, digests(table)));
            (version.position, tables.collect::<Vec<_>>())
        };
        rows(self) == rows(other)
    }
}

/// Reason for a failure of an object store.
#[expect(missing_docs, reason = "each message describes its variant")]
#[derive(Debug, thiserror::Error)]
pub enum FileStoreError {
    #[error("cannot use {0:?} as an object store: write s3://BUCKET/PREFIX or file:DIR")]
    Url(String),
    #[error("cannot open folder {folder}: {source}")]
    Folder { folder: String, source: io::Error },
    #[error("cannot use the object store: {0}")]
    Store(#[from] Error),
    #[error("cannot read {path} of the object store: {source}")]
    Json { path: String, source: serde_json::Error },
    #[error("files in a folder have no addresses")]
    NoAddresses,
}

impl FileStoreError {
    /// True if a conditional write failed because another publisher wrote the object.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(Error::AlreadyExists { .. } | Error::Precondition { .. }))
    }
}

/// Object store, or folder, with published versions.
#[derive(Debug)]
pub struct FileStore {
    /// Client of the store.
    pub objects: Arc<dyn ObjectStore>,
    s3: Option<Arc<AmazonS3>>,
    prefix: Path,
}

impl FileStore {
    /// Opens a store. `url` is `s3://BUCKET/PREFIX` or `file:DIR`. The credentials, the region and the address of an S3
    /// server are in environment variables such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`. No request is sent.
    ///
    /// # Errors
    /// `url` has another form, a setting in the environment is invalid, or the folder does not exist.
    pub fn open(url: &str) -> Result<Self, FileStoreError> {
        if let Some(folder) = url.strip_prefix("file:") {
            let folder = folder.strip_prefix("//").unwrap_or(folder);
            let absolute = std::fs::canonicalize(folder);
            let absolute =
                absolute.map_err(|source| FileStoreError::Folder { folder: folder.to_owned(), source })?;
            let objects =
                LocalFileSystem::new_with_prefix(absolute)?.with_fsync(true).with_automatic_cleanup(true);
            return Ok(Self { objects: Arc::new(objects), s3: None, prefix: Path::default() });
        }
        let invalid = || FileStoreError::Url(url.to_owned());
        let rest = url.strip_prefix("s3://").ok_or_else(invalid)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(invalid());
        }
        // Fails if the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let retry = RetryConfig { retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let s3 = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build()?;
        let s3 = Arc::new(s3);
        let objects = Arc::clone(&s3) as Arc<dyn ObjectStore>;
        Ok(Self { objects, s3: Some(s3), prefix: Path::parse(prefix).map_err(Error::from)? })
    }

    /// Path of an object in the store. `relative` is below the prefix.
    pub fn path(&self, relative: &str) -> Path {
        self.prefix.parts().chain(Path::from(relative).parts()).collect()
    }

    /// Reads the name of the newest version, and its state for [`FileStore::replace_latest`]. `None` if nothing is
    /// published.
    ///
    /// # Errors
    /// The store does not answer, or the object is damaged.
    pub async fn latest(&self) -> Result<Option<(LatestVersion, UpdateVersion)>, FileStoreError> {
        self.read(LATEST).await
    }

    /// Reads the manifest of a version. `None` if the version is not published.
    ///
    /// # Errors
    /// The store does not answer, or the object is damaged.
    pub async fn version(&self, data_version: &str) -> Result<Option<PublishedVersion>, FileStoreError> {
        Ok(self.read(&manifest_path(data_version)).await?.map(|(version, _)| version))
    }

    /// Writes the manifest of a version, if the version has none.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the version has a manifest; any other error of the store.
    pub async fn create_version(&self, version: &PublishedVersion) -> Result<(), FileStoreError> {
        let path = manifest_path(&version.data_version);
        self.write(&path, version, PutMode::Create).await?;
        Ok(())
    }

    /// Writes the name of the newest version, if it was not changed since `known` was read. A folder cannot compare:
    /// its name is always replaced.
    ///
    /// # Errors
    /// [`Error::Precondition`] or [`Error::AlreadyExists`] if it was changed; any other error of the store.
    pub async fn replace_latest(
        &self,
        latest: &LatestVersion,
        known: Option<UpdateVersion>,
    ) -> Result<(), FileStoreError> {
        let mode = match known {
            Some(_) if self.s3.is_none() => PutMode::Overwrite,
            Some(known) => PutMode::Update(known),
            None => PutMode::Create,
        };
        self.write(LATEST, latest, mode).await?;
        Ok(())
    }

    /// Adds a signed address to each file. The addresses are valid for `validity`.
    ///
    /// # Errors
    /// The store is a folder, or has no credentials.
    pub async fn sign(
        &self,
        version: &mut PublishedVersion,
        validity: Duration,
    ) -> Result<(), FileStoreError> {
        let s3 = self.s3.as_ref().ok_or(FileStoreError::NoAddresses)?;
        version.expires_at = Some(Utc::now() + validity);
        for file in version.tables.iter_mut().flat_map(|table| &mut table.files) {
            let url = s3.signed_url(Method::GET, &self.path(&file.path), validity).await?;
            file.url = Some(url.into());
        }
        Ok(())
    }

    async fn read<T: DeserializeOwned>(
        &self,
        relative: &str,
    ) -> Result<Option<(T, UpdateVersion)>, FileStoreError> {
        let found = match self.objects.get(&self.path(relative)).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        let state = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let read = serde_json::from_slice(&found.bytes().await?);
        let read = read.map_err(|source| FileStoreError::Json { path: relative.to_owned(), source })?;
        Ok(Some((read, state)))
    }

    async fn write(
        &self,
        relative: &str,
        content: &impl Serialize,
        mode: PutMode,
    ) -> Result<PutResult, FileStoreError> {
        let content = serde_json::to_vec_pretty(content);
        let content = content.map_err(|source| FileStoreError::Json { path: relative.to_owned(), source })?;
        let path = self.path(relative);
        Ok(self.objects.put_opts(&path, PutPayload::from(content), mode.into()).await?)
    }
}

fn manifest_path(data_version: &str) -> String {
    format!("{VERSIONS}/{data_version}/manifest.json")
}
