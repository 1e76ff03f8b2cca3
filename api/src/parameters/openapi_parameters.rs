//! OpenAPI parameters of an endpoint. The schemas come from the code that reads the parameters. The descriptions come
//! from the endpoint's parameter struct.
//!
//! Invariant: bounds and allowed words come from the code that enforces them, so the document cannot contradict it.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::NaiveDate;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::{RefOr, Required, Schema};

use super::date_range::OtherDateParameters;
use super::output::OutputParameters;
use super::page::PagingParameters;
use super::spec::{ParameterLocation, ParameterSpec};
use super::symbols::SymbolPath;
use super::sync_point::KnowledgeParameters;
use super::{ParameterReader, Parameters};
use crate::parameters::cursor::CursorSigner;

/// OpenAPI documentation of the parameter set `P`.
#[derive(Debug)]
pub(crate) struct DocumentedParameters<P>(PhantomData<P>);

impl<P: Parameters + IntoParams> IntoParams for DocumentedParameters<P> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        // Function pointers instead of closures: each documented struct is compiled once, not once per endpoint.
        let query: fn() -> Option<ParameterIn> = || Some(ParameterIn::Query);
        let path: fn() -> Option<ParameterIn> = || Some(ParameterIn::Path);
        let mut documented = P::into_params(query);
        documented.extend(PagingParameters::into_params(query));
        documented.extend(OutputParameters::into_params(query));
        documented.extend(OtherDateParameters::into_params(query));
        documented.extend(KnowledgeParameters::into_params(query));
        documented.extend(SymbolPath::into_params(path));
        recorded_specs::<P>().into_iter().map(|spec| spec.documented_by(&documented)).collect()
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
    /// Combines this schema with the description, default and example that are documented for the same name.
    fn documented_by(self, documented: &[Parameter]) -> Parameter {
        let words = documented.iter().find(|parameter| parameter.name == self.name);
        let is_list = self.schema["type"] == "array";
        let mut schema = self.schema;
        let written = words.and_then(|words| serde_json::to_value(&words.schema).ok()).unwrap_or_default();
        if let Some(default) = written.get("default") {
            schema["default"] = default.clone();
        }
        let location =
            if self.location == ParameterLocation::Path { ParameterIn::Path } else { ParameterIn::Query };
        let mut parameter = words.cloned().map_or_else(ParameterBuilder::new, ParameterBuilder::from);
        if is_list {
            parameter = parameter.style(Some(ParameterStyle::Form)).explode(Some(false));
        }
        parameter
            .name(self.name)
            .parameter_in(location)
            .required(if self.required { Required::True } else { Required::False })
            .schema(serde_json::from_value::<RefOr<Schema>>(schema).ok())
            .build()
    }
}
