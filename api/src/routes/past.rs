//! Data at the version that a request asks for. The current version is read from the served tables, which the projector
//! fills. An earlier version is derived again from the stored feed records (facts).

pub(crate) mod security;

use std::sync::Arc;

use chrono::NaiveDate;
use chrono_tz::America::New_York;

use crate::answer::HandlerContext;
use crate::error::ApiError;
use crate::parameters::{Knowledge, RequestedSymbol, SymbolList};
use crate::read::DataVersion;
use crate::read::lookup::{self, PastVersion, find_version};
use crate::read::past_securities::PastSecurity;
use security::derive_past_securities;

impl<P> HandlerContext<P> {
    /// Reads data at the version that a request asks for. `live` reads the current version from the served tables, and
    /// `past` derives an earlier version. `knowledge` is the value of the parameter `data_version` or `known_at`. If
    /// the request has neither, the current version is read.
    pub(crate) async fn read_as_known<T, F>(
        &self,
        knowledge: Option<&Knowledge>,
        live: impl Future<Output = Result<(DataVersion, T), ApiError>>,
        past: impl FnOnce(Arc<PastVersion>) -> F,
    ) -> Result<(DataVersion, T), ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let Some(found) = self.find_version(knowledge).await? else { return live.await };
        if found.is_current {
            let (version, answer) = live.await?;
            // The served tables may have changed since `find_version`, so the rows must have the version `found`.
            if found.is_served_as(&version) {
                return Ok((version, answer));
            }
        }
        found.require_reproducible()?;
        let version = found.version();
        // Boxed, because the future of every response would contain this rare derivation.
        Ok((version, Box::pin(past(found)).await?))
    }

    /// Finds the version that the parameter `data_version` or `known_at` asks for. Returns `None` if the request has
    /// neither parameter.
    pub(crate) async fn find_version(
        &self,
        knowledge: Option<&Knowledge>,
    ) -> Result<Option<Arc<PastVersion>>, ApiError> {
        let Some(knowledge) = knowledge else { return Ok(None) };
        let found = find_version(&self.generation, knowledge).await?;
        self.require_within_tier(&found)?;
        Ok(Some(Arc::new(found)))
    }

    /// Derives the securities of a symbol list at an earlier version, each security once. Also returns the symbols that
    /// were unknown in that version.
    pub(crate) async fn past_securities(
        &self,
        past: &Arc<PastVersion>,
        symbols: &SymbolList,
    ) -> Result<(Vec<PastSecurity>, Vec<String>), ApiError> {
        let spellings = symbols.0.iter().map(|symbol| symbol.candidates.clone()).collect();
        let derived = derive_past_securities(&self.generation, past, spellings, None).await?;
        let (mut found, mut missing): (Vec<PastSecurity>, Vec<&RequestedSymbol>) = Default::default();
        for (asked, security) in symbols.0.iter().zip(derived) {
            match security {
                Some(security) if found.iter().any(|known| known.symbol() == security.symbol()) => {}
                Some(security) => found.push(security),
                None => missing.push(asked),
            }
        }
        lookup::require_unshared(&self.generation, missing.iter().copied()).await?;
        Ok((found, missing.into_iter().map(|symbol| symbol.text.clone()).collect()))
    }

    /// Derives the security of a symbol at an earlier version.
    pub(crate) async fn past_security(
        &self,
        past: &Arc<PastVersion>,
        symbol: &RequestedSymbol,
    ) -> Result<PastSecurity, ApiError> {
        self.past_security_on(past, symbol, None).await
    }

    /// Derives the security of a symbol at an earlier version, for the market date `as_of`. If `as_of` is `None`, the
    /// market date of the version is used.
    pub(crate) async fn past_security_on(
        &self,
        past: &Arc<PastVersion>,
        symbol: &RequestedSymbol,
        as_of: Option<NaiveDate>,
    ) -> Result<PastSecurity, ApiError> {
        let symbols = vec![symbol.candidates.clone()];
        let mut found = derive_past_securities(&self.generation, past, symbols, as_of).await?;
        let found = found.pop().flatten();
        Ok(found.ok_or_else(|| lookup::unknown_symbol_error(symbol))?)
    }

    fn require_within_tier(&self, past: &PastVersion) -> Result<(), ApiError> {
        let earliest = self.first_day_of_tier_history();
        if past.is_current || past.at.with_timezone(&New_York).date_naive() >= earliest {
            return Ok(());
        }
        let earliest = Some(earliest);
        Err(ApiError::FeatureNotAvailable { current: self.tier, feature: "historical_depth", earliest })
    }
}
