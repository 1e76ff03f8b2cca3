//! Required tier of an endpoint, as a type parameter of its handler.

use crate::auth::tier::Tier;

/// Minimum tier of an endpoint, as a type in the handler's signature.
pub(crate) trait RequiredTier: Send + Sync + 'static {
    const TIER: Tier;
}

/// Endpoint for all tiers.
#[derive(Debug)]
pub(crate) struct Free;
/// Endpoint for Starter and all higher tiers.
#[derive(Debug)]
pub(crate) struct Starter;
/// Endpoint for Professional only.
#[derive(Debug)]
pub(crate) struct Professional;

impl RequiredTier for Free {
    const TIER: Tier = Tier::Free;
}
impl RequiredTier for Starter {
    const TIER: Tier = Tier::Starter;
}
impl RequiredTier for Professional {
    const TIER: Tier = Tier::Professional;
}
