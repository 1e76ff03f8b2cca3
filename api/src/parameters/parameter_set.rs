//! Parameter set of an endpoint: the trait that every endpoint's parameters implement.

use chrono::NaiveDate;

use super::ParameterReader;
use crate::auth::tier::Tier;

/// Parameter set of one endpoint.
pub(crate) trait Parameters: Sized + Send + Sync + 'static {
    /// Name of the gated feature for a 403. Unused if every tier has access.
    const FEATURE: &'static str = "";
    /// True if the response differs by tier.
    const TIER_MATTERS: bool = false;
    /// True if every response of the endpoint is expensive. Otherwise only responses with many rows are.
    const IS_COSTLY: bool = false;
    /// True if an endpoint exists. Requests without one count against no quota and accept any parameters.
    const ROUTED: bool = true;

    /// Reads all accepted parameters. Errors are collected in the reader.
    fn read(reader: &mut ParameterReader<'_>) -> Self;

    /// Minimum tier of these parameters beyond the endpoint's, and the feature name.
    fn needs(&self) -> Option<(Tier, &'static str)> {
        None
    }

    /// Oldest day that the request names, which must be within the tier's history.
    fn oldest(&self) -> Option<NaiveDate> {
        None
    }
}

/// Parameters of a request without an endpoint.
#[derive(Debug)]
pub(crate) struct UnroutedParameters;

impl Parameters for UnroutedParameters {
    const ROUTED: bool = false;

    fn read(_: &mut ParameterReader<'_>) -> Self {
        Self
    }
}
