//! Cache of rendered responses. Concurrent requests for the same response share one rendering.
//!
//! Invariant: a key contains everything that determines the body. An entry is therefore never outdated, only evicted.

use std::sync::Arc;

use axum::http::HeaderValue;
use bytes::Bytes;
use chrono::NaiveDate;
use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::auth::Tier;
use crate::metrics::CacheMetrics;
use crate::parameters::ResponseFormat;
use crate::read::DataVersion;

/// Approximate size of an entry without its body and request, in bytes.
const ENTRY: usize = 256;
/// Estimated number of entries. It determines how many evicted keys the cache remembers.
const ANSWERS: usize = 1 << 16;

/// Cache key: all values that determine the body of a response.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub(crate) version: DataVersion,
    /// Revision of the control tables, such as the licences, which decide what a response leaves out.
    pub(crate) control_revision: i64,
    pub(crate) today: NaiveDate,
    pub(crate) format: ResponseFormat,
    /// Tier of the client; `None` if the response is the same for all tiers.
    pub(crate) tier: Option<Tier>,
    /// Path and query of the request, unchanged.
    pub(crate) target: String,
}

impl CacheKey {
    /// Weak entity tag of the response with the data version `version`. If data was committed during the request,
    /// `version` can be newer than the version in the key.
    pub(crate) fn etag(&self, version: &DataVersion) -> HeaderValue {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&version.generation.0.to_le_bytes());
        hasher.update(&version.sequence.to_le_bytes());
        hasher.update(&version.position.0.to_le_bytes());
        hasher.update(&self.control_revision.to_le_bytes());
        hasher.update(&chrono::Datelike::num_days_from_ce(&self.today).to_le_bytes());
        let tier = self.tier.map_or(0, |tier| tier as u8 + 1);
        hasher.update(&[self.format as u8, tier]);
        hasher.update(self.target.as_bytes());
        let tag = hasher.finalize().to_hex();
        // A later request may send this tag. The server reads the version in the tag, and returns no older data.
        HeaderValue::try_from(["W/\"", &version.to_exact_text(), "-", &tag[..32], "\""].concat())
            .unwrap_or_else(|_| HeaderValue::from_static("W/\"0\""))
    }
}

/// Rendered response.
#[derive(Debug, Clone)]
pub(crate) struct CachedResponse {
    pub(crate) body: Bytes,
    pub(crate) etag: HeaderValue,
    /// `Link` header to the next page of a CSV list. `None` on the last page. Also `None` for JSON, because a JSON body
    /// contains the cursor.
    pub(crate) link: Option<HeaderValue>,
}

/// Weigher that measures an entry by its size in bytes.
#[derive(Debug, Clone)]
struct ByteWeigher;

impl Weighter<CacheKey, Arc<CachedResponse>> for ByteWeigher {
    fn weight(&self, key: &CacheKey, answer: &Arc<CachedResponse>) -> u64 {
        (answer.body.len() + key.target.len() + ENTRY) as u64
    }
}

/// Cache of rendered responses.
#[derive(Debug)]
pub(crate) struct ResponseCache {
    entries: Cache<CacheKey, Arc<CachedResponse>, ByteWeigher, RandomState>,
    metrics: CacheMetrics,
}

impl ResponseCache {
    /// Creates a cache. `bytes` is its capacity.
    pub(crate) fn new(bytes: u64, metrics: CacheMetrics) -> Self {
        let entries =
            Cache::with(ANSWERS, bytes, ByteWeigher, RandomState::default(), DefaultLifecycle::default());
        Self { entries, metrics }
    }

    /// Returns the cached response, or renders it with `fill` and caches it. Concurrent calls with the same key share
    /// one `fill`. Errors are not cached.
    pub(crate) async fn get_or_render<E>(
        &self,
        key: &CacheKey,
        fill: impl Future<Output = Result<CachedResponse, E>>,
    ) -> Result<Arc<CachedResponse>, E> {
        self.entries.get_or_insert_async(key, async { fill.await.map(Arc::new) }).await
    }

    /// Looks up a response, and records the hit or miss.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Arc<CachedResponse>> {
        let answer = self.entries.get(key);
        self.metrics.record_lookup(answer.is_some());
        answer
    }

    /// Inserts a response that was not rendered by [`Self::get_or_render`].
    pub(crate) fn insert(&self, key: CacheKey, answer: CachedResponse) {
        self.entries.insert(key, Arc::new(answer));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;
    use store::ids::{GenerationId, JournalPosition};

    use super::*;
    use crate::metrics::ApiMetrics;

    fn answers(bytes: u64) -> ResponseCache {
        ResponseCache::new(bytes, ApiMetrics::new().expect("figures").cache)
    }

    fn key(target: &str) -> CacheKey {
        let version = DataVersion {
            generation: GenerationId(1),
            sequence: 1,
            as_of: None,
            position: JournalPosition(1),
            is_repeated: false,
        };
        let today = NaiveDate::from_ymd_opt(2024, 6, 28).expect("a day");
        CacheKey {
            version,
            control_revision: 0,
            today,
            format: ResponseFormat::Json,
            tier: None,
            target: target.to_owned(),
        }
    }

    fn answer(bytes: usize) -> CachedResponse {
        CachedResponse {
            body: vec![b'0'; bytes].into(),
            etag: HeaderValue::from_static("W/\"1\""),
            link: None,
        }
    }

    #[tokio::test]
    async fn an_answer_is_made_once_however_many_ask_and_a_failure_is_not_kept() {
        let (answers, key, made) = (answers(1 << 20), key("/v1/stocks/KO/quote"), Cell::new(0));
        let ask = async || {
            let fill = async {
                made.set(made.get() + 1);
                let number = made.get();
                tokio::task::yield_now().await;
                if number == 1 { Err("the first fails") } else { Ok(answer(number)) }
            };
            answers.get_or_render(&key, fill).await.map(|answer| answer.body.len())
        };
        let asked = join_all((0..5).map(|_| ask())).await;
        assert_eq!(asked, [Err("the first fails"), Ok(2), Ok(2), Ok(2), Ok(2)]);
        assert_eq!((ask().await, made.get()), (Ok(2), 2));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let answers = answers(1 << 20);
        for number in 0..10_000 {
            answers.insert(key(&number.to_string()), answer(1_000));
        }
        assert!(answers.entries.weight() <= 1 << 20);
        assert!(answers.get(&key("9999")).is_some());
        answers.insert(key("larger than all"), answer(2 << 20));
        assert!(answers.get(&key("larger than all")).is_none());
    }

    #[test]
    fn nothing_is_kept_without_room() {
        let answers = answers(0);
        answers.insert(key("/"), answer(1));
        assert!(answers.get(&key("/")).is_none());
    }
}
