//! Trait of an endpoint's parameter set.

use chrono::NaiveDate;

use super::Reader;
use crate::auth::tier::Tier;

/// The parameters of one endpoint.
pub(crate) trait Parameters: Sized + Send + Sync + 'static {
    /// Name of the gated feature, for a 403; unused where every tier may ask.
    const FEATURE: &'static str = "";
    /// True if the answer differs by tier.
    const TIER_MATTERS: bool = false;
    /// True if every answer of the endpoint costs much; of others, those do that ask for many rows.
    const IS_COSTLY: bool = false;
    /// True if there is an endpoint at all: what has none counts against no quota, and its parameters are nobody's.
    const ROUTED: bool = true;

    /// Reads everything the endpoint accepts; mistakes are left in the reader.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// A tier that is needed beyond the endpoint's for what these parameters ask, and the feature's name.
    fn needs(&self) -> Option<(Tier, &'static str)> {
        None
    }

    /// The oldest day asked for explicitly, which the tier's depth must reach.
    fn oldest(&self) -> Option<NaiveDate> {
        None
    }
}

/// For requests that no endpoint answers.
#[derive(Debug)]
pub(crate) struct Unrouted;

impl Parameters for Unrouted {
    const ROUTED: bool = false;

    fn read(_: &mut Reader<'_>) -> Self {
        Self
    }
}
