//! Vocabulary of vendors' files: words by topic, for example the column names that mean a closing price.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static TOPICS: LazyLock<BTreeMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let topics = include_str!("vocabulary.txt").lines().filter_map(|line| line.split_once(": "));
    topics.map(|(topic, words)| (topic, words.split('|').collect())).collect()
});

/// Words of a topic, in the order of `vocabulary.txt`.
pub(crate) fn words_of_topic(topic: &str) -> &'static [&'static str] {
    debug_assert!(TOPICS.contains_key(topic), "the vocabulary has no topic {topic}");
    TOPICS.get(topic).map_or(&[], Vec::as_slice)
}

/// True if a word belongs to a topic.
pub(crate) fn is_word_of(topic: &str, word: &str) -> bool {
    words_of_topic(topic).contains(&word)
}

/// Canonical column for a vendor's normalized column name, such as `close` for `closingprice`. `kind` is the kind of
/// rows: `price`, `dividend` or `split`.
pub(crate) fn canonical_column_of(kind: &str, name: &str) -> Option<&'static str> {
    let mut topics = TOPICS.iter().filter(|(_, words)| words.contains(&name));
    topics.find_map(|(topic, _)| topic.strip_prefix(kind)?.strip_prefix(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_name_means_one_column_of_a_kind() {
        for kind in ["price", "dividend", "split"] {
            let topics = TOPICS.iter().filter(|(topic, _)| topic.starts_with(kind));
            let mut names: Vec<&str> = topics.flat_map(|(_, words)| words.iter().copied()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(count >= 20 && names.len() == count, "{kind}: {count}");
        }
    }
}
