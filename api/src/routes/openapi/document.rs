//! OpenAPI document: introduction, tags, and the parts that most endpoints share.
//!
//! Invariant: only this module documents the response headers, the CSV output, status 304, and the effect of the
//! parameter `fields` on the response schemas. These parts are equal for most endpoints, so the code of the endpoints
//! does not document them.

use market::row::Flag;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::code_samples::{WITHOUT_KEY, code_samples, error_bodies, example_value};
use crate::app::settings::HEAD_BYTES;
use crate::auth::Tier;
use crate::parameters::{DEPRECATIONS, Deprecation};
use crate::routes::endpoint::{
    AcceptedValues, ErrorBody, FeatureNotAvailableBody, InvalidParameter, InvalidParameterBody, LimitedBody,
    NotFoundBody, QuotaUsage,
};

/// Example responses by path, as JSON: `{path: {request, answer}}`. They were recorded with generated market data.
const EXAMPLES: &str = include_str!("../../../examples.json");

/// Parts of the document that most endpoints share: parameter examples, response headers, and responses such as 304.
const PARTS: &str = include_str!("../../../templates/openapi_parts.json");
/// Media type of a stream of events.
const EVENT_STREAM: &str = "text/event-stream";
/// Names of the headers that every response has.
const ALWAYS: [&str; 4] = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/// Introduction, tags and servers of the document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Dividend Data Service",
        description = include_str!("../../../templates/introduction.md"),
        contact(name = "The service's operator"),
        license(name = "MIT (this document, not the data)", identifier = "MIT")
    ),
    servers((url = "/", description = "This service")),
    components(schemas(AcceptedValues, ErrorBody, Flag, NotFoundBody, InvalidParameterBody, InvalidParameter, FeatureNotAvailableBody, LimitedBody, QuotaUsage, Tier))
)]
pub(crate) struct OpenApiFrame;

/// Completes the document with the parts that most endpoints share: examples, headers and error responses.
pub(crate) fn complete_document(document: &utoipa::openapi::OpenApi) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(document)?;
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES)?;
    let parts: Value = serde_json::from_str(PARTS)?;
    let (mut bodies, mut refusals) = (Vec::new(), Map::new());
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        let Some((method, operation)) = item.as_object_mut().and_then(|item| item.iter_mut().next()) else {
            continue;
        };
        operation["operationId"] = operation_id(path).into();
        if let Some(example) = parts["request_examples"].get(path) {
            for (media_type, content) in
                operation["requestBody"]["content"].as_object_mut().into_iter().flatten()
            {
                content["example"] = example[media_type].clone();
            }
        }
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        let (mut has_earlier_versions, mut has_formats, mut has_calendar) = (false, false, false);
        let deprecations = || DEPRECATIONS.iter().filter(|part| part.path == path);
        for parameter in parameters.into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default();
            has_earlier_versions |= name == "data_version";
            has_formats |= name == "format";
            let values = parameter["schema"]["enum"].as_array().into_iter().flatten();
            has_calendar |= name == "format" && values.into_iter().any(|value| value == "ics");
            let example = example_value(&parts["parameter_examples"], name, &parameter["schema"]);
            let deprecation = deprecations().find(|part| part.parameter == name);
            if let Some(example) = example {
                parameter["example"] = example;
            }
            if let Some(Deprecation { sunset, .. }) = deprecation {
                let meaning = parameter["description"].as_str().unwrap_or_default();
                let meaning = format!("{meaning} Removed on {sunset} at the earliest.");
                parameter["description"] = meaning.into();
                parameter["deprecated"] = true.into();
            }
        }
        let is_cached = method == "get" && has_formats;
        operation["x-codeSamples"] = code_samples(path, operation);
        let responses = &mut operation["responses"];
        if let Some(example) = examples.get(path) {
            responses["200"]["content"]["application/json"]["example"] = example["answer"].clone();
        }
        let keyed = !WITHOUT_KEY.contains(&path.as_str());
        let is_stream = responses["200"]["content"].get(EVENT_STREAM).is_some();
        if is_stream {
            let schema = &mut responses["200"]["content"][EVENT_STREAM]["schema"];
            let change = std::mem::replace(schema, parts["event"].clone());
            schema["properties"]["data"]["contentSchema"]["anyOf"][0] = change;
        }
        if keyed && has_formats {
            bodies.push(responses["200"]["content"]["application/json"]["schema"].clone());
            responses["200"]["content"]["text/csv"] = parts["csv"].clone();
            if has_calendar {
                responses["200"]["content"]["text/calendar"] = json!({ "schema": { "type": "string" } });
            }
            let of_get = is_cached.then_some("304").into_iter().chain(has_earlier_versions.then_some("410"));
            for status in of_get {
                responses[status] = parts["responses"][status].clone();
            }
        }
        if keyed && !is_stream {
            responses["412"] = parts["responses"]["412"].clone();
        }
        for (status, response) in responses.as_object_mut().into_iter().flatten() {
            response["headers"] = headers(status, keyed, is_cached);
            if keyed && status.starts_with(['4', '5']) {
                response["content"]["application/json"]["examples"] = error_bodies(status).into();
                let shared = json!({ "$ref": format!("#/components/responses/{status}") });
                refusals.insert(status.clone(), std::mem::replace(response, shared));
            }
        }
        if deprecations().next().is_some() {
            for name in ["Deprecation", "Sunset"] {
                responses["200"]["headers"][name] = header_reference(name);
            }
        }
        if keyed {
            let meaning = format!(
                "The request head is longer than {} KiB. The response has no body.",
                HEAD_BYTES / 1024
            );
            responses["431"] = json!({ "description": meaning });
        }
    }
    document["tags"] = parts["tags"].clone();
    document["components"]["securitySchemes"] = parts["security_schemes"].clone();
    document["components"]["responses"] = refusals.into();
    document["components"]["headers"] = parts["headers"].clone();
    document_flag_words(&mut document["components"]["schemas"]);
    reference_row_schemas(&mut document["components"]["schemas"]);
    for body in bodies {
        let row = resolve_reference(&document, &body)["properties"]["data"].clone();
        remove_required(&mut document, row.get("items").unwrap_or(&row));
    }
    simplify_choices(&mut document);
    // The address of the service is not known here, and `externalDocs` needs a whole URL.
    document["info"]["x-methods"] = "/methods".into();
    Ok(document)
}

