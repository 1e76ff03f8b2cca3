//! Batch writer: commits the facts of a batch together with the new checkpoint, and derives the read tables.
//!
//! Invariant: every commit first checks that the writer's lease has the newest epoch.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use chrono::NaiveDate;
use event_log::message::LogMessage;
use event_log::sequence::Sequence;
use market::symbol::Symbol;
use store::symbol_facts::fill_symbol_links;
use telemetry::failpoint;
use tokio::time::Instant;
use tokio_postgres::{Client, Transaction};

use crate::apply::batch::apply_messages;
use crate::apply::consumer::MessageBatch;
use crate::daemon::lease::{self, Lease};
use crate::derive::pipeline::CHUNK_SECURITIES;
use crate::derive::touched::{DerivationSummary, DeriversByGeneration};
use crate::error::RunError;
use crate::facts::FactCache;
use crate::facts::dividend_feeds::fill_dividend_feeds;
use crate::generation::Generation;
use crate::monitoring::ProjectorMetrics;

const ATTENTION: &str = include_str!("../../queries/attention.sql");
const ADVANCE: &str = include_str!("../../queries/checkpoint_advance.sql");
/// Updates the planner statistics of the facts.
pub(crate) const ANALYZE: &str = "analyze records; analyze bars";
const NOTIFY: &str = "select pg_notify('projection', $1)";

const FACTS_BYTES: &str = "select pg_table_size('records') + pg_table_size('bars')";
/// Minimum bytes of log messages after which the planner statistics are updated again.
const ANALYZE_MIN_BYTES: usize = 4 << 20;
const ANALYZE_FRACTION: i64 = 8;
/// Time without a derivation after which the read tables are derived during a backlog of log messages. If the backlog
/// will end within this time, it is applied first.
const MAX_DERIVE_DELAY: Duration = Duration::from_secs(60);
/// Factor that limits the cost of derivations during a backlog. The time between two derivations is at least this
/// factor times the duration of the previous derivation.
const DERIVE_COST_FACTOR: u32 = 4;

/// State of the control tables between two batches.
pub(crate) struct Attention {
    /// True if the operator has paused the projector.
    pub(crate) paused: bool,
    /// Month whose quality is to be measured; `None` if it was measured.
    pub(crate) month: Option<NaiveDate>,
}

/// Writer of batches under one lease. It must be dropped after an error, because its caches may contain uncommitted
/// state.
pub(crate) struct BatchWriter<'a> {
    lease: Lease,
    genesis: String,
    log: Stream,
    lease_length: Duration,
    derivers: DeriversByGeneration,
    cache: FactCache,
    derived: Instant,
    /// Duration of the last derivation.
    deriving: Duration,
    /// Number of messages applied since the last derivation.
    underived: u64,
    /// Number of log bytes applied since the last update of the planner statistics.
    unanalyzed: usize,
    /// Second connection, which reads committed facts while the batch's transaction writes read tables.
    reader: Client,
    /// `true` if the next messages have already failed several times. A row of the next batch that fails again then
    /// becomes a dead letter.
    sets_aside_repeated: bool,
    metrics: &'a ProjectorMetrics,
}

impl<'a> BatchWriter<'a> {
    /// Creates a writer. The lease expires after `lease_length` without renewal.
    pub(crate) fn new(
        lease: Lease,
        (genesis, log): (String, Stream),
        lease_length: Duration,
        reader: Client,
        cache: FactCache,
        sets_aside_repeated: bool,
        metrics: &'a ProjectorMetrics,
    ) -> Self {
        Self {
            lease,
            genesis,
            log,
            lease_length,
            derivers: DeriversByGeneration::new(),
            cache,
            derived: Instant::now(),
            deriving: Duration::ZERO,
            underived: 0,
            unanalyzed: 0,
            reader,
            sets_aside_repeated,
            metrics,
        }
    }

