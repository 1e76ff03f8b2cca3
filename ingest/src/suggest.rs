//! Suggestions for mistyped names in error messages.

/// Known name with the smallest Levenshtein distance to `mistyped`. `None` if this distance is greater than 1 and
/// greater than a third of the length of `mistyped`.
pub(crate) fn find_nearest_name<'a>(
    mistyped: &str,
    known_names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = mistyped.chars().count();
    let most = (length / 3).max(1);
    // The distance is at least the difference in length. Comparing the lengths first excludes most names cheaply.
    let alike = known_names.into_iter().filter(|name| name.chars().count().abs_diff(length) <= most);
    let near = alike.map(|name| (strsim::levenshtein(mistyped, name), name));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::find_nearest_name;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_none() {
        assert_eq!(find_nearest_name("qaaaj", ["qaaj", "eod", "qaaab"]), Some("qaaab"));
        assert_eq!(find_nearest_name("KOO", ["PEP", "KO", "AAPL"]), Some("KO"));
        assert_eq!(find_nearest_name("KO", ["PEP", "MSFT"]), None);
        assert_eq!(find_nearest_name("tiingo", []), None);
    }
}
