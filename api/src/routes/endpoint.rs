//! Macro that declares an endpoint together with its documentation.

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
}

pub(crate) use endpoint;