    /// Derives the read tables if a policy change or a dead-letter retry has requested a derivation, unless the
    /// projector is paused.
    pub(crate) async fn derive_on_request(
        &mut self,
        client: &mut Client,
        sequence: Sequence,
    ) -> Result<Attention, RunError> {
        let row = client.query_one(ATTENTION, &[&self.lease.fact_set]).await?;
        let (paused, dirty): (bool, bool) = (row.try_get("paused")?, row.try_get("dirty")?);
        if dirty && !paused {
            self.write_batch(client, &MessageBatch::default(), sequence).await?;
        }
        Ok(Attention { paused, month: row.try_get("month")? })
    }

    /// Adds rows that an older program version did not store: dividend years of sources, and links between symbols.
    pub(crate) async fn complete_facts(&self, client: &mut Client) -> Result<(), RunError> {
        let transaction = client.transaction().await?;
        lease::confirm_epoch(&transaction, &self.lease).await?;
        fill_dividend_feeds(&transaction, &self.lease.fact_set).await?;
        fill_symbol_links(&transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Applies a batch. Then derives the read tables if no further message follows, or if the backlog of messages lasts
    /// too long.
    pub(crate) async fn write_batch(
        &mut self,
        client: &mut Client,
        batch: &MessageBatch,
        sequence: Sequence,
    ) -> Result<(), RunError> {
        debug_assert!(sequence >= self.lease.checkpoint, "the checkpoint never decreases");
        debug_assert!(
            batch.messages.is_sorted_by(|a, b| a.sequence < b.sequence)
                && batch.messages.last().is_none_or(|last| last.sequence == sequence),
            "the checkpoint is the last message of the batch"
        );
        let started = Instant::now();
        let _writing = self.metrics.begin_write(&self.lease.fact_set);
        let mut transaction = client.transaction().await?;
        lease::confirm_epoch(&transaction, &self.lease).await?;
        let repeated = self.sets_aside_repeated;
        let (fact_set, messages) = (&self.lease.fact_set, &batch.messages);
        apply_messages(&mut transaction, fact_set, messages, &self.log, &mut self.cache, repeated).await?;
        self.unanalyzed += batch.bytes();
        let lease_length = self.lease_length.as_secs_f64();
        let message = batch.messages.last().map(LogMessage::id);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&self.lease.fact_set, &sequence.to_i64(), &self.genesis, &lease_length, &message];
        let advanced = transaction.execute(ADVANCE, &values).await?;
        debug_assert_eq!(advanced, 1, "the lease names a fact set");
        let applying = started.elapsed();
        self.metrics.apply.observe(applying.as_secs_f64());
        failpoint!("projector.applied");
        let mut outcome = DerivationSummary::default();
        // Take the derivers out of `self`, so that an error drops them. Their caches may then contain uncommitted
        // state.
        let mut derivers = std::mem::take(&mut self.derivers);
        self.underived += batch.messages.len() as u64;
        if batch.is_last() || self.is_derivation_overdue(batch.pending) {
            let deriving = Instant::now();
            let mut plans = self.plan_derivations(&transaction, &mut derivers).await?;
            let facts_first = plans.iter().any(|plan| plan.touched.len() > CHUNK_SECURITIES);
            if facts_first {
                // Commit the facts, so that `reader` can read them. The symbols of the facts stay dirty until the
                // derivation.
                transaction.commit().await?;
                failpoint!("projector.facts_committed");
                self.analyze_facts().await?;
                transaction = client.transaction().await?;
                lease::confirm_epoch(&transaction, &self.lease).await?;
                // The derivation clears all dirty symbols, including those that other transactions have just added.
                // Plan again, so that the added symbols are derived too.
                let again = self.plan_derivations(&transaction, &mut derivers).await?;
                plans = again.into_iter().map(|plan| plan.merge(&plans)).collect();
            }
            outcome = self.derive_plans(&transaction, &mut derivers, &plans, facts_first, sequence).await?;
            // A derivation may take longer than the lease.
            lease::extend_lease(&transaction, &self.lease, self.lease_length).await?;
            (self.derived, self.deriving, self.underived) = (Instant::now(), deriving.elapsed(), 0);
            self.metrics.derive.observe(self.deriving.as_secs_f64());
            self.metrics.derived.inc_by(outcome.securities as u64);
            failpoint!("projector.derived");
        }
        let committing = Instant::now();
        transaction.commit().await?;
        self.metrics.commit.observe(committing.elapsed().as_secs_f64());
        self.derivers = derivers;
        self.sets_aside_repeated &= batch.messages.is_empty();
        failpoint!("projector.committed");
        tracing::info!(sequence = sequence.to_u64(), messages = batch.messages.len(), pending = batch.pending, securities = outcome.securities, changes = outcome.changes, cache = self.cache.bytes(), ?applying, committing = ?committing.elapsed(), elapsed = ?started.elapsed(), "applied");
        Ok(())
    }

    /// Updates the planner statistics of the facts after a large load. Small daily changes are left to autovacuum.
    async fn analyze_facts(&mut self) -> Result<(), RunError> {
        if self.unanalyzed > ANALYZE_MIN_BYTES {
            let bytes: i64 = self.reader.query_one(FACTS_BYTES, &[]).await?.try_get(0)?;
            if i64::try_from(self.unanalyzed).is_ok_and(|change| change > bytes / ANALYZE_FRACTION) {
                self.reader.batch_execute(ANALYZE).await?;
                self.unanalyzed = 0;
            }
        }
        Ok(())
    }

    /// `true` if the last derivation is too long ago and the `pending` messages will not be applied soon.
    fn is_derivation_overdue(&self, pending: u64) -> bool {
        let waited = self.derived.elapsed();
        let ahead = waited.as_secs_f64() * pending as f64 / self.underived.max(1) as f64;
        waited > MAX_DERIVE_DELAY.max(self.deriving * DERIVE_COST_FACTOR)
            && ahead > MAX_DERIVE_DELAY.as_secs_f64()
    }

    /// Plans the derivations after a batch. There is one derivation for every generation that uses the writer's fact
    /// set and follows the log.
    async fn plan_derivations(
        &self,
        transaction: &Transaction<'_>,
        derivers: &mut DeriversByGeneration,
    ) -> Result<Vec<DerivationPlan>, RunError> {
        let mut plans = Vec::new();
        let tailing = Generation::load_tailing(transaction, &self.lease.fact_set).await?;
        // Forget dropped generations.
        derivers.retain(|id, _| tailing.iter().any(|generation| generation.id == *id));
        for generation in tailing {
            generation.set_local_search_path(transaction).await?;
            let deriver = derivers.remove(&generation.id).unwrap_or_default();
            let (deriver, touched) = deriver.find_touched(transaction, &generation).await?;
            derivers.insert(generation.id, deriver);
            plans.push(DerivationPlan { generation, touched });
        }
        Ok(plans)
    }

    async fn derive_plans(
        &mut self,
        transaction: &Transaction<'_>,
        derivers: &mut DeriversByGeneration,
        plans: &[DerivationPlan],
        facts_first: bool,
        sequence: Sequence,
    ) -> Result<DerivationSummary, RunError> {
        let (mut outcome, cache) = (DerivationSummary::default(), &mut self.cache);
        for DerivationPlan { generation, touched } in plans {
            let Some(deriver) = derivers.remove(&generation.id) else { continue };
            generation.set_local_search_path(transaction).await?;
            let (deriver, derived) = if facts_first {
                generation.set_session_search_path(&self.reader).await?;
                deriver.derive(transaction, &self.reader, cache, generation, touched, sequence).await?
            } else {
                deriver.derive(transaction, transaction, cache, generation, touched, sequence).await?
            };
            derivers.insert(generation.id, deriver);
            outcome.securities += derived.securities;
            outcome.changes += derived.changes;
            transaction.execute(NOTIFY, &[&format!("{}.{sequence}", generation.id)]).await?;
        }
        Ok(outcome)
    }
}

/// Securities to derive for one generation.
struct DerivationPlan {
    generation: Generation,
    touched: BTreeSet<Symbol>,
}

impl DerivationPlan {
    /// Adds the securities from the earlier plan for the same generation.
    fn merge(mut self, before: &[DerivationPlan]) -> Self {
        let same = before.iter().filter(|plan| plan.generation.id == self.generation.id);
        self.touched.extend(same.flat_map(|plan| plan.touched.iter().cloned()));
        self
    }
}
