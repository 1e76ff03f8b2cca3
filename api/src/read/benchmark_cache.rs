//! Cache of benchmark returns of earlier data versions.

use std::sync::Arc;

use chrono::NaiveDate;
use market::metrics::MonthlyReturns;
use quick_cache::sync::Cache;
use store::ids::JournalPosition;

/// Monthly benchmark returns of a data version, by its journal position and market date. `None` if the data version has
/// no benchmark.
pub(crate) type BenchmarkCache = Cache<(JournalPosition, NaiveDate), Arc<Option<MonthlyReturns>>>;

/// Maximum number of cached benchmarks. Thirty years of monthly returns are about 10 kB.
pub(super) const MAX_BENCHMARKS: usize = 256;
