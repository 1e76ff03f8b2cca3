//! Derivation pipeline with three concurrent stages: load a chunk of securities, derive it on all cores, write
//! it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use market::history::{DividendFeeds, History};
use market::identity::Identity;
use market::metrics;
use market::metrics::Derivation;
use market::metrics::fund::{FundRows, fund};
use market::symbol::Symbol;
use rayon::prelude::*;
use store::facts::FactsError;
use store::history::{
    FactsBySymbol, ServedYear, build_history, fetch_facts, fetch_facts_to_derive, symbols_of_identities,
};
use telemetry::failpoint;
use tokio::sync::mpsc;
use tokio_postgres::GenericClient;

use crate::derive::{DerivationTarget, GenerationCache, MarketContext, published_as_stored};
use crate::error::DeriveError;
use crate::facts::FactCache;
use crate::write::encoded_security::{EncodedSecurity, PriceYears};
use crate::write::fingerprints::{HASHER, PublishedFingerprints, load_fingerprints};
use crate::write::journal::Journal;
use crate::write::{PreparedStatements, read_tables};

/// Number of securities per chunk. Up to five chunks are in memory: in three stages and two queues.
pub(crate) const CHUNK_SECURITIES: usize = 128;
/// Capacity of the queues between the stages, in chunks.
const QUEUE_DEPTH: usize = 1;

/// Inputs that the derivations of all chunks share.
pub(crate) struct SharedInputs {
    pub(crate) market: MarketContext,
    pub(crate) dividend_feeds: DividendFeeds,
}

struct InputChunk {
    subjects: Vec<DerivationTarget>,
    facts: FactsBySymbol,
    /// `true` if the facts are cached after the derivation.
    is_cached: bool,
}

struct DerivedChunk {
    built: Vec<(DerivationTarget, EncodedSecurity)>,
    facts: FactsBySymbol,
}

/// The caches that the stages share.
struct Caches<'a> {
    generation: &'a mut GenerationCache,
    facts: &'a mut FactCache,
}

