//! Suggestions for mistyped names, for error messages.

/// Known name with the smallest Levenshtein distance, if the distance is at most a third of the name's length.
pub(crate) fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = wanted.chars().count();
    let most = (length / 3).max(1);
    // The difference in length is a lower bound of the distance, and cheaper to compute.
    let alike = known.into_iter().filter(|name| name.chars().count().abs_diff(length) <= most);
    let near = alike.map(|name| (strsim::levenshtein(wanted, name), name));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_none() {
        assert_eq!(nearest("qaaaj", ["qaaj", "eod", "qaaab"]), Some("qaaab"));
        assert_eq!(nearest("KOO", ["PEP", "KO", "AAPL"]), Some("KO"));
        assert_eq!(nearest("KO", ["PEP", "MSFT"]), None);
        assert_eq!(nearest("tiingo", []), None);
    }
}
