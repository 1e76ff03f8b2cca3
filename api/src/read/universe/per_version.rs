//! A value for each version of the data, loaded once however many ask for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use crate::read::ReadError;
use crate::read::projection::Generation;

/// How many versions are kept: the newest, and the one that answers under way were begun with.
const KEPT: usize = 2;

/// Generation, sequence and position.
type Key = (i32, i64, i64);
type Loading<T> = Arc<OnceCell<Result<Arc<T>, ReadError>>>;

/// One value a version, loaded when first asked for; the last two are kept.
#[derive(Debug)]
pub(crate) struct PerVersion<T>(Mutex<VecDeque<(Key, Loading<T>)>>);

impl<T> Default for PerVersion<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PerVersion<T> {
    /// The value of the generation's newest version; `load` runs once however many ask. A failure is told to all who wait
    /// for it, and not kept.
    pub(crate) async fn get(
        &self,
        generation: &Generation,
        load: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<Arc<T>, ReadError> {
        let version = generation.version();
        let loading = self.loading((generation.id, version.sequence, version.position));
        let loaded = loading.get_or_init(|| async { load.await.map(Arc::new) }).await.clone();
        if loaded.is_err() {
            self.kept().retain(|(_, kept)| !Arc::ptr_eq(kept, &loading));
        }
        loaded
    }

    fn loading(&self, key: Key) -> Loading<T> {
        let mut kept = self.kept();
        if let Some((_, loading)) = kept.iter().find(|(known, _)| *known == key) {
            return Arc::clone(loading);
        }
        let loading = Loading::default();
        kept.push_front((key, Arc::clone(&loading)));
        kept.truncate(KEPT);
        loading
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(Key, Loading<T>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
