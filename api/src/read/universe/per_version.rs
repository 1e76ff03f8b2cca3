//! A value for each version of the data, loaded once however many ask for it.

use std::sync::Arc;

use moka::future::Cache;

use crate::read::ReadError;
use crate::read::projection::Generation;

/// One value a version, loaded when first asked for; the newest two are kept.
#[derive(Debug)]
pub(crate) struct PerVersion<T: Send + Sync + 'static>(Cache<(i32, i64, i64), Arc<T>>);

impl<T: Send + Sync + 'static> Default for PerVersion<T> {
    fn default() -> Self {
        Self(Cache::new(2))
    }
}

impl<T: Send + Sync + 'static> PerVersion<T> {
    /// The value of the generation's newest version; `load` runs once however many ask.
    pub(crate) async fn get(
        &self,
        generation: &Generation,
        load: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<Arc<T>, ReadError> {
        let version = generation.version();
        let key = (generation.id, version.sequence, version.position);
        let load = async { load.await.map(Arc::new) };
        self.0.try_get_with(key, load).await.map_err(|error| (*error).clone())
    }
}
