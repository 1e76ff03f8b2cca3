//! MCP tools: name, description for the model, and endpoint.
//!
//! API request of a tool call, built from the tool's arguments.
//!
//! Invariant: the arguments of a tool are parameters of its endpoints, with the same names. The API therefore validates
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, Request, header};
use form_urlencoded::Serializer;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{JsonObject, Tool as ToolDescription, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::admission::RequestContext;
use crate::parameters::ParameterError;
use crate::routes::portfolio::received;

const TOOLS: &str = include_str!("tools.json");
/// JSON schema of the arguments that all tools have in common.
const COMMON: &str = r#"{
    "fields": {"type": "array", "items": {"type": "string"}, "description": "An unknown name lists all"},
    "cursor": {"type": "string", "description": "meta.next_cursor, other arguments unchanged"}
}"#;

/// Definition of one tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    name: String,
    title: String,
    description: String,
    pub(super) route: ToolRoute,
    required: Vec<String>,
    /// Fields that a GET request returns by default; empty for all fields.
    #[serde(default)]
    pub(super) fields: Vec<String>,
    /// JSON schema of each argument, by name.
    arguments: Map<String, Value>,
}

/// Endpoint of a tool.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ToolRoute {
    One(String),
    /// Several endpoints. The value of the argument `by` selects one of them.
    Chosen {
        by: String,
        paths: BTreeMap<String, String>,
    },
}

static ALL: LazyLock<Result<Vec<Tool>, serde_json::Error>> = LazyLock::new(read);

fn read() -> Result<Vec<Tool>, serde_json::Error> {
    let mut tools: Vec<Tool> = serde_json::from_str(TOOLS)?;
    let common: Map<String, Value> = serde_json::from_str(COMMON)?;
    for tool in &mut tools {
        tool.arguments.extend(common.clone());
        // An argument that selects the endpoint accepts the names of the endpoints.
        if let ToolRoute::Chosen { by, paths } = &tool.route {
            tool.arguments[by]["enum"] = paths.keys().cloned().collect();
        }
    }
    Ok(tools)
}

/// All tools, for `tools/list`.
pub(super) fn all() -> Result<&'static [Tool], ErrorData> {
    let unreadable = |error| ErrorData::internal_error(format!("cannot read tools.json: {error}"), None);
    ALL.as_deref().map_err(unreadable)
}

pub(super) fn find(name: &str) -> Result<Option<&'static Tool>, ErrorData> {
    Ok(all()?.iter().find(|tool| tool.name == name))
}

impl Tool {
    pub(super) fn describe(&self) -> ToolDescription {
        let schema = json!({
            "type": "object",
            "properties": self.arguments,
            "required": self.required,
            "additionalProperties": false,
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        ToolDescription::new(self.name.clone(), self.description.clone(), Arc::new(schema))
            .with_annotations(ToolAnnotations::with_title(self.title.clone()).read_only(true))
    }

    /// Names of the arguments.
    pub(super) fn arguments(&self) -> Vec<&str> {
        self.arguments.keys().map(String::as_str).collect()
    }

    /// Default value of an argument.
    pub(super) fn default(&self, argument: &str) -> Option<&Value> {
        self.arguments.get(argument)?.get("default")
    }
}

/// Maximum number of rows that one tool call requests from the API. A later tool call requests further rows with a
/// cursor.
const MAX_ROWS: u64 = 200;

/// Argument that is sent in the body.
const TRANSACTIONS: &str = "transactions";

/// API request of a tool call. The tool result leaves out the first `skip` rows of the response, because an earlier
/// result had them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) target: String,
    /// JSON body of a POST request; `None` for a GET request.
    pub(super) body: Option<String>,
    /// Cursor in the API request; `None` for the first page.
    pub(super) cursor: Option<String>,
    pub(super) skip: usize,
}

impl ToolCall {
    /// Builds the API request from a tool's arguments.
    pub(super) fn from_arguments(tool: &Tool, given: &JsonObject) -> Result<Self, ParameterError> {
        let known = tool.arguments();
        if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(argument_error(name, "is not an argument of this tool", Some(json!(known))));
        }
        let (chooser, template) = select_endpoint(tool, given)?;
        let body = (template == received::PATH)
            .then(|| json!({ TRANSACTIONS: given.get(TRANSACTIONS) }).to_string());
        let in_query = |name: &&str| Some(*name) != chooser && (body.is_none() || *name != TRANSACTIONS);
        let mut path = template.to_owned();
        let mut query = Serializer::new(String::new());
        let (mut cursor, mut skip) = (None, 0);
        for name in known.into_iter().filter(in_query) {
            let value = given.get(name).or_else(|| tool.default(name));
            let Some(text) = value.map(|value| text(name, value)).transpose()?.flatten() else { continue };
            let place = format!("{{{name}}}");
            if path.contains(&place) {
                path = path.replace(&place, &utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string());
            } else if name == "cursor" {
                (skip, cursor) = position(&text)?;
            } else {
                query.append_pair(name, &text);
            }
        }
        if let Some(missing) = path.split(['{', '}']).nth(1) {
            return Err(argument_error(missing, "is required", None));
        }
        if let Some(cursor) = &cursor {
            query.append_pair("cursor", cursor);
        }
        if !given.contains_key("fields") && !tool.fields.is_empty() && body.is_none() {
            query.append_pair("fields", &tool.fields.join(","));
        }
        Ok(Self { target: format!("{path}?{}", query.finish()), body, cursor, skip })
    }

