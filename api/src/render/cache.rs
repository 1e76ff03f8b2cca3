//! Cache of rendered responses. Concurrent requests for one response render it once.
//!
//! Invariant: generation, sequence, position, day, format, request and, where relevant, tier determine the body. A key
//! contains all of them, so entries are evicted but never stale.

use std::sync::Arc;

use axum::http::HeaderValue;
use bytes::Bytes;
use chrono::NaiveDate;
use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::auth::tier::Tier;
use crate::metrics::CacheMetrics;
use crate::parameters::Format;
use crate::read::projection::Version;

/// Approximate bytes of an entry besides its body and request.
const ENTRY: usize = 256;
/// Estimated number of entries, which sizes the history of evicted entries.
const ANSWERS: usize = 1 << 16;

/// Cache key: everything that determines the body of a response.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) version: Version,
    pub(crate) today: NaiveDate,
    pub(crate) format: Format,
    /// Tier, if the response differs by tier.
    pub(crate) tier: Option<Tier>,
    /// Path and query as sent.
    pub(crate) target: String,
}

impl Key {
    /// Weak entity tag of the response at a version, which may be newer than the key's.
    pub(crate) fn etag(&self, version: &Version) -> HeaderValue {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&version.generation.to_le_bytes());
        hasher.update(&version.sequence.to_le_bytes());
        hasher.update(&version.position.to_le_bytes());
        hasher.update(&chrono::Datelike::num_days_from_ce(&self.today).to_le_bytes());
        let tier = self.tier.map_or(0, |tier| tier as u8 + 1);
        hasher.update(&[self.format as u8, tier]);
        hasher.update(self.target.as_bytes());
        let tag = hasher.finalize().to_hex();
        HeaderValue::try_from(["W/\"", &tag[..32], "\""].concat())
            .unwrap_or_else(|_| HeaderValue::from_static("W/\"0\""))
    }
}

/// Rendered response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) etag: HeaderValue,
    /// Link to the next page, for formats without room for it in the body.
    pub(crate) link: Option<HeaderValue>,
}

/// Weighs an entry by its bytes.
#[derive(Debug, Clone)]
struct InBytes;

impl Weighter<Key, Arc<Answer>> for InBytes {
    fn weight(&self, key: &Key, answer: &Arc<Answer>) -> u64 {
        (answer.body.len() + key.target.len() + ENTRY) as u64
    }
}

/// Cache of rendered responses.
#[derive(Debug)]
pub(crate) struct Answers {
    kept: Cache<Key, Arc<Answer>, InBytes, RandomState>,
    metrics: CacheMetrics,
}

impl Answers {
    /// Creates a cache with this capacity in bytes.
    pub(crate) fn new(bytes: u64, metrics: CacheMetrics) -> Self {
        let kept = Cache::with(ANSWERS, bytes, InBytes, RandomState::default(), DefaultLifecycle::default());
        Self { kept, metrics }
    }

    /// Cached response, or the result of `fill`. Concurrent calls share one `fill`, and errors are not cached.
    pub(crate) async fn fill<E>(
        &self,
        key: &Key,
        fill: impl Future<Output = Result<Answer, E>>,
    ) -> Result<Arc<Answer>, E> {
        self.kept.get_or_insert_async(key, async { fill.await.map(Arc::new) }).await
    }

    /// Cached response, if present.
    pub(crate) fn kept(&self, key: &Key) -> Option<Arc<Answer>> {
        let answer = self.kept.get(key);
        self.metrics.looked(answer.is_some());
        answer
    }

    /// Inserts a response rendered elsewhere.
    pub(crate) fn keep(&self, key: Key, answer: Answer) {
        self.kept.insert(key, Arc::new(answer));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;

    use super::*;
    use crate::metrics::Metrics;

    fn answers(bytes: u64) -> Answers {
        Answers::new(bytes, Metrics::new().expect("figures").cache)
    }

    fn key(target: &str) -> Key {
        let version = Version { generation: 1, sequence: 1, as_of: None, position: 1 };
        let today = NaiveDate::from_ymd_opt(2024, 6, 28).expect("a day");
        Key { version, today, format: Format::Json, tier: None, target: target.to_owned() }
    }

    fn answer(bytes: usize) -> Answer {
        Answer { body: vec![b'0'; bytes].into(), etag: HeaderValue::from_static("W/\"1\""), link: None }
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
            answers.fill(&key, fill).await.map(|answer| answer.body.len())
        };
        let asked = join_all((0..5).map(|_| ask())).await;
        assert_eq!(asked, [Err("the first fails"), Ok(2), Ok(2), Ok(2), Ok(2)]);
        assert_eq!((ask().await, made.get()), (Ok(2), 2));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let answers = answers(1 << 20);
        for number in 0..10_000 {
            answers.keep(key(&number.to_string()), answer(1_000));
        }
        assert!(answers.kept.weight() <= 1 << 20);
        assert!(answers.kept(&key("9999")).is_some());
        answers.keep(key("larger than all"), answer(2 << 20));
        assert!(answers.kept(&key("larger than all")).is_none());
    }

    #[test]
    fn nothing_is_kept_without_room() {
        let answers = answers(0);
        answers.keep(key("/"), answer(1));
        assert!(answers.kept(&key("/")).is_none());
    }
}
