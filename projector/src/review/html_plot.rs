//! Bar charts of counts, as SVG.

use std::fmt::{self, Write};

/// Height of a bar including its gap, in pixels.
const ROW_HEIGHT_PX: usize = 18;
/// Distance of the bars from the left edge of the chart, in pixels.
const BARS_LEFT_PX: usize = 130;
/// Width of the longest bar, in pixels.
const BARS_WIDTH_PX: usize = 240;

/// Writes a chart with one horizontal bar per label.
pub(crate) fn write_bars(page: &mut String, title: &str, counts: &[(String, u64)]) -> fmt::Result {
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
    if most == 0 {
        return Ok(());
    }
    let (width, height) = (BARS_LEFT_PX + BARS_WIDTH_PX + 90, counts.len() * ROW_HEIGHT_PX);
    write!(page, "<figure><figcaption>{title}</figcaption>")?;
    write!(page, r#"<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#)?;
    for ((label, count), place) in counts.iter().zip(0..) {
        let (top, length) = (place * ROW_HEIGHT_PX, bar_length(*count, most));
        let text = top + ROW_HEIGHT_PX - 5;
        write!(page, r#"<text x="{}" y="{text}" text-anchor="end">{label}</text>"#, BARS_LEFT_PX - 8)?;
        write!(
            page,
            r#"<rect x="{BARS_LEFT_PX}" y="{}" width="{length}" height="{}"/>"#,
            top + 3,
            ROW_HEIGHT_PX - 6
        )?;
        write!(page, r#"<text x="{}" y="{text}">{count}</text>"#, BARS_LEFT_PX + length + 6)?;
    }
    page.write_str("</svg></figure>\n")
}

/// Width of the bar of `count`, in pixels. `most` is the largest count of the chart. At least 1 if the count is not 0.
fn bar_length(count: u64, most: u64) -> usize {
    let pixels = u128::from(count) * BARS_WIDTH_PX as u128 / u128::from(most.max(1));
    let drawn = usize::try_from(pixels).unwrap_or(BARS_WIDTH_PX);
    if count > 0 { drawn.max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_counts() {
        let mut page = String::new();
        let counts = [("one", 1), ("none", 0), ("most", 1_000_000)];
        write_bars(&mut page, "Counts", &counts.map(|(label, count)| (label.to_owned(), count))).unwrap();
        for bar in [r#"y="3" width="1""#, r#"y="21" width="0""#, r#"y="39" width="240""#] {
            assert!(page.contains(bar), "{page}");
        }
        write_bars(&mut page, "Nothing", &[]).unwrap();
        assert!(!page.contains("Nothing"));
    }
}
