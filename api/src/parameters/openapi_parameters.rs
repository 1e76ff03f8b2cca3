//! OpenAPI parameters of an endpoint.
//!
//! Invariant: the schemas come from the code that reads the parameters, so the document cannot contradict that code.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::NaiveDate;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::{RefOr, Required, Schema};

use super::spec::ParameterSpec;
use super::{ParameterReader, Parameters};
use crate::parameters::cursor::CursorSigner;

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
    reader.recorded_specs.unwrap_or_default()
}

impl ParameterSpec {
    /// Converts the specification to an OpenAPI parameter. A description in `descriptions` (from the endpoint) replaces
    /// the description that the reader recorded.
    fn documented_by(self, descriptions: &[(&str, &str)]) -> Parameter {
        let of_endpoint = descriptions.iter().find(|(field, _)| field.trim_start_matches("r#") == self.name);
        let description = of_endpoint.map(|(_, lines)| unindented(lines)).filter(|text| !text.is_empty());
        let description = description.unwrap_or(self.description);
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