fn lock<'l, 'a>(caches: &'l Mutex<Caches<'a>>) -> MutexGuard<'l, Caches<'a>> {
    // The lock is poisoned only by a panic, which ends the derivation and drops the caches.
    caches.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Derives securities and writes them in the transaction of `statements`. Returns the number of changes to published
/// rows. `reader` must see the same facts as the transaction.
pub(crate) async fn derive_all(
    statements: &PreparedStatements<'_>,
    reader: &impl GenericClient,
    journal: &Journal,
    identities: &[&Identity],
    inputs: &Arc<SharedInputs>,
    generation: &mut GenerationCache,
    facts: &mut FactCache,
) -> Result<usize, DeriveError> {
    let caches = Mutex::new(Caches { generation, facts });
    let (loaded, mut to_derive) = mpsc::channel(QUEUE_DEPTH);
    let (derived, mut to_write) = mpsc::channel(QUEUE_DEPTH);
    let loading = async {
        let loaded = loaded;
        for identities in identities.chunks(CHUNK_SECURITIES) {
            let chunk = load_chunk(reader, identities, &inputs.market, &caches).await?;
            // Sending fails only if a later stage has failed, and that stage returns its error.
            let _ = loaded.send(chunk).await;
        }
        Ok::<_, DeriveError>(())
    };
    let deriving = async {
        let derived = derived;
        while let Some(chunk) = to_derive.recv().await {
            let (chunk, incomplete) = derive_chunk(reader, chunk, inputs).await?;
            lock(&caches).generation.full_bars.extend(incomplete);
            let _ = derived.send(chunk).await;
        }
        Ok::<_, DeriveError>(())
    };
    let writing = async {
        let mut changes = 0;
        while let Some(chunk) = to_write.recv().await {
            let updates: Vec<_> =
                chunk.built.iter().map(|(subject, built)| (&subject.served, built)).collect();
            changes += read_tables::replace_securities(statements, journal, &updates).await?;
            failpoint!("projector.deriving");
            chunk.update_caches(&mut lock(&caches))?;
        }
        Ok(changes)
    };
    let ((), (), changes) = tokio::try_join!(loading, deriving, writing)?;
    Ok(changes)
}

async fn load_chunk(
    reader: &impl GenericClient,
    identities: &[&Identity],
    market: &MarketContext,
    caches: &Mutex<Caches<'_>>,
) -> Result<InputChunk, DeriveError> {
    let is_new = lock(caches).generation.is_new;
    let is_unknown = |symbol: &&Symbol| !is_new && !lock(caches).generation.served.contains_key(*symbol);
    let unknown = identities.iter().map(|identity| &identity.symbol).filter(is_unknown);
    let unknown: Vec<Symbol> = unknown.cloned().collect();
    let mut read = match unknown.is_empty() {
        true => HashMap::new(),
        false => load_fingerprints(reader, &unknown).await?,
    };
    let subjects = identities.iter().map(|identity| {
        let known = &mut lock(caches).generation;
        // Move the fingerprints out of the cache. The writing stage inserts the new fingerprints. After an error, the
        // whole cache is dropped.
        let served = known.served.remove(&identity.symbol);
        DerivationTarget {
            identity: (*identity).clone(),
            served: served
                .or_else(|| read.remove(&identity.symbol))
                .unwrap_or_else(|| PublishedFingerprints { is_new, ..PublishedFingerprints::default() }),
            closes: known.close_only_years(identity, market),
        }
    });
    let subjects: Vec<DerivationTarget> = subjects.collect();
    let facts = load_facts(reader, &subjects, caches).await?;
    let is_cached = !lock(caches).facts.is_disabled();
    Ok(InputChunk { subjects, facts, is_cached })
}

/// Loads the facts of the securities' symbols from the cache or from Postgres.
async fn load_facts(
    reader: &impl GenericClient,
    subjects: &[DerivationTarget],
    caches: &Mutex<Caches<'_>>,
) -> Result<FactsBySymbol, DeriveError> {
    let (mut facts, mut missing) = (FactsBySymbol::new(), Vec::new());
    for symbol in symbols_of_identities(subjects.iter().map(|subject| &subject.identity)) {
        match lock(caches).facts.get(symbol) {
            Some(held) => drop(facts.insert(symbol.to_owned(), Arc::clone(held))),
            None => missing.push(symbol),
        }
    }
    if !missing.is_empty() {
        let of_missing = subjects
            .iter()
            .filter(|subject| missing.binary_search(&subject.identity.symbol.as_str()).is_ok());
        let closes: Vec<ServedYear<'_>> =
            of_missing.flat_map(DerivationTarget::published_close_years).collect();
        facts.extend(fetch_facts_to_derive(reader, &missing, &closes).await?);
    }
    Ok(facts)
}

impl DerivedChunk {
    /// Stores the written fingerprints and facts in the caches.
    fn update_caches(self, caches: &mut Caches<'_>) -> Result<(), DeriveError> {
        let DerivedChunk { built, facts: mut by_symbol } = self;
        let Caches { generation, facts } = caches;
        facts.limit_by_resident_bytes(telemetry::process::resident_bytes());
        for (mut subject, mut built) in built {
            generation.sectors.replace_member(&built.symbol, built.member.take());
            subject.served = built.into_fingerprints(&subject.served)?;
            if !facts.is_disabled() {
                subject.cache_facts(&mut by_symbol, facts);
            }
            generation.served.insert(subject.identity.symbol, subject.served);
        }
        Ok(())
    }
}

/// Derives a chunk. If close prices do not suffice for a security, derives it again with all price columns. Also
/// returns the securities that always need all columns.
async fn derive_chunk(
    reader: &impl GenericClient,
    chunk: InputChunk,
    inputs: &Arc<SharedInputs>,
) -> Result<(DerivedChunk, Vec<Symbol>), DeriveError> {
    let is_cached = chunk.is_cached;
    let (mut derived, incomplete) = derive_in_parallel(chunk, inputs).await?;
    let (mut subjects, mut symbols) = (Vec::new(), Vec::new());
    for (mut subject, is_permanent) in incomplete {
        subject.closes = 0..0;
        if is_permanent {
            symbols.push(subject.identity.symbol.clone());
        }
        subjects.push(subject);
    }
    if !subjects.is_empty() {
        let wanted = symbols_of_identities(subjects.iter().map(|subject| &subject.identity));
        let facts = fetch_facts(reader, &wanted).await?;
        let (whole, _) = derive_in_parallel(InputChunk { subjects, facts, is_cached }, inputs).await?;
        derived.built.extend(whole.built);
        derived.facts.extend(whole.facts);
    }
    Ok((derived, symbols))
}

/// Derives a chunk on all cores. Also returns the securities that must be derived again with all columns of bars. Each
/// of them has a flag, which is `true` if its later derivations need all columns too.
async fn derive_in_parallel(
    chunk: InputChunk,
    inputs: &Arc<SharedInputs>,
) -> Result<(DerivedChunk, Vec<(DerivationTarget, bool)>), DeriveError> {
    let inputs = Arc::clone(inputs);
    let derive = move || {
        let InputChunk { subjects, mut facts, is_cached } = chunk;
        let derived = subjects.into_par_iter().map(|subject| {
            let outcome = derive_and_encode(&subject, &facts, &inputs)?;
            Ok((subject, outcome))
        });
        let derived = derived.collect::<Result<Vec<_>, DeriveError>>()?;
        if is_cached {
            shrink_facts(&derived, &mut facts)?;
        }
        Ok::<_, DeriveError>((derived, facts))
    };
    let (outcomes, facts) = tokio::task::spawn_blocking(derive).await.map_err(DeriveError::Ended)??;
    let (mut built, mut incomplete) = (Vec::with_capacity(outcomes.len()), Vec::new());
    for (subject, outcome) in outcomes {
        match outcome {
            EncodeOutcome::Encoded(outcome) => built.push((subject, *outcome)),
            EncodeOutcome::NeedsFullBars { is_permanent } => incomplete.push((subject, is_permanent)),
        }
    }
    Ok((DerivedChunk { built, facts }, incomplete))
}

fn shrink_facts(
    derived: &[(DerivationTarget, EncodeOutcome)],
    facts: &mut FactsBySymbol,
) -> Result<(), DeriveError> {
    let mut published = HashMap::new();
    for (subject, outcome) in derived {
        if let EncodeOutcome::Encoded(encoded) = outcome {
            let years = encoded.published_years(&subject.served)?;
            published.insert(subject.identity.symbol.as_str(), (subject, years));
        }
    }
    facts.par_iter_mut().try_for_each(|(symbol, facts)| match published.get(symbol.as_str()) {
        Some((subject, years)) => Ok(subject.shrink_facts(facts, years)?),
        None => Ok(()),
    })
}

enum EncodeOutcome {
    Encoded(Box<EncodedSecurity>),
    NeedsFullBars { is_permanent: bool },
}

fn derive_and_encode(
    subject: &DerivationTarget,
    facts: &FactsBySymbol,
    SharedInputs { market, dividend_feeds }: &SharedInputs,
) -> Result<EncodeOutcome, DeriveError> {
    let closes = |year, digest| subject.closes_suffice_for(year, digest);
    let history = match build_history(&subject.identity, facts, dividend_feeds, closes) {
        Err(FactsError::ClosesOnly { .. }) => {
            return Ok(EncodeOutcome::NeedsFullBars { is_permanent: false });
        }
        history => history?,
    };
    let Some(security) = derive_catching_panics(&history, market, &subject.served)? else {
        return Ok(EncodeOutcome::NeedsFullBars { is_permanent: true });
    };
    let DerivedSecurity { derived, dividends, fund } = security;
    if history.security.is_none() && fund.is_none() && !derived.has_live_rows() {
        return Ok(EncodeOutcome::Encoded(Box::new(EncodedSecurity::unlisted(&subject.identity))));
    }
    let stored = published_as_stored(&subject.identity, &history, &derived, facts);
    let kept = history.prices.into_iter().flat_map(|prices| prices.closes_only).collect();
    let years = PriceYears { unchanged: kept, stored };
    let derived = (&derived, dividends);
    let built = EncodedSecurity::encode(&subject.identity, derived, fund.as_ref(), years, &subject.served)?;
    Ok(EncodeOutcome::Encoded(Box::new(built)))
}

/// Derived rows of one security. `dividends` maps a calendar year to a hash of all dividends with an ex-date in that
/// year.
struct DerivedSecurity {
    derived: metrics::DerivedRows,
    dividends: BTreeMap<i32, u64>,
    fund: Option<FundRows>,
}

/// Derives one security; `None` if all price columns are needed. A panic in a metric becomes an error with the symbol.
fn derive_catching_panics(
    history: &History,
    market: &MarketContext,
    served: &PublishedFingerprints,
) -> Result<Option<DerivedSecurity>, DeriveError> {
    let derive = || {
        let market = market.derivation_context();
        let measures = Derivation::new(history, &market);
        if !measures.closes_suffice() {
            return None;
        }
        let dividends = measures.fingerprint_dividends(&HASHER);
        let derived = match served.unchanged_dividends(&dividends) {
            Some(_) => measures.rows_without_dividends(),
            None => measures.rows(),
        };
        let fund = fund(history, &market, &derived.stock, &derived.metrics);
        Some(DerivedSecurity { derived, dividends, fund })
    };
    std::panic::catch_unwind(derive).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        DeriveError::Measure {
            symbol: history.symbol.clone(),
            message: message.unwrap_or("it panicked").to_owned(),
        }
    })
}