    /// HTTP request with the caller's credentials.
    pub(super) fn request(&self, caller: &Parts) -> Result<Request<Body>, axum::http::Error> {
        let mut request = match &self.body {
            Some(body) => Request::post(&self.target)
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.clone()))?,
            None => Request::get(&self.target).body(Body::empty())?,
        };
        for name in [header::AUTHORIZATION, HeaderName::from_static("x-api-key")] {
            for value in caller.headers.get_all(&name) {
                request.headers_mut().append(&name, value.clone());
            }
        }
        if let Some(caller) = RequestContext::from_extensions(&caller.extensions) {
            request.extensions_mut().insert(Arc::clone(caller));
        }
        Ok(request)
    }
}

/// Selects the endpoint of a tool call. Returns the name of the argument that selects the endpoint, and the endpoint's
/// path template. The name is `None` for a tool with one endpoint.
fn select_endpoint<'a>(
    tool: &'a Tool,
    given: &JsonObject,
) -> Result<(Option<&'a str>, &'a str), ParameterError> {
    match &tool.route {
        ToolRoute::One(path) => Ok((None, path)),
        ToolRoute::Chosen { by, paths } => {
            let choice = given.get(by).filter(|value| !value.is_null()).or_else(|| tool.default(by));
            let path = choice.and_then(Value::as_str).and_then(|choice| paths.get(choice));
            let words: Vec<&String> = paths.keys().collect();
            let path = path.ok_or_else(|| argument_error(by, "must be one of these", Some(json!(words))))?;
            Ok((Some(by), path))
        }
    }
}

/// Converts the value of an argument to the text of a parameter; `None` for null. A `limit` above [`MAX_ROWS`] becomes
/// [`MAX_ROWS`].
fn text(name: &str, value: &Value) -> Result<Option<String>, ParameterError> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text.trim().is_empty() => return Err(argument_error(name, "is empty", None)),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items = items.iter().map(|item| text(name, item));
            let items: Vec<Option<String>> = items.collect::<Result<_, _>>()?;
            items.into_iter().flatten().collect::<Vec<_>>().join(",")
        }
        Value::Object(_) => {
            return Err(argument_error(name, "must be a text, a number, a boolean or a list of them", None));
        }
    };
    let rows = text.parse::<u64>().ok().filter(|_| name == "limit");
    Ok(Some(rows.map_or(text, |rows| rows.min(MAX_ROWS).to_string())))
}

/// Splits a tool cursor such as `7.abc` into the rows to skip and the API's cursor. Without a period, no rows are
/// skipped.
fn position(cursor: &str) -> Result<(usize, Option<String>), ParameterError> {
    let Some((skip, page)) = cursor.split_once('.') else { return Ok((0, Some(cursor.to_owned()))) };
    let skip = skip.parse().map_err(|_| argument_error("cursor", "is damaged; ask without it", None))?;
    Ok((skip, Some(page.to_owned()).filter(|page| !page.is_empty())))
}

/// Builds the tool cursor for the rest of an API page. `skip` rows were already returned, and `page` is the page's API
/// cursor.
pub(super) fn remaining_cursor(skip: usize, page: Option<&str>) -> String {
    format!("{skip}.{}", page.unwrap_or_default())
}

