//! Search for a run by its id, or by the beginning of its id.

/// Minimum length of the beginning of an id, in characters. A shorter text is probably a mistake.
const MIN_CHARS: usize = 4;
/// Maximum number of candidates in an error message.
const MAX_LISTED: usize = 5;

/// Errors of finding a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunIdError {
    /// No run has this id, and no id begins with this text.
    #[error("cannot find run {0} in the log; see: ingest runs")]
    Unknown(String),
    /// The ids of several runs begin with the text.
    #[error("run {text} is ambiguous: {}; write more characters of the id", candidates.join(", "))]
    Ambiguous {
        /// Beginning of an id.
        text: String,
        /// Ids that begin with the text, with an ellipsis if there are more.
        candidates: Vec<String>,
    },
}

/// Finds the id that is equal to a text, or else the only id that begins with it. The text has at least 4 characters.
///
/// # Errors
/// No id or several ids fit.
pub fn find_run_id<'a>(text: &str, ids: impl IntoIterator<Item = &'a str>) -> Result<&'a str, RunIdError> {
    let mut found: Vec<&str> = ids.into_iter().filter(|id| id.starts_with(text)).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [id, ..] if *id == text => Ok(id),
        [id] if text.len() >= MIN_CHARS => Ok(id),
        [_, _, ..] if text.len() >= MIN_CHARS => {
            let mut candidates: Vec<String> =
                found.iter().take(MAX_LISTED).map(|id| (*id).to_owned()).collect();
            candidates.extend((found.len() > MAX_LISTED).then(|| "…".to_owned()));
            Err(RunIdError::Ambiguous { text: text.to_owned(), candidates })
        }
        _ => Err(RunIdError::Unknown(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_one_id_suffices_and_of_several_does_not() {
        let ids = ["abcd1", "abcd2", "abcdef", "abcd", "0123", "01234"];
        assert_eq!(find_run_id("abcde", ids), Ok("abcdef"));
        assert_eq!(find_run_id("0123", ids), Ok("0123"));
        let ambiguous = find_run_id("abcd", ids[..3].iter().copied()).unwrap_err().to_string();
        assert!(ambiguous.contains("abcd1, abcd2, abcdef; write more"), "{ambiguous}");
        for text in ["", "012", "abcz"] {
            assert_eq!(find_run_id(text, ids), Err(RunIdError::Unknown(text.to_owned())));
        }
    }
}
