//! `GET /v1/stocks/{symbol}/revisions`: changes of served dividends, splits and headline figures.
//!
//! Revisions of one security. A revision is a value that differs between two consecutive served data versions. For this
//! comparison, both versions are derived for the same market date.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::America::New_York;
use market::history::SourcePolicy;
use market::identity::Identity;
use market::metrics::revisions::revised_values;
use market::metrics::{self, DerivationContext, DerivedRows, METHOD_VERSION, Rules};
use market::row::{JsonColumn, RevisedKind, Revision, RevisionReason, TableRow};
use store::past_facts::FactHistory;
use store::view::View;
use tokio_postgres::Row;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::parameters::{
    Direction, Output, Page, PageOptions, RequestedSymbol, SortValue, Sortable, parameters,
};
use crate::read::lookup::{self, PastVersion, find_current_version};
use crate::read::{DataVersion, ServedGeneration};
use crate::render::envelope::{Depth, List, Warning};
use crate::routes::endpoint;
use crate::routes::past::security::load_fact_history;

const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 200,
    keys: &["known_at"],
    order: &[("known_at", Direction::Descending)],
};

parameters! {
    /// Parameters of a symbol's revisions.
    pub(crate) struct RevisionsParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// Kinds of revised values, comma-separated: dividend, split, figure (a metric). Default: all.
        kind: Option<Vec<RevisedKind>> = reader.read_words("kind", RevisedKind::ALL),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(Revision::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;
}

impl Sortable for Revision {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Number(self.known_at.timestamp_micros().into()))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        let id = self.id.as_deref().unwrap_or_default();
        Cow::Owned(format!("{}\0{}\0{id}\0{}", self.data_version, self.kind, self.field))
    }
}

endpoint! {
    /// Revisions
    ///
    /// Changes of values in responses, newest first. Each row has the time and the reason of a change, and the value
    /// before and after the change. It also has the first and the latest value of the changed field. The values before
    /// and after a change are computed for the same market date. The passage of time alone therefore causes no
    /// revision. A revision is left out if its time or its ex-date, now or earlier, is before the tier's history.
    get "/v1/stocks/{symbol}/revisions", tag "Stocks", returns "A page of revisions",
    revisions(Access<Free, RevisionsParameters>) -> List<Revision> { respond(render) }
}

async fn render(context: HandlerContext<RevisionsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let current = find_current_version(&context.generation).await?;
    let found = find_revisions(&context.generation, &current, &asked.symbol).await?;
    let start = context.first_day_of_tier_history();
    // A record that a correction moved into the history was outside it before.
    let is_moved = |revision: &Revision| {
        let earlier = [&revision.before, &revision.first_reported].into_iter().flatten();
        revision.field == "ex_date" && earlier.flat_map(|day| day.parse()).any(|day: NaiveDate| day < start)
    };
    let is_asked = |revision: &&Revision| {
        start <= revision.date
            && !is_moved(revision)
            && start <= revision.known_at.with_timezone(&New_York).date_naive()
            && asked.kind.as_ref().is_none_or(|kinds| kinds.contains(&revision.kind))
    };
    let rows = found.revisions.iter().filter(is_asked);
    let (today, depth) = (context.today, Depth { from: start, tier: context.tier });
    context.render_page(&asked.output, &asked.page, current.version(), rows, |meta| {
        meta.set_depth(Some(depth), today);
        meta.warnings.extend(found.is_incomplete.then(Warning::older_revisions));
    })
}

const REVISIONS: &str = include_str!("../../../queries/past/revisions.sql");
/// Maximum number of versions that are searched for revisions. Older versions are ignored.
const MAX_VERSIONS: u16 = 200;

/// Revisions of a security, newest first.
#[derive(Debug)]
pub(crate) struct FoundRevisions {
    pub(crate) revisions: Vec<Revision>,
    /// True if some versions were not compared, because there are more than [`MAX_VERSIONS`] versions, or because this
    /// program does not have the rules of a version.
    pub(crate) is_incomplete: bool,
}

/// Source policy (the order of preference among sources) and calculation rules of a derivation.
type Inputs = (SourcePolicy, Rules);

/// A served version that may have changed the security. Its source policy and rules are `inputs`; those of the previous
/// version are `inputs_before`.
struct RevisingVersion {
    version: DataVersion,
    as_of: NaiveDate,
    at: DateTime<Utc>,
    sequence_before: i64,
    /// Source policy and rules of this version. `None` if this program has other rules, or cannot parse them.
    inputs: Option<Inputs>,
    inputs_before: Option<Inputs>,
}

