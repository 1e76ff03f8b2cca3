//! Cache of the benchmark's monthly returns, for responses that show earlier data versions. A security's beta is
//! measured against the benchmark.

use std::sync::Arc;

use chrono::NaiveDate;
use market::metrics::MonthlyReturns;
use quick_cache::sync::Cache;
use store::ids::JournalPosition;

/// Monthly returns of the benchmark. The key is the journal position of the data version, and the date for which the
/// metrics are calculated. The value is `None` if the data version has no benchmark.
pub(crate) type BenchmarkCache = Cache<(JournalPosition, NaiveDate), Arc<Option<MonthlyReturns>>>;

/// Maximum number of entries in the cache. An entry with thirty years of monthly returns takes about 10 kB.
pub(super) const MAX_BENCHMARKS: usize = 256;
