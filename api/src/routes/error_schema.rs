//! Error bodies in the OpenAPI document.

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use crate::auth::tier::Tier;

/// A refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What is wrong, for people.
    error: String,
    /// What is wrong, for programs.
    code: String,
}

/// A missing resource; the message names it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotFoundBody {
    /// What is wrong, for people.
    error: String,
}

/// Wrong parameters, all of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvalidParameterBody {
    /// What is wrong, for people.
    error: String,
    /// INVALID_PARAMETER, or INVALID_CURSOR for a cursor that is damaged or belongs to another request.
    #[schema(example = "INVALID_PARAMETER")]
    code: String,
    /// The first wrong one.
    param: Option<String>,
    /// What it may be: words or bounds.
    allowed: Option<Allowed>,
    /// Every wrong parameter.
    errors: Vec<InvalidParameter>,
}

/// What a parameter may be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents ParameterError::allowed")]
pub(crate) enum Allowed {
    /// One of these words; for an unknown parameter, the names of those there are.
    Words(Vec<String>),
    /// A number, or a number of items, between these, both included.
    Bounds {
        /// The least; absent for items.
        #[serde(skip_serializing_if = "Option::is_none")]
        minimum: Option<i64>,
        /// The most.
        maximum: i64,
    },
    /// A text of this form.
    Form(String),
}

/// One wrong parameter.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvalidParameter {
    /// Name of the parameter.
    param: String,
    /// What is wrong, for people.
    error: String,
}

/// A feature of a higher tier.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeatureNotAvailableBody {
    /// What is wrong, for people.
    error: String,
    /// What is wrong, for programs.
    #[schema(example = "FEATURE_NOT_AVAILABLE")]
    code: String,
    /// Tier of the account that owns the key.
    current_tier: Tier,
    /// For example historical_depth.
    required_feature: String,
    /// Where to learn what other plans have, relative to this service.
    upgrade_url: String,
    /// With historical_depth: the first day the tier's history reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest_date: Option<NaiveDate>,
}

/// Too many calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitedBody {
    /// What is wrong, for people.
    error: String,
    /// RATE_LIMITED or QUOTA_EXCEEDED.
    #[schema(example = "RATE_LIMITED")]
    code: String,
    /// With RATE_LIMITED: seconds until the next call passes.
    #[serde(rename = "retryAfter", skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// With QUOTA_EXCEEDED: what was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<QuotaUsage>,
    /// With QUOTA_EXCEEDED.
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade_url: Option<String>,
}

/// Calls of the month.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotaUsage {
    /// Calls counted this month.
    current: i64,
    /// Calls a month the tier is allowed.
    limit: i64,
    /// 100 x current / limit.
    percentage: ExactDecimal,
}

/// What every endpoint can be refused with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents ApiError")]
pub(crate) enum ErrorResponses {
    /// A parameter is wrong.
    #[response(status = 400)]
    InvalidParameter(InvalidParameterBody),
    /// The key is missing, invalid or expired.
    #[response(status = 401)]
    InvalidKey(ErrorBody),
    /// The tier does not include the feature or the depth of history.
    #[response(status = 403)]
    FeatureNotAvailable(FeatureNotAvailableBody),
    /// What was asked for does not exist.
    #[response(status = 404)]
    NotFound(NotFoundBody),
    /// Only GET and HEAD.
    #[response(status = 405)]
    MethodNotAllowed(ErrorBody),
    /// The rate limit or the monthly quota is used up.
    #[response(status = 429)]
    Limited(LimitedBody),
    /// A fault of the service.
    #[response(status = 500)]
    Internal(ErrorBody),
    /// The service cannot answer now; Retry-After says when to try again.
    #[response(status = 503)]
    Unavailable(ErrorBody),
}
