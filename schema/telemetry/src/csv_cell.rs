//! Escaping of CSV cells, so that no spreadsheet runs a cell as a formula.

/// Escapes a cell that a spreadsheet would run as a formula. The cell begins with a formula sign, which may be
/// full-width (`＝`), or with a tab or line break.
#[must_use]
pub fn escape_formula(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_width_signs_are_escaped() {
        for text in ["=1", "-1", "＝1+1", "＋1", "－1", "＠a", "\n=1"] {
            assert_eq!(escape_formula(text.to_owned()), format!("'{text}"));
        }
        assert_eq!(escape_formula("Ａ＝".to_owned()), "Ａ＝");
    }
}
