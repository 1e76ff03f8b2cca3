//! Securities derived and written chunk by chunk: while one is on the cores, those after it are read and those before it
//! written.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use market::history::History;
use market::identity::Identity;
use market::measure::fund::{Fund, fund};
use market::measure::{self, Measures};
use market::symbol::Symbol;
use rayon::prelude::*;
use store::facts::FactsError;
use store::history::{FactsBySymbol, ServedYear, fetch_facts, fetch_facts_to_derive, history, symbols_of};
use telemetry::failpoint;
use tokio::sync::mpsc;
use tokio_postgres::GenericClient;

use crate::derive::input::{Known, MarketNow, Subject};
use crate::error::DeriveError;
use crate::facts::fact_cache::Resident;
use crate::write::changes::Change;
use crate::write::encoded_security::Built;
use crate::write::fingerprints::{HASHES, Served, load_served};
use crate::write::journal::Journal;
use crate::write::prepared_statements::Statements;
use crate::write::read_tables;

/// Securities derived and written at a time: five such chunks are in memory at most, one in each stage and between two.
pub(crate) const CHUNK: usize = 128;
/// Chunks that wait for a stage.
const WAITING: usize = 1;

/// Securities about to be derived.
struct Chunk {
    subjects: Vec<Subject>,
    facts: FactsBySymbol,
}

/// Securities about to be written.
struct Derived {
    built: Vec<(Subject, Built)>,
    facts: FactsBySymbol,
}

/// What is remembered of a generation.
struct Remembered<'a> {
    known: &'a mut Known,
    resident: &'a mut Resident,
}

/// The same, for the stages that a chunk goes through.
struct Shared<'a>(Mutex<Remembered<'a>>);

