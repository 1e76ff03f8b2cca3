//! The known name that a mistyped one is nearest to, for messages.

/// The known name with the fewest letters added, left out or exchanged, when that is at most a third of them.
pub(crate) fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = wanted.chars().count();
    let most = (length / 3).max(1);
    // The distance is at least the difference in length, which costs less to find.
    let alike = known.into_iter().filter(|name| name.chars().count().abs_diff(length) <= most);
    let near = alike.map(|name| (distance(wanted, name), name));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// Letters to add, leave out or exchange (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