fn argument_error(param: &str, error: &str, allowed: Option<Value>) -> ParameterError {
    ParameterError::new(param.chars().take(64).collect::<String>(), error, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::from_str(include_str!("../../openapi.json")).expect("the document is JSON")
    }

    /// Names of the parameters, and of the members of the body.
    fn parameters(document: &Value, path: &str) -> Vec<String> {
        let item = &document["paths"][path];
        let operation = item.get("get").or_else(|| item.get("post")).expect("a documented path");
        let all = operation["parameters"].as_array().expect("parameters");
        let name = |one: &Value| one["name"].as_str().expect("a name").to_owned();
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let body = body.as_str().and_then(|name| document.pointer(name.strip_prefix('#')?));
        let members = body.and_then(|schema| schema["properties"].as_object());
        all.iter().map(name).chain(members.into_iter().flat_map(Map::keys).cloned()).collect()
    }

    #[test]
    fn every_argument_is_a_parameter_of_an_endpoint() {
        let document = document();
        let tools = read().expect("tools.json holds tools");
        assert!((1..=10).contains(&tools.len()));
        for tool in &tools {
            let (chooser, paths) = match &tool.route {
                ToolRoute::One(path) => ("", vec![path]),
                ToolRoute::Chosen { by, paths } => (by.as_str(), paths.values().collect()),
            };
            let known: Vec<String> = paths.iter().flat_map(|path| parameters(&document, path)).collect();
            for name in tool.arguments().into_iter().filter(|name| *name != chooser && *name != "cursor") {
                assert!(known.iter().any(|known| known == name), "{}: {name}", tool.name);
            }
        }
    }

    #[test]
    fn the_default_fields_are_fields_of_every_endpoint() {
        let document = document();
        for tool in read().expect("tools.json holds tools").iter().filter(|tool| !tool.fields.is_empty()) {
            let paths = match &tool.route {
                ToolRoute::One(path) => vec![path],
                ToolRoute::Chosen { paths, .. } => paths.values().collect(),
            };
            for path in paths {
                let Some(operation) = document["paths"][path].get("get") else { continue };
                let all = operation["parameters"].as_array().expect("parameters");
                let fields = all.iter().find(|one| one["name"] == "fields").expect("fields");
                let known = fields["schema"]["items"]["enum"].as_array().expect("names");
                for field in &tool.fields {
                    assert!(known.iter().any(|known| known == field), "{}: {field} of {path}", tool.name);
                }
            }
        }
    }

    #[test]
    fn the_list_is_small() {
        let list: Vec<ToolDescription> = all().expect("tools").iter().map(Tool::describe).collect();
        let list = serde_json::to_string(&list).expect("tools have a form in JSON");
        assert!((2_000..=11_264).contains(&list.len()), "{}", list.len());
    }

    fn read_call(tool: &str, arguments: Value) -> Result<ToolCall, ParameterError> {
        let arguments = arguments.as_object().cloned().expect("an object");
        ToolCall::from_arguments(find(tool).expect("tools").expect("a tool"), &arguments)
    }

    fn target(tool: &str, arguments: Value) -> String {
        read_call(tool, arguments).expect("arguments that can be read").target
    }

    #[test]
    fn arguments_become_a_path_and_a_query() {
        assert_eq!(
            target("compare", json!({ "symbols": ["KO", "BRK.B"], "sections": null })),
            "/v1/compare?symbols=KO%2CBRK.B"
        );
        assert_eq!(target("security", json!({ "symbol": "a/../b?c" })), "/v1/stocks/a%2F%2E%2E%2Fb%3Fc?");
        assert_eq!(
            target("security", json!({ "symbol": "SPY", "view": "holdings", "limit": 5_000 })),
            "/v1/etfs/SPY/holdings?limit=200"
        );
        assert_eq!(target("search", json!({ "q": "x", "limit": "5000" })), "/v1/search?limit=200&q=x");
        assert_eq!(target("sectors", json!({ "fields": ["sector"] })), "/v1/sectors?fields=sector");
        assert_eq!(
            target("screener", json!({ "preset": "kings", "min_yield": 2.5, "fields": ["symbol"] })),
            "/v1/screener/dividend-kings?fields=symbol&limit=25&min_yield=2.5"
        );
    }

    #[test]
    fn transactions_become_a_body() {
        let transactions = json!([{ "symbol": "KO", "date": "2021-03-01", "quantity": "100" }]);
        let given = json!({ "view": "received", "transactions": transactions, "tax": "*:15" });
        let call = read_call("portfolio_income", given).expect("transactions");
        assert_eq!(call.target, "/v1/portfolio/dividends?tax=*%3A15");
        assert_eq!(call.body, Some(json!({ "transactions": transactions }).to_string()));
        let call = read_call("portfolio_income", json!({ "holdings": "KO:1" })).expect("holdings");
        assert!(call.body.is_none() && call.target.starts_with("/v1/portfolio/income?"), "{call:?}");
    }

    #[test]
    fn a_cursor_says_where_in_which_page() {
        let whole = read_call("search", json!({ "q": "x", "cursor": "abc" })).expect("a cursor");
        assert_eq!((whole.skip, whole.cursor.as_deref()), (0, Some("abc")));
        let cut = read_call("search", json!({ "q": "x", "cursor": remaining_cursor(7, Some("abc")) }))
            .expect("a cursor");
        assert_eq!((cut.skip, cut.cursor.as_deref()), (7, Some("abc")));
        let first =
            read_call("search", json!({ "q": "x", "cursor": remaining_cursor(7, None) })).expect("a cursor");
        assert_eq!((first.skip, first.cursor), (7, None));
        assert!(read_call("search", json!({ "q": "x", "cursor": "-1.abc" })).is_err());
    }

    #[test]
    fn what_a_tool_does_not_take_is_named() {
        let error = read_call("search", json!({ "query": "x" })).expect_err("no such argument");
        assert_eq!(error.param, "query");
        assert!(error.allowed.is_some_and(|all| all.as_array().is_some_and(|all| all.contains(&json!("q")))));
        assert_eq!(read_call("security", json!({})).expect_err("no symbol").param, "symbol");
        let error = read_call("security", json!({ "symbol": "KO", "view": "x" })).expect_err("no such view");
        assert_eq!(error.param, "view");
        assert!(read_call("search", json!({ "q": { "x": 1 } })).is_err());
    }
}