/// Finds the revisions of the security that has this symbol at the version `current`.
async fn find_revisions(
    generation: &ServedGeneration,
    current: &PastVersion,
    symbol: &RequestedSymbol,
) -> Result<FoundRevisions, ApiError> {
    let (policy, _) = current.inputs()?;
    let symbols = lookup::to_plain_symbols(generation, vec![symbol.candidates.clone()]).await?.concat();
    let facts = load_fact_history(generation, &current.fact_set, symbols.clone()).await?;
    let known = facts.at(&View::at(current.facts_sequence), policy);
    let known = known.map_err(|error| ApiError::Internal(error.into()))?;
    let identity = symbols.iter().find_map(|spelling| known.identity(spelling)).cloned();
    let identity = identity.ok_or_else(|| lookup::unknown_symbol_error(symbol))?;
    let limit = i64::from(MAX_VERSIONS) + 1;
    let changed = facts.record_sequences();
    let rows = lookup::run_query(generation, REVISIONS, &[&changed, &current.fact_set, &limit]).await?;
    let mut versions = rows.iter().map(RevisingVersion::from_row).collect::<Result<Vec<_>, _>>()?;
    let mut is_incomplete = versions.len() > usize::from(MAX_VERSIONS);
    versions.truncate(usize::from(MAX_VERSIONS));
    is_incomplete |= versions.iter().any(|version| version.both_inputs().is_none());
    let revisions = run_low_priority(move || compare_versions(&facts, &identity, &versions)).await??;
    Ok(FoundRevisions { revisions, is_incomplete })
}

fn compare_versions(
    facts: &FactHistory,
    identity: &Identity,
    versions: &[RevisingVersion],
) -> Result<Vec<Revision>, ApiError> {
    let mut revisions = Vec::new();
    for version in versions {
        let Some((before, after)) = version.both_inputs() else { continue };
        let earlier = derive_at(facts, identity, version.sequence_before, before, version.as_of)?;
        let later = derive_at(facts, identity, version.version.sequence, after, version.as_of)?;
        // A security without earlier values is new, which is not a revision.
        let (Some(earlier), Some(later)) = (earlier, later) else { continue };
        let by_inputs = if before.0 != after.0 {
            Some(RevisionReason::Policy)
        } else {
            (before.1 != after.1).then_some(RevisionReason::Rule)
        };
        for value in revised_values(&earlier, &later) {
            revisions.push(Revision {
                symbol: identity.symbol.to_string(),
                known_at: version.at,
                data_version: version.version.to_string(),
                kind: value.kind,
                id: value.id,
                date: value.date,
                field: value.field.to_owned(),
                before: value.before,
                after: value.after,
                first_reported: None,
                latest: None,
                reason: by_inputs.unwrap_or(value.reason),
                source: value.source,
            });
        }
    }
    add_first_and_latest(&mut revisions);
    Ok(revisions)
}

/// Derives the security for the market date `as_of` from the facts up to the log sequence `sequence`. Returns `None` if
/// these facts do not contain the security.
fn derive_at(
    facts: &FactHistory,
    identity: &Identity,
    sequence: i64,
    (policy, rules): &Inputs,
    as_of: NaiveDate,
) -> Result<Option<DerivedRows>, ApiError> {
    let internal = |error: store::facts::FactsError| ApiError::Internal(error.into());
    let known = facts.at(&View::at(sequence), policy).map_err(internal)?;
    // Facts from before a rename are stored under a former symbol.
    let symbols = identity.spans.iter().map(|span| span.symbol.as_str());
    let mut symbols = std::iter::once(identity.symbol.as_str()).chain(symbols);
    let Some(found) = symbols.find_map(|symbol| known.identity(symbol)) else { return Ok(None) };
    let history = known.history(found).map_err(internal)?;
    let rates = known.rates();
    // Revisions have no figure in the reporting currency.
    let reporting_currency = "USD";
    let market =
        DerivationContext { as_of, newest: as_of, benchmark: None, rates, reporting_currency, policy, rules };
    Ok(Some(metrics::derive(&history, &market)))
}

/// Sets `first_reported` and `latest` of each revision: the first and the latest served value of the revised field.
/// `revisions` must be sorted newest first.
fn add_first_and_latest(revisions: &mut [Revision]) {
    type Key = (RevisedKind, Option<String>, String);
    let key = |revision: &Revision| (revision.kind, revision.id.clone(), revision.field.clone());
    let (mut first, mut latest): (BTreeMap<Key, Option<String>>, BTreeMap<Key, Option<String>>) =
        Default::default();
    for revision in &*revisions {
        first.insert(key(revision), revision.before.clone());
        latest.entry(key(revision)).or_insert_with(|| revision.after.clone());
    }
    for revision in revisions {
        revision.first_reported = first.get(&key(revision)).cloned().flatten();
        revision.latest = latest.get(&key(revision)).cloned().flatten();
    }
}

impl RevisingVersion {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let inputs = |suffix: &str| -> Result<Option<Inputs>, tokio_postgres::Error> {
            let method: String = row.try_get(format!("method_version{suffix}").as_str())?;
            let policy = row.try_get::<_, JsonColumn<SourcePolicy>>(format!("policy{suffix}").as_str());
            let rules = row.try_get::<_, JsonColumn<Rules>>(format!("rules{suffix}").as_str());
            let known = policy.ok().zip(rules.ok()).filter(|_| method == METHOD_VERSION);
            Ok(known.map(|(policy, rules)| (policy.0, rules.0)))
        };
        Ok(Self {
            version: DataVersion::from_row(row)?,
            as_of: row.try_get("version_as_of")?,
            at: row.try_get("at")?,
            sequence_before: row.try_get("sequence_before")?,
            inputs: inputs("")?,
            inputs_before: inputs("_before")?,
        })
    }

    /// Source policies and rules of two versions: first the previous version, then this version. Returns `None` if this
    /// program lacks the policy or rules of one of them.
    fn both_inputs(&self) -> Option<(&Inputs, &Inputs)> {
        self.inputs_before.as_ref().zip(self.inputs.as_ref())
    }
}