/// Removes the schema `Flag`, because it would allow only the known flags. A client must accept other flags too: a
/// withdrawn record adds a flag that contains the id of the record. The known flags are listed as `x-extensible-enum`
/// in each property with the name `flags`.
fn document_flag_words(schemas: &mut Value) {
    let Some(flag) = schemas.as_object_mut().and_then(|schemas| schemas.remove("Flag")) else { return };
    for schema in schemas.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(flags) = schema.pointer_mut("/properties/flags") {
            flags["description"] = flag["description"].clone();
            flags["items"]["x-extensible-enum"] = flag["enum"].clone();
        }
    }
}

/// Replaces each `oneOf` schema in `value`.
///
/// - A nullable exact decimal becomes one schema with the types number, string and null.
/// - Every other `oneOf` becomes `anyOf`, because a value may match two alternatives. For example, a decimal written as
///   text also matches a string schema.
/// - If the second alternative is null, the description of the first alternative moves to the schema itself.
fn simplify_choices(value: &mut Value) {
    let choices = value.as_object_mut().and_then(|members| members.remove("oneOf"));
    if let Some(mut choices) = choices {
        let is_nullable = choices[1]["type"] == "null";
        if is_nullable
            && let Some(meaning) = choices[0].as_object_mut().and_then(|one| one.remove("description"))
        {
            value["description"] = meaning;
        }
        if is_nullable && choices[0]["$ref"] == "#/components/schemas/Exact" {
            value["type"] = json!(["number", "string", "null"]);
            value["format"] = "decimal".into();
            value["pattern"] = market::decimal::PATTERN.into();
        } else {
            value["anyOf"] = choices;
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(simplify_choices),
        Value::Array(items) => items.iter_mut().for_each(simplify_choices),
        _ => {}
    }
}

/// Operation id for a path. For example, `/v1/stocks/{symbol}/splits` becomes `stocks_by_symbol_splits`.
fn operation_id(path: &str) -> String {
    path.trim_start_matches("/v1/").replace('{', "by_").replace('}', "").replace(['/', '-'], "_")
}

/// Replaces the copy of a row schema inside the schema of a response by a reference. For example, the response schema
/// `List_StockRow` then refers to `StockRow`.
fn reference_row_schemas(schemas: &mut Value) {
    let names: Vec<String> = schemas.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    for (envelope, row) in names.iter().filter_map(|name| Some((name, name.split_once('_')?.1))) {
        if names.iter().any(|name| name == row) {
            let meaning = schemas[row]["description"].clone();
            let data = &mut schemas[envelope]["properties"]["data"];
            let place = if data.get("items").is_some() { &mut data["items"] } else { data };
            *place = json!({ "$ref": format!("#/components/schemas/{row}"), "description": meaning });
        }
    }
}

/// Headers of a response with this status, as references to `components/headers`. `keyed` is true if the endpoint needs
/// an API key. `is_cached` is true if the client may store the response 200.
fn headers(status: &str, keyed: bool, is_cached: bool) -> Value {
    let quota: &[&str] = &["X-Quota-Limit", "X-Quota-Remaining", "X-Quota-Reset"];
    let own: &[&str] = match status {
        "200" if is_cached => &["ETag", "Cache-Control", "Link"],
        "304" => &["ETag", "Cache-Control"],
        "401" => &["WWW-Authenticate"],
        "405" => &["Allow"],
        "429" | "503" => &["Retry-After"],
        _ => &[],
    };
    let quota = if matches!(status, "200" | "304") && keyed { quota } else { &[] };
    let names = ALWAYS.iter().chain(own).chain(quota);
    names.map(|name| ((*name).to_owned(), header_reference(name))).collect::<Map<_, _>>().into()
}

fn header_reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// Schema that the `$ref` of `schema` refers to. Without a `$ref`, `schema` itself is returned.
fn resolve_reference<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// Removes `required` from the row schema that `schema` refers to. A response may lack any key, because the parameter
/// `fields` selects the keys.
fn remove_required(document: &mut Value, schema: &Value) {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        let mut row = document.pointer(pointer).cloned().unwrap_or_default();
        for part in row.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
            remove_required(document, &part.clone());
            part.as_object_mut().map(|part| part.remove("required"));
        }
        row.as_object_mut().map(|row| row.remove("required"));
        if let Some(known) = document.pointer_mut(pointer) {
            *known = row;
        }
    }
}
