//! Declaration of an endpoint together with its documentation, and schemas of the error bodies.

use chrono::{DateTime, NaiveDate, Utc};
use market::decimal::ExactDecimal;
use market::row::Listing;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use crate::auth::Tier;
use crate::read::memory_tables::NearSymbol;

/// Declares an endpoint and generates its handler. The declaration has the path, tag, description of the response,
/// required tier, parameters, schema of the body, and the function that responds. The doc comment of the declaration
/// becomes the summary and description in the OpenAPI document.
macro_rules! endpoint {
    (
        $(#[$about:meta])+
        get $path:tt, tag $tag:tt, returns $description:tt,
        $name:ident(Access<$tier:ty, $parameters:ty>) -> $body:ty { $respond:ident($render:expr) }
    ) => {
        $(#[$about])+
        #[utoipa::path(
            get, path = $path, tag = $tag, security(("bearer" = []), ("api_key" = [])),
            params(crate::parameters::DocumentedParameters<$parameters>),
            responses((status = 200, description = $description, body = $body), crate::routes::ErrorResponses)
        )]
        pub(crate) fn $name(
            access: crate::answer::Access<$tier, $parameters>,
        ) -> impl Future<Output = axum::response::Response> {
            access.$respond($render)
        }
    };
    (
        $(#[$about:meta])+
        post $path:tt, tag $tag:tt, reads $request:ty, returns $description:tt,
        $name:ident(Access<$tier:ty, $parameters:ty>) -> $body:ty { $respond:ident($render:expr) }
    ) => {
        $(#[$about])+
        #[utoipa::path(
            post, path = $path, tag = $tag, security(("bearer" = []), ("api_key" = [])),
            params(crate::parameters::DocumentedParameters<$parameters>),
            request_body(content(($request = "application/json"), (String = "text/csv"))),
            responses(
                (status = 200, description = $description, body = $body),
                crate::routes::BodyErrorResponses,
                crate::routes::ErrorResponses
            )
        )]
        pub(crate) fn $name(
            access: crate::answer::Access<$tier, $parameters>,
            request: axum::extract::Request,
        ) -> impl Future<Output = axum::response::Response> {
            access.$respond(request, $render)
        }
    };
}

pub(crate) use endpoint;

/// Error response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// Error message for people.
    error: String,
    /// Stable error code for programs.
    code: String,
}

/// Error response for a resource that does not exist.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotFoundBody {
    /// Error message for people.
    error: String,
    /// For an unknown symbol: securities with a similar symbol or name, the most similar first. Omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Vec<NearSymbol>>,
}

/// Error response that lists all invalid parameters.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvalidParameterBody {
    /// Error message for people.
    error: String,
    /// INVALID_PARAMETER, INVALID_CURSOR for a damaged cursor or a cursor of another request, or AMBIGUOUS_SYMBOL for
    /// an identifier that several listings have.
    #[schema(example = "INVALID_PARAMETER")]
    code: String,
    /// Name of the first invalid parameter.
    param: Option<String>,
    /// Accepted values of the first invalid parameter, for example words or bounds. Omitted if the error does not list
    /// accepted values.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<AcceptedValues>,
    /// All invalid parameters.
    errors: Vec<InvalidParameter>,
    /// For AMBIGUOUS_SYMBOL: the listings with the identifier. The symbol of each listing is unambiguous.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<Listing>>,
}

/// Accepted values of a parameter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Allowed)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents ParameterError::allowed")]
pub(crate) enum AcceptedValues {
    /// Accepted words. For an unknown parameter, the names of all known parameters.
    Words(Vec<String>),
    /// Inclusive bounds of a number, or of a count of items.
    Bounds {
        /// Minimum; omitted for a count of items.
        #[serde(skip_serializing_if = "Option::is_none")]
        minimum: Option<i64>,
        /// Maximum.
        maximum: i64,
    },
    /// Earliest accepted instant. Changes before it are not recorded.
    From {
        /// Minimum.
        minimum: DateTime<Utc>,
    },
    /// Required form of a text, such as `YYYY-MM-DD`.
    Form(String),
}

/// Invalid parameter.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvalidParameter {
    /// Name of the parameter.
    param: String,
    /// Error message for people.
    error: String,
}

/// Error response for a feature of a higher tier.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeatureNotAvailableBody {
    /// Error message for people.
    error: String,
    /// Stable error code for programs.
    #[schema(example = "FEATURE_NOT_AVAILABLE")]
    code: String,
    /// Tier of the key's account.
    current_tier: Tier,
    /// Feature name, for example historical_depth.
    required_feature: String,
    /// Path of the page that describes the plans, relative to this service.
    upgrade_url: String,
    /// For historical_depth: first day of the tier's history.
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest_date: Option<NaiveDate>,
}

/// Error response for a used-up rate limit or quota, or for too many open change streams.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitedBody {
    /// Error message for people.
    error: String,
    /// RATE_LIMITED, QUOTA_EXCEEDED or TOO_MANY_STREAMS. TOO_MANY_STREAMS means that the tier does not allow a further
    /// open change stream.
    #[schema(example = "RATE_LIMITED")]
    code: String,
    /// For RATE_LIMITED: seconds until the next call is admitted.
    #[serde(rename = "retryAfter", skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// For QUOTA_EXCEEDED: usage of the month.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<QuotaUsage>,
    /// For QUOTA_EXCEEDED: path of the page that describes the plans, relative to this service.
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade_url: Option<String>,
}

/// Usage of the monthly quota.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotaUsage {
    /// Number of calls in this month that count against the quota.
    current: i64,
    /// Monthly quota of the tier, in calls.
    limit: i64,
    /// Used share of the quota, percent: 100 x current / limit.
    percentage: ExactDecimal,
}

/// Error responses of an endpoint that reads a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents ApiError")]
pub(crate) enum BodyErrorResponses {
    /// The body took too long.
    #[response(status = 408)]
    Timeout(ErrorBody),
    /// The body is larger than 1 MiB.
    #[response(status = 413)]
    TooLarge(ErrorBody),
    /// The Content-Type is neither application/json nor text/csv.
    #[response(status = 415)]
    UnsupportedMediaType(ErrorBody),
}

/// Error responses of every endpoint.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents ApiError")]
pub(crate) enum ErrorResponses {
    /// A parameter is invalid.
    #[response(status = 400)]
    InvalidParameter(InvalidParameterBody),
    /// The key is missing, invalid or expired.
    #[response(status = 401)]
    InvalidKey(ErrorBody),
    /// The tier does not include the requested feature, or the tier's history does not reach back far enough.
    #[response(status = 403)]
    FeatureNotAvailable(FeatureNotAvailableBody),
    /// The requested resource does not exist.
    #[response(status = 404)]
    NotFound(NotFoundBody),
    /// The method is not allowed. The header Allow has the allowed methods.
    #[response(status = 405)]
    MethodNotAllowed(ErrorBody),
    /// The rate limit or the monthly quota is used up, or the account has too many open change streams.
    #[response(status = 429)]
    Limited(LimitedBody),
    /// Internal error of the service.
    #[response(status = 500)]
    Internal(ErrorBody),
    /// The service cannot answer now. Retry after the number of seconds in Retry-After.
    #[response(status = 503)]
    Unavailable(ErrorBody),
}
