//! `GET /v1/files`: Parquet files of a published data version, with signed addresses (Professional).

use std::time::Duration;

use store::published_files::{FileStore, FileStoreError, PublishedVersion};
use store::versions::VersionName;
use tokio::time::timeout;

use crate::answer::{HandlerContext, Professional, RenderedBody};
use crate::error::ApiError;
use crate::parameters::parameters;
use crate::render::envelope::{Meta, Single};
use crate::routes::endpoint;

/// Time for which the address of a file is valid.
const VALIDITY: Duration = Duration::from_secs(3600);

parameters! {
    /// Parameters of the published files.
    pub(crate) struct FilesParameters by reader {
        /// Data version of the files: the `meta.data_version` of a response. Default: the newest published version.
        version: Option<VersionName> = reader.read_version("version"),
    }

    const FEATURE: &'static str = "bulk_operations";
    const IS_COSTLY: bool = true;
    const IS_PRIVATE: bool = true;
}

endpoint! {
    /// Files of the whole market (Professional)
    ///
    /// Parquet files of every table, with addresses at which they can be fetched from the object store for an hour
    /// without a key. The addresses are secrets. Not every data version is published, and old ones are removed. Status
    /// 404 if the service has no files of the version.
    get "/v1/files", tag "Bulk", returns "Files of a data version",
    files(Access<Professional, FilesParameters>) -> Single<PublishedVersion> { respond(list_files) }
}

async fn list_files(context: HandlerContext<FilesParameters>) -> Result<RenderedBody, ApiError> {
    let unpublished = || ApiError::NotFound("No files are published by this service".to_owned());
    let store = context.app.files.as_ref().ok_or_else(unpublished)?;
    let found = find_version(store, context.parameters.version);
    let data = match timeout(context.app.settings.read_timeout, found).await {
        Ok(Ok(Some(found))) => found,
        Ok(Ok(None)) => {
            let named = context.parameters.version;
            return Err(named.map_or_else(unpublished, |name| {
                ApiError::NotFound(format!("No files of version {name} are published"))
            }));
        }
        Ok(Err(FileStoreError::NoAddresses)) => {
            return Err(ApiError::NotFound("The published files have no addresses".to_owned()));
        }
        Ok(Err(error)) => return Err(ApiError::Unavailable(error.to_string())),
        Err(_) => return Err(ApiError::Unavailable("the object store does not answer".to_owned())),
    };
    require_redistributable(&context, &data).await?;
    let meta = Meta { as_of: data.as_of, data_version: data.data_version.clone(), ..Meta::default() };
    let body =
        serde_json::to_vec(&Single { data, meta }).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(RenderedBody { body: body.into(), version: context.generation.version(), next_cursor: None })
}

/// Checks that no source of the files was closed after they were published.
async fn require_redistributable(
    context: &HandlerContext<FilesParameters>,
    published: &PublishedVersion,
) -> Result<(), ApiError> {
    let restricted = context.app.memory_tables.restricted(&context.generation).await?;
    let is_left_out = |source: &str| {
        published.left_out.as_ref().is_some_and(|left_out| left_out.sources.iter().any(|name| name == source))
    };
    let mut sources = published.sources.iter().map(|source| source.source.as_str());
    match sources.find(|source| restricted.has_source(source) && !is_left_out(source)) {
        None => Ok(()),
        Some(source) => Err(ApiError::NotFound(format!(
            "The files of version {} have data of {source}, which must not be redistributed any more",
            published.data_version
        ))),
    }
}

/// Finds the files of a version, or of the newest version, and signs their addresses. `None` if they are not published.
async fn find_version(
    store: &FileStore,
    name: Option<VersionName>,
) -> Result<Option<PublishedVersion>, FileStoreError> {
    let name = match name {
        Some(name) => Some(name.to_string()),
        None => store.latest().await?.map(|(latest, _)| latest.data_version),
    };
    let Some(name) = name else { return Ok(None) };
    let Some(mut version) = store.version(&name).await? else { return Ok(None) };
    store.sign(&mut version, VALIDITY).await?;
    Ok(Some(version))
}
