//! Code samples of the OpenAPI document: each operation as a call of curl and of both clients.

use serde_json::{Value, json};

/// Paths that need no key.
pub(crate) const WITHOUT_KEY: [&str; 2] = ["/v1/health", "/v1/status"];

/// Optional parameters without which a call would fail, or not end, as endpoint and name.
const EFFECTIVELY_REQUIRED: [(&str, &str); 3] =
    [("/v1/dividends/history", "symbols"), ("/v1/changes", "symbols"), ("/v1/changes", "follow")];

/// True if a call needs the parameter: the API requires it, or the call would fail or not end without it.
pub(crate) fn is_needed(path: &str, parameter: &Value) -> bool {
    parameter["required"] == true || EFFECTIVELY_REQUIRED.contains(&(path, name_of(parameter)))
}

fn name_of(parameter: &Value) -> &str {
    parameter["name"].as_str().unwrap_or_default()
}

/// Parameters of a sample, with their values.
type Values<'a> = [(&'a str, &'a Value)];

/// Samples of an operation, in the form of the extension `x-codeSamples`. Their parameters have the example values.
pub(super) fn code_samples(path: &str, operation: &Value) -> Value {
    let parameters = || operation["parameters"].as_array().into_iter().flatten();
    let five = json!(5);
    let (mut places, mut query) = (Vec::new(), Vec::new());
    for parameter in parameters().filter(|parameter| is_needed(path, parameter)) {
        let values = if parameter["in"] == "path" { &mut places } else { &mut query };
        values.push((name_of(parameter), &parameter["example"]));
    }
    if parameters().any(|parameter| name_of(parameter) == "limit") {
        query.push(("limit", &five));
    }
    let id = operation["operationId"].as_str().unwrap_or_default();
    let body = operation.pointer("/requestBody/content/application~1json/example");
    json!([
        { "lang": "Shell", "label": "curl", "source": curl(path, &places, &query, body) },
        { "lang": "Python", "label": "Python", "source": python(id, &places, &query, body) },
        { "lang": "TypeScript", "label": "TypeScript", "source": typescript(path, &places, &query, body) },
    ])
}

fn curl(path: &str, places: &Values<'_>, query: &Values<'_>, body: Option<&Value>) -> String {
    let mut target = path.to_owned();
    for (name, value) in places {
        target = target.replace(&format!("{{{name}}}"), &plain(value));
    }
    let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    if !pairs.is_empty() {
        target = format!("{target}?{}", pairs.join("&"));
    }
    let key = if WITHOUT_KEY.contains(&path) { "" } else { "-H \"Authorization: Bearer $DDS_API_KEY\" " };
    let data = body.map(|body| format!("-H \"Content-Type: application/json\" -d '{body}' "));
    format!("curl -s {key}{}\"$DDS_API_URL{target}\"", data.unwrap_or_default())
}

fn python(id: &str, places: &Values<'_>, query: &Values<'_>, body: Option<&Value>) -> String {
    let literal = |value: &Value| match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => spaced(other),
    };
    // Each member of the body is an argument. Its texts and numbers are equal in JSON and Python.
    let members = body.and_then(Value::as_object).into_iter().flatten();
    let named = members.map(|(name, value)| (name.as_str(), value)).chain(query.iter().copied());
    let named = named.map(|(name, value)| format!("{name}={}", literal(value)));
    let arguments: Vec<String> = places.iter().map(|(_, value)| literal(value)).chain(named).collect();
    let call = format!("client.{id}({})", arguments.join(", "));
    let body = match id {
        "changes" => format!("for change in {call}:\n        print(change.action, change.row)"),
        _ => format!("print({call}.data)"),
    };
    format!("from dds_client import Client\n\nwith Client() as client:\n    {body}\n")
}

fn typescript(path: &str, places: &Values<'_>, query: &Values<'_>, body: Option<&Value>) -> String {
    let object = |values: &Values<'_>| {
        let members: Vec<String> =
            values.iter().map(|(name, value)| format!("{name}: {}", spaced(value))).collect();
        format!("{{ {} }}", members.join(", "))
    };
    let call = if let Some(body) = body {
        format!(
            "const {{ data }} = await client.post({}, {{ body: {body} }});\nconsole.log(data);",
            json!(path)
        )
    } else if path == "/v1/changes" {
        format!(
            "for await (const change of client.changes({})) {{\n  console.log(change.change, change.row);\n}}",
            object(query)
        )
    } else {
        let parts = [("path", places), ("query", query)].into_iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<String> = parts.map(|(name, values)| format!("{name}: {}", object(values))).collect();
        let params = if parts.is_empty() {
            String::new()
        } else {
            format!(", {{ params: {{ {} }} }}", parts.join(", "))
        };
        format!("const {{ data }} = await client.get({}{params});\nconsole.log(data);", json!(path))
    };
    format!("import {{ Client }} from \"dds-client\";\n\nconst client = new Client();\n{call}\n")
}

/// JSON with a space after each comma of a list.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Text of a value in a URL. The items of a list are comma-separated.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_parameters_that_the_call_needs() {
        let operation = json!({ "operationId": "prices_by_symbol", "parameters": [
            { "name": "symbol", "in": "path", "required": true, "example": "SPY" },
            { "name": "q", "in": "query", "required": true, "example": ["A", "B"] },
            { "name": "limit", "in": "query", "required": false, "example": 100 },
            { "name": "range", "in": "query", "required": false, "example": "5d" },
        ]});
        let samples = code_samples("/v1/prices/{symbol}", &operation);
        let source = |index: usize| samples[index]["source"].as_str().expect("a source").to_owned();
        assert!(source(0).ends_with("\"$DDS_API_URL/v1/prices/SPY?q=A,B&limit=5\""), "{}", source(0));
        let python = "print(client.prices_by_symbol(\"SPY\", q=[\"A\", \"B\"], limit=5).data)";
        assert!(source(1).contains(python), "{}", source(1));
        let params = "{ params: { path: { symbol: \"SPY\" }, query: { q: [\"A\", \"B\"], limit: 5 } } }";
        assert!(source(2).contains(params), "{}", source(2));
    }
}
