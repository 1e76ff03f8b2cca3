//! What spreadsheets make of the CSV that programs write.

/// The text of a cell, harmless: a spreadsheet would run one that begins like a formula; full-width signs begin one too where
/// they are typed.
#[must_use]
pub fn harmless(text: String) -> String {
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
    fn full_width_signs_begin_formulas_too() {
        for text in ["=1", "-1", "＝1+1", "＋1", "－1", "＠a", "\n=1"] {
            assert_eq!(harmless(text.to_owned()), format!("'{text}"));
        }
        assert_eq!(harmless("Ａ＝".to_owned()), "Ａ＝");
    }
}
