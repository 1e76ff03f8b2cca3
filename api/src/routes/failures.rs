//! The document's frame and the bodies of refusals, as the document describes them.

use chrono::NaiveDate;
use schema::value::Exact;
use serde::Serialize;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema};

use crate::access::Tier;

/// What the document says before the endpoints.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Dividend Data Service",
        description = "Stock, ETF and dividend data with exact decimals. Percent values are percent points; dates are exchange-local; instants are UTC; unknown is null.",
        license(name = "MIT", identifier = "MIT")
    ),
    tags(
        (name = "System", description = "The service itself"),
        (name = "Stocks", description = "Stocks and ETFs, one or many"),
        (name = "Dividends", description = "Calendars and history across securities"),
        (name = "Screeners", description = "Active securities by their figures"),
        (name = "ETFs", description = "Funds and what they hold"),
        (name = "Prices", description = "Daily bars, adjusted as asked"),
        (name = "Search", description = "Securities by symbol, ISIN or name"),
        (name = "Compare", description = "Securities side by side"),
        (name = "Sectors", description = "Statistics by sector"),
        (name = "Bulk", description = "Many symbols in one call (Professional)"),
    ),
    modifiers(&Security)
)]
pub(crate) struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key: dds_live_…"))
            .build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let header =
            ApiKey::Header(ApiKeyValue::with_description("X-API-Key", "The same key in its own header."));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(header));
    }
}

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
    error: String,
}

/// Wrong parameters, all of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvalidParameterBody {
    error: String,
    /// INVALID_PARAMETER, or INVALID_CURSOR for a cursor that is damaged or belongs to another request.
    #[schema(example = "INVALID_PARAMETER")]
    code: String,
    /// The first wrong one.
    param: Option<String>,
    /// What it may be: words or bounds.
    #[schema(value_type = Option<Object>)]
    allowed: Option<serde_json::Value>,
    errors: Vec<InvalidParameter>,
}

/// One wrong parameter.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvalidParameter {
    param: String,
    error: String,
}

/// A feature of a higher tier.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeatureNotAvailableBody {
    error: String,
    #[schema(example = "FEATURE_NOT_AVAILABLE")]
    code: String,
    current_tier: Tier,
    /// For example historical_depth.
    required_feature: String,
    upgrade_url: String,
    /// With historical_depth: the first day the tier's history reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest_date: Option<NaiveDate>,
}

/// Too many calls.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitedBody {
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
    current: i64,
    limit: i64,
    /// 100 x current / limit.
    percentage: Exact,
}

/// What every endpoint can be refused with.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents ApiError")]
pub(crate) enum Failures {
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
