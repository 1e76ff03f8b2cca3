//! Cache of the benchmarks of earlier data versions.

use std::sync::Arc;

use chrono::NaiveDate;
use market::metrics::MonthlyReturns;
use quick_cache::sync::Cache;
use store::ids::JournalPosition;

/// Benchmarks by the position of the version and the market date; `None` for a version without its benchmark.
pub(crate) type BenchmarkCache = Cache<(JournalPosition, NaiveDate), Arc<Option<MonthlyReturns>>>;

/// Maximum number of cached benchmarks. Thirty years of monthly returns are about 10 kB.
pub(super) const MAX_BENCHMARKS: usize = 256;