impl<'a> Shared<'a> {
    fn lock(&self) -> MutexGuard<'_, Remembered<'a>> {
        // Whoever panics with it takes the derivation along, and with that all that is remembered.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Derives securities in the transaction; `reader` sees the same facts, and the read tables as they were.
pub(crate) async fn derive_all(
    statements: &Statements<'_>,
    reader: &impl GenericClient,
    journal: &Journal,
    identities: &[&Identity],
    market: &Arc<MarketNow>,
    known: &mut Known,
    resident: &mut Resident,
) -> Result<Vec<Change>, DeriveError> {
    let remembered = Shared(Mutex::new(Remembered { known, resident }));
    let (loaded, mut to_derive) = mpsc::channel(WAITING);
    let (derived, mut to_write) = mpsc::channel(WAITING);
    let loading = async {
        let loaded = loaded;
        for identities in identities.chunks(CHUNK) {
            let chunk = load(reader, identities, market, &remembered).await?;
            // Nobody takes it where another stage has failed.
            let _ = loaded.send(chunk).await;
        }
        Ok::<_, DeriveError>(())
    };
    let deriving = async {
        let derived = derived;
        while let Some(chunk) = to_derive.recv().await {
            let (chunk, unclear) = derive_chunk(reader, chunk, market).await?;
            remembered.lock().known.whole.extend(unclear);
            let _ = derived.send(chunk).await;
        }
        Ok::<_, DeriveError>(())
    };
    let writing = async {
        let mut changes = Vec::new();
        while let Some(chunk) = to_write.recv().await {
            changes.extend(write(statements, journal, &chunk).await?);
            chunk.keep(&mut remembered.lock())?;
        }
        Ok(changes)
    };
    let ((), (), changes) = tokio::try_join!(loading, deriving, writing)?;
    Ok(changes)
}

async fn load(
    reader: &impl GenericClient,
    identities: &[&Identity],
    market: &MarketNow,
    remembered: &Shared<'_>,
) -> Result<Chunk, DeriveError> {
    let is_new = remembered.lock().known.is_new;
    let is_unknown = |symbol: &&Symbol| !is_new && !remembered.lock().known.served.contains_key(*symbol);
    let unknown = identities.iter().map(|identity| &identity.symbol).filter(is_unknown);
    let unknown: Vec<Symbol> = unknown.cloned().collect();
    let mut read = match unknown.is_empty() {
        true => HashMap::new(),
        false => load_served(reader, &unknown).await?,
    };
    let subjects = identities.iter().map(|identity| {
        let known = &mut remembered.lock().known;
        // It comes back as what is served then; after an error nothing is remembered at all.
        let served = known.served.remove(&identity.symbol);
        Subject {
            identity: (*identity).clone(),
            served: served
                .or_else(|| read.remove(&identity.symbol))
                .unwrap_or_else(|| Served { is_new, ..Served::default() }),
            closes: known.closes(identity, market),
        }
    });
    let subjects: Vec<Subject> = subjects.collect();
    let facts = facts_of(reader, &subjects, remembered).await?;
    Ok(Chunk { subjects, facts })
}

/// The facts of the securities' symbols, from memory where they are held.
async fn facts_of(
    reader: &impl GenericClient,
    subjects: &[Subject],
    remembered: &Shared<'_>,
) -> Result<FactsBySymbol, DeriveError> {
    let (mut facts, mut missing) = (FactsBySymbol::new(), Vec::new());
    for symbol in symbols_of(subjects.iter().map(|subject| &subject.identity)) {
        match remembered.lock().resident.get(symbol) {
            Some(held) => drop(facts.insert(symbol.to_owned(), Arc::clone(held))),
            None => missing.push(symbol),
        }
    }
    if !missing.is_empty() {
        let of_missing = subjects
            .iter()
            .filter(|subject| missing.binary_search(&subject.identity.symbol.as_str()).is_ok());
        let closes: Vec<ServedYear<'_>> = of_missing.flat_map(Subject::closes_served).collect();
        facts.extend(fetch_facts_to_derive(reader, &missing, &closes).await?);
    }
    Ok(facts)
}

impl Derived {
    /// Remembers what was written, and keeps the facts it came from in memory.
    fn keep(self, remembered: &mut Remembered<'_>) -> Result<(), DeriveError> {
        let Derived { built, mut facts } = self;
        let Remembered { known, resident } = remembered;
        resident.heed(telemetry::memory::resident_bytes());
        for (mut subject, mut built) in built {
            known.sectors.put(&built.symbol, built.member.take());
            subject.served = built.into_served(&subject.served)?;
            if !resident.is_off() {
                subject.keep_facts(&mut facts, resident)?;
            }
            known.served.insert(subject.identity.symbol, subject.served);
        }
        Ok(())
    }
}

/// Derives a chunk. Securities that need more than closes are read again, whole. Also gives the symbols that will need
/// it the next time too.
async fn derive_chunk(
    reader: &impl GenericClient,
    chunk: Chunk,
    market: &Arc<MarketNow>,
) -> Result<(Derived, Vec<Symbol>), DeriveError> {
    let (mut derived, unclear) = on_all_cores(chunk, market).await?;
    let (mut subjects, mut symbols) = (Vec::new(), Vec::new());
    for Unclear { mut subject, again } in unclear {
        subject.closes = 0..0;
        if again {
            symbols.push(subject.identity.symbol.clone());
        }
        subjects.push(subject);
    }
    if !subjects.is_empty() {
        let wanted = symbols_of(subjects.iter().map(|subject| &subject.identity));
        let facts = fetch_facts(reader, &wanted).await?;
        let (whole, _) = on_all_cores(Chunk { subjects, facts }, market).await?;
        derived.built.extend(whole.built);
        derived.facts.extend(whole.facts);
    }
    Ok((derived, symbols))
}

/// A security whose closes alone do not suffice.
struct Unclear {
    subject: Subject,
    /// Whether they will not suffice the next time either.
    again: bool,
}

async fn on_all_cores(chunk: Chunk, market: &Arc<MarketNow>) -> Result<(Derived, Vec<Unclear>), DeriveError> {
    let market = Arc::clone(market);
    let derive = move || {
        let Chunk { subjects, facts } = chunk;
        let derived = subjects.into_par_iter().map(|subject| {
            let outcome = build(&subject, &facts, &market)?;
            Ok((subject, outcome))
        });
        Ok::<_, DeriveError>((derived.collect::<Result<Vec<_>, DeriveError>>()?, facts))
    };
    let (outcomes, facts) = tokio::task::spawn_blocking(derive).await.map_err(DeriveError::Ended)??;
    let (mut built, mut unclear) = (Vec::with_capacity(outcomes.len()), Vec::new());
    for (subject, outcome) in outcomes {
        match outcome {
            Outcome::Built(outcome) => built.push((subject, *outcome)),
            Outcome::Unclear { again } => unclear.push(Unclear { subject, again }),
        }
    }
    Ok((Derived { built, facts }, unclear))
}

enum Outcome {
    Built(Box<Built>),
    Unclear { again: bool },
}

fn build(subject: &Subject, facts: &FactsBySymbol, market: &MarketNow) -> Result<Outcome, DeriveError> {
    let history = match history(&subject.identity, facts, |year, digest| subject.suffices(year, digest)) {
        Err(FactsError::ClosesOnly { .. }) => return Ok(Outcome::Unclear { again: false }),
        history => history?,
    };
    let Some(figures) = derive_guarded(&history, market, &subject.served)? else {
        return Ok(Outcome::Unclear { again: true });
    };
    let Figures { derived, dividends, fund } = figures;
    if history.security.is_none() && fund.is_none() && !derived.stands() {
        return Ok(Outcome::Built(Box::new(Built::unlisted(&subject.identity))));
    }
    let kept = history.prices.into_iter().flat_map(|prices| prices.closes_only).collect();
    let derived = (&derived, dividends);
    let built = Built::of(&subject.identity, derived, fund.as_ref(), kept, &subject.served)?;
    Ok(Outcome::Built(Box::new(built)))
}

/// What is derived of one security, with the marks of its dividends.
struct Figures {
    derived: measure::Derived,
    dividends: BTreeMap<i32, u64>,
    fund: Option<Fund>,
}

/// Derives one security; of its dividends no row is made where they are served. `None` where its closes do not suffice. A
/// measure that panics names its security.
fn derive_guarded(
    history: &History,
    market: &MarketNow,
    served: &Served,
) -> Result<Option<Figures>, DeriveError> {
    let derive = || {
        let market = market.borrowed();
        let measures = Measures::of(history, &market);
        if !measures.closes_suffice() {
            return None;
        }
        let dividends = measures.mark_dividends(&HASHES);
        let derived = match served.dividends(&dividends) {
            Some(_) => measures.rows_but_dividends(),
            None => measures.rows(),
        };
        let fund = fund(history, &market, &derived.stock, &derived.metrics);
        Some(Figures { derived, dividends, fund })
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

async fn write(
    statements: &Statements<'_>,
    journal: &Journal,
    derived: &Derived,
) -> Result<Vec<Change>, DeriveError> {
    let built = derived.built.iter().map(|(subject, built)| (&subject.served, built));
    let built: Vec<(&Served, &Built)> = built.collect();
    let changes = read_tables::replace(statements, journal, &built).await?;
    failpoint!("projector.deriving");
    Ok(changes)
}
