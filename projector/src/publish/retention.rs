//! Removal of old versions from the object store: first their manifests, then the files that no manifest names.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use store::published_files::{DATA, FileStore, VERSIONS};

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
