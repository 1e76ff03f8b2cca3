//! Parameter set of an endpoint: the trait that the parameters of every endpoint implement, and their OpenAPI
//! documentation.
//!
//! Invariant: the schemas come from the code that reads the parameters, so the document cannot contradict that code.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::NaiveDate;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::{RefOr, Required, Schema};

use super::ParameterReader;
use super::cursor::CursorSigner;
use super::reader::ParameterSpec;
use crate::auth::Tier;

/// Parameter set of one endpoint.
pub(crate) trait Parameters: Sized + Send + Sync + 'static {
    /// Feature name that a 403 shows. It is empty if every tier has access.
    const FEATURE: &'static str = "";
    /// True if the response differs by tier. The response cache then has a separate entry for each tier.
    const TIER_MATTERS: bool = false;
    /// True if every response is expensive. Otherwise, only responses with many rows or earlier data are expensive.
    const IS_COSTLY: bool = false;
    /// True if neither the request nor the response may be stored. Such a response is not cached, and has no entity tag.
    const IS_PRIVATE: bool = false;
    /// False for requests that match no endpoint. Such a request does not count against the quota, and its parameters
    /// are not checked.
    const ROUTED: bool = true;
    /// Descriptions for the OpenAPI document, as pairs of field name and description. A description belongs to the
    /// parameter with the name of the field. A parameter without a description here, such as `cursor`, gets one from
    /// [`ParameterReader`].
    const DESCRIPTIONS: &'static [(&'static str, &'static str)] = &[];

    /// Reads all accepted parameters. The reader collects the errors.
    fn read(reader: &mut ParameterReader<'_>) -> Self;

    /// Minimum tier that these parameter values need, and the feature name that a 403 shows. `None` if they need no
    /// higher tier than the endpoint itself.
    fn needs(&self) -> Option<(Tier, &'static str)> {
        None
    }
}

/// Declares the parameter struct of an endpoint, and implements [`Parameters`]. Each field has a type and an expression
/// that reads its value. Field docs become OpenAPI descriptions.
macro_rules! parameters {
    ($(#[doc = $about:literal])+ pub(crate) struct $name:ident $(<const $constant:ident: $of:ty>)? by $reader:ident {
        $($(#[doc = $description:literal])* $field:ident: $type:ty = $value:expr,)+
    } $($item:tt)*) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        pub(crate) struct $name $(<const $constant: $of>)? {
            $($(#[doc = $description])* $field: $type,)+
        }

        impl $(<const $constant: $of>)? $crate::parameters::Parameters for $name $(<$constant>)? {
            const DESCRIPTIONS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($description, "\n"),*))),+];
            $($item)*

            fn read($reader: &mut $crate::parameters::ParameterReader<'_>) -> Self {
                $(let $field = $value;)+
                Self { $($field),+ }
            }
        }
    };
}

pub(crate) use parameters;

/// Empty parameter set of a request that matches no endpoint.
#[derive(Debug)]
pub(crate) struct UnroutedParameters;

impl Parameters for UnroutedParameters {
    const ROUTED: bool = false;

    fn read(_: &mut ParameterReader<'_>) -> Self {
        Self
    }
}

/// OpenAPI documentation of the parameter set `P`.
#[derive(Debug)]
pub(crate) struct DocumentedParameters<P>(PhantomData<P>);

impl<P: Parameters> IntoParams for DocumentedParameters<P> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        recorded_specs::<P>().into_iter().map(|spec| spec.documented_by(P::DESCRIPTIONS)).collect()
    }
}

/// Specifications of all parameters that `P` reads.
fn recorded_specs<P: Parameters>() -> Vec<ParameterSpec> {
    let headers = HeaderMap::new();
    let Ok(signer) = CursorSigner::new(None, None) else { return vec![] };
    let mut reader =
        ParameterReader::new(&[], "", &headers, &signer, "", NaiveDate::default(), Arc::default());
    reader.recorded_specs = Some(vec![]);
    P::read(&mut reader);
    let mut specs = reader.recorded_specs.unwrap_or_default();
    for [a, b] in reader.recorded_conflicts {
        for (name, other) in [(a, b), (b, a)] {
            let has_other = specs.iter().any(|spec| spec.name == other);
            if let Some(spec) = specs.iter_mut().find(|spec| spec.name == name && has_other) {
                spec.conflicts.push(other);
            }
        }
    }
    specs
}

impl ParameterSpec {
    /// Converts the specification to an OpenAPI parameter. A description in `descriptions` (from the endpoint) replaces
    /// the description that the reader recorded.
    fn documented_by(self, descriptions: &[(&str, &str)]) -> Parameter {
        let of_endpoint = descriptions.iter().find(|(field, _)| field.trim_start_matches("r#") == self.name);
        let description = of_endpoint.map(|(_, lines)| unindented(lines)).filter(|text| !text.is_empty());
        let mut description = description.unwrap_or(self.description);
        if !self.conflicts.is_empty() {
            let conflicts: Vec<String> = self.conflicts.iter().map(|name| format!("`{name}`")).collect();
            description.push_str(&format!("\nConflicts with {}.", conflicts.join(", ")));
        }
        let location = if self.is_in_path { ParameterIn::Path } else { ParameterIn::Query };
        let is_list = self.schema["type"] == "array";
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(location)
            .description((!description.is_empty()).then_some(description))
            .required(if self.required { Required::True } else { Required::False })
            .schema(serde_json::from_value::<RefOr<Schema>>(self.schema).ok())
            .style(is_list.then_some(ParameterStyle::Form))
            .explode(is_list.then_some(false))
            .build()
    }
}

/// Removes the leading and trailing blanks of each line of a doc comment.
fn unindented(lines: &str) -> String {
    lines.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}
