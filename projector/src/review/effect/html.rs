//! `--html`: the effect of a load as one page. Differing rows are shown as in the comparison of two generations.

use super::result::{FlagChange, RunEffect};
use crate::review::diff::write_differences;
use crate::review::html_page::{HtmlFile, write_list, write_table};

pub(super) fn write_page(file: HtmlFile, effect: &RunEffect) -> anyhow::Result<()> {
    let found = &effect.found;
    let heading = format!("Effect of run {}", effect.run);
    file.write(&heading, |page| {
        let mut lines = vec![effect.scope()];
        if found.differences.identical {
            lines.push("No served figure changed".to_owned());
        }
        lines.extend(found.quarantined.sentence());
        write_list(page, &lines)?;
        if !found.replaced.is_empty() {
            let columns = ["kind", "source", "replaces", "symbols", "rows", "reason", "to keep it", "first"];
            let rows = found.replaced.iter().map(|replacement| {
                let counts = [replacement.securities, replacement.rows].map(|count| count.to_string());
                let texts = [&replacement.source, &replacement.replaced].map(Clone::clone);
                let ends =
                    [replacement.reason.to_owned(), replacement.keep.clone(), replacement.first.join(" ")];
                [&[replacement.kind.to_string()][..], &texts, &counts, &ends].concat()
            });
            write_table(page, "Figures of one source replaced by another", &columns, rows)?;
        }
        if !found.quarantined.first.is_empty() {
            let rows = found.quarantined.first.iter().map(|row| {
                let date = row.date.map(|date| date.to_string()).unwrap_or_default();
                let texts = [&row.symbol, &row.kind, &date, &row.reason, &row.message, &row.source];
                [&texts.map(Clone::clone)[..], &[row.line.to_string()]].concat()
            });
            let columns = ["symbol", "kind", "date", "reason", "seen", "source", "line"];
            write_table(page, "Rows quarantined now", &columns, rows)?;
        }
        if !found.flags.is_empty() {
            let rows = found.flags.iter().map(|FlagChange { flag, added, removed, first }| {
                vec![flag.clone(), added.to_string(), removed.to_string(), first.join(" ")]
            });
            write_table(page, "Flags of securities", &["flag", "more", "fewer", "first"], rows)?;
        }
        write_differences(page, &found.differences)
    })
}
