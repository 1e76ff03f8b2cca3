//! Reader of reference tables: text files with one row per line and fields separated by semicolons.

/// Fields of each row of a table. Lines that begin with `#` are comments. Fields missing at the end are empty.
pub(super) fn rows<const FIELDS: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; FIELDS]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split(';');
        debug_assert!(fields.clone().count() <= FIELDS, "too many fields: {line}");
        std::array::from_fn(|_| fields.next().unwrap_or_default())
    })
}

/// Names in a field, separated by blanks.
pub(super) fn further_names(field: &'static str) -> Vec<&'static str> {
    field.split_whitespace().collect()
}
