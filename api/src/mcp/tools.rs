//! MCP tools: name, description for the model, and endpoint.
//!
//! Invariant: the arguments of a tool are parameters of its endpoints, with the same names. The API therefore validates
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rmcp::ErrorData;
use rmcp::model::{Tool as ToolDescription, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Map, Value, json};

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
}
