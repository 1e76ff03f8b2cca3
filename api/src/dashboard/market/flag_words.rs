//! Sentences for the flags of a security's metrics.

use std::collections::HashMap;
use std::sync::LazyLock;

use market::row::Flag;
use utoipa::PartialSchema;

use crate::dashboard::market::values::{humanize, str_of};

/// Sentence for each flag. The sentences are parsed from the description of `Flag` in the OpenAPI document.
static SENTENCES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let schema = serde_json::to_value(Flag::schema()).unwrap_or_default();
    let lines =
        str_of(&schema["description"]).lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`:"));
    lines.map(|(flag, sentence)| (flag.to_owned(), sentence.trim().to_owned())).collect()
});

/// Describes a flag in one sentence.
pub(crate) fn describe_flag(flag: &str) -> String {
    if let Some(id) = flag.strip_prefix("cancelled:") {
        return format!("The source withdrew the record {id}.");
    }
    if flag == "cancelled" {
        return "The source withdrew a record.".to_owned();
    }
    SENTENCES.get(flag).cloned().unwrap_or_else(|| humanize(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_sentence() {
        for flag in Flag::ALL {
            assert!(
                describe_flag(flag.as_str()).ends_with('.') || describe_flag(flag.as_str()).ends_with(')'),
                "{flag}"
            );
            assert!(describe_flag(flag.as_str()).contains(' '), "{flag}");
        }
    }
}
