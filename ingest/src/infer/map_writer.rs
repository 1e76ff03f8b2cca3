//! Writer of the proposed map as TOML. Comments in the map explain choices, and ask the user to check some of them.

use market::event::Kind;

use super::account_rows::RepeatedDays;
use super::column_choice::{columns_of, is_percentage};
use super::proposal::{OpenQuestion, Proposal, ticker_columns};
use super::table_profile::{ColumnProfile, TableLayout, TableProfile};
use crate::format::normalize_column_name;
use crate::normalize::abbreviate;

/// Proposed map as TOML text.
pub(super) fn write_toml(profile: &TableProfile, proposal: &Proposal, label: &str) -> String {
    let mut writer = MapWriter { profile, proposal, label, out: String::new() };
    writer.write();
    writer.out
}

pub(super) struct MapWriter<'a> {
    pub(super) profile: &'a TableProfile,
    pub(super) proposal: &'a Proposal,
    /// Name of the file.
    label: &'a str,
    out: String,
}

impl<'a> MapWriter<'a> {
    fn write(&mut self) {
        let label = self.label;
        self.line(format!(
            "# Proposed map of {label}. Check every line, then try it: ingest load FILE --map my.toml --source NAME --dry-run"
        ));
        self.line(
            "\n# Kind of the rows: price, dividend, split, security, fundamentals, etf, holding or session.",
        );
        match self.proposal.kind {
            Some(kind) => self.line(format!("kind = \"{kind}\"")),
            None => {
                self.line("# kind = \"price\" # choose: neither the columns nor the file name show the kind")
            }
        }
        self.write_file();
        self.write_columns();
        self.write_symbols();
        self.write_wide();
        self.write_dates();
        let units = self.currency_units();
        self.write_numbers(&units);
        self.write_aliases();
        self.write_rows();
        self.write_constants(&units);
    }

    /// Appends a line.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    pub(super) fn is_kind(&self, kind: Kind) -> bool {
        self.proposal.kind == Some(kind)
    }

    /// Profile of the file's column for a canonical column.
    pub(super) fn column(&self, name: &str) -> Option<&'a ColumnProfile> {
        self.proposal.column(name).map(|index| &self.profile.columns[index])
    }

    pub(super) fn repeated_days(&self) -> Option<RepeatedDays> {
        let proposal = self.proposal;
        let prices = self.is_kind(Kind::Price) && proposal.wide.is_none();
        let (date, close) = proposal.column("date").zip(proposal.column("close")).filter(|_| prices)?;
        self.profile.repeated_days(proposal.column("symbol"), date, close)
    }

    /// True for the columns of Yahoo's tables of dividends, whose dates are ex-dates.
    pub(super) fn is_yahoo(&self) -> bool {
        self.profile.columns.iter().any(|column| column.name == "Dividends")
    }

    /// True if the close is probably adjusted for splits. A separate column for the adjusted close, or the file name,
    /// shows this.
    pub(super) fn is_adjusted(&self) -> bool {
        let position = |word: &str| {
            let is_named = |column: &ColumnProfile| {
                column.name.split('|').any(|part| normalize_column_name(part) == word)
            };
            self.profile.columns.iter().position(is_named)
        };
        // In Yahoo's older layout, `Adj Close` follows the volume, and the close is raw.
        let adjusted = position("adjclose").filter(|at| position("volume").is_none_or(|volume| *at < volume));
        adjusted.or_else(|| position("closeadj")).is_some() || self.is_named_adjusted()
    }

    /// True if the file's name contains `adj`, which usually means that the values are adjusted.
    pub(super) fn is_named_adjusted(&self) -> bool {
        self.label.to_lowercase().contains("adj")
    }

    fn write_file(&mut self) {
        let (windows_1252, delimiter, first_line, header) = match &self.profile.layout {
            TableLayout::Json(None) => return,
            TableLayout::Json(Some(path)) => {
                return self.line(format!("\n[file]\nrecords = {} # member with the records", quoted(path)));
            }
            TableLayout::Text { windows_1252, delimiter, first_line, header } => {
                (*windows_1252, *delimiter, *first_line, *header)
            }
        };
        let delimiter = if delimiter == b'\t' { "tab".to_owned() } else { char::from(delimiter).to_string() };
        self.line(format!("\n[file]\ndelimiter = \"{delimiter}\""));
        if windows_1252 {
            self.line("encoding = \"windows-1252\" # the text is not UTF-8");
        }
        if first_line > 1 {
            self.line(format!("first_line = {first_line} # the lines above it are not part of the table"));
        }
        match header {
            0 => self.line("header = 0 # no header line"),
            1 => {}
            lines => self.line(format!(
                "header = {lines} # header lines; the names of a column are joined by a bar: Close|AAPL"
            )),
        }
    }

    /// Text by which the map identifies a column of the file: the column's name in quotes. If the name is missing,
    /// repeated or unprintable, the text is the column's number.
    fn column_reference(&self, index: usize) -> String {
        let name = &self.profile.columns[index].name;
        let twice = self.profile.columns.iter().filter(|other| other.name == *name).count() > 1;
        let numbered =
            self.profile.header() == 0 || name.contains(char::is_control) || *name == (index + 1).to_string();
        if twice || numbered { (index + 1).to_string() } else { quoted(name) }
    }

    fn write_columns(&mut self) {
        self.line("\n# Canonical column = column of the file: its name, or its number from 1.\n[columns]");
        let wide = self.proposal.wide.as_ref();
        for column in &self.proposal.columns {
            let reference = match wide {
                Some(_) => (column.index + 1).to_string(),
                None => self.column_reference(column.index),
            };
            let name =
                if column.name == "type" && !self.has_known_types() { "type_text" } else { column.name };
            let mut sample = comment(self.proposal.sample(self.profile, column.index));
            if column.name == "symbol" && column.strength == 1 && wide.is_none() && self.profile.header() > 0
            {
                sample = format!("{sample} (check: is it the symbol?)");
            }
            let is_dividend = self.is_kind(Kind::Dividend);
            if column.name == "ex_date" && is_dividend && column.strength == 1 && !self.is_yahoo() {
                sample.push_str(" (check: is it the ex-date, and not the day of payment?)");
            }
            self.line(format!("{name} = {reference}{sample}"));
        }
        self.write_open_questions();
        for (name, word) in wide.into_iter().flat_map(|wide| &wide.fields) {
            self.line(format!("{name} = {}", quoted(word)));
        }
        if self.profile.header() == 0 {
            return self
                .line("# The columns have no names, so they were inferred from the cells: check each.");
        }
        if wide.is_none() {
            self.write_missing();
            let mapped = self.proposal.indexes();
            let others = (0..self.profile.columns.len()).filter(|index| !mapped.contains(index));
            let others: Vec<String> =
                others.map(|index| one_line(&self.profile.columns[index].name)).take(30).collect();
            if !others.is_empty() {
                self.line(format!("# unused columns: {}", others.join(", ")));
            }
            self.write_other_kinds();
        }
    }

    /// Writes the canonical columns with several possible readings as comments, for the user to choose.
    fn write_open_questions(&mut self) {
        for OpenQuestion { name, readings, reason } in &self.proposal.open {
            let choose = if readings.is_empty() { "" } else { ". Choose:" };
            self.line(format!("# {name} is open: {reason}{choose}"));
            for (name, index) in readings {
                let sample = comment(self.proposal.sample(self.profile, *index));
                self.line(format!("# {name} = {}{sample}", self.column_reference(*index)));
            }
        }
    }

    /// Writes a hint if a price table also has dividends or splits, because they need maps of their own.
    fn write_other_kinds(&mut self) {
        if !self.is_kind(Kind::Price) {
            return;
        }
        for (kind, value) in [(Kind::Dividend, "amount"), (Kind::Split, "ratio")] {
            let others = columns_of(self.profile, kind);
            if let Some(column) = others.iter().find(|column| column.name == value && column.strength > 2) {
                let reference = self.column_reference(column.index);
                self.line(format!("# {reference} has {kind}s: load them with a second map of kind {kind}, with {value} = {reference} and rows.skip_without = [\"{value}\"]"));
            }
        }
    }

    /// Writes a comment for each required column that was not found in the file.
    fn write_missing(&mut self) {
        let has = |name: &str| self.proposal.column(name).is_some();
        let ratio = has("ratio") || has("from") && has("to");
        let required = match self.proposal.kind {
            Some(Kind::Price) => [("date", has("date")), ("close", has("close"))],
            Some(Kind::Dividend) => {
                [("ex_date", has("ex_date") || has("record_date")), ("amount", has("amount"))]
            }
            Some(Kind::Split) => [("ex_date", has("ex_date")), ("ratio", ratio)],
            _ => return,
        };
        let is_open = |name: &str| self.proposal.open.iter().any(|question| question.name == name);
        let missing = required.into_iter().filter(|(name, is_mapped)| !is_mapped && !is_open(name));
        let missing: Vec<&str> = missing.map(|(name, _)| name).collect();
        let percentages = self.profile.columns.iter().filter(|column| is_percentage(column));
        let percentages: Vec<String> = percentages.map(|column| quoted(&column.name)).collect();
        if missing.contains(&"amount") && !percentages.is_empty() {
            let names = percentages.join(", ");
            self.line(format!("# A percentage, perhaps of the par value, is no amount: {names}"));
        }
        for name in missing {
            self.line(format!("# {name} = … # required, but no column is a certain match: name one"));
        }
    }

    fn write_symbols(&mut self) {
        if let Some(symbol) = self.proposal.column("symbol") {
            let cells = &self.profile.columns[symbol].cells;
            let suffix =
                [".US", " US"].into_iter().find(|suffix| cells.iter().all(|cell| cell.ends_with(suffix)));
            if let Some(suffix) = suffix {
                self.line(format!(
                    "\n# The suffix {suffix:?} is not part of the symbol. Rows with another suffix are rejected."
                ));
                self.line(format!("[symbols]\ncell = \"{{symbol}}{suffix}\""));
            }
            return;
        }
        if self.proposal.wide.is_some() {
            return;
        }
        let has_several = self.proposal.has_several_symbols(self.profile) || self.repeated_days().is_some();
        if has_several {
            let tickers = ticker_columns(self.profile, self.proposal);
            let names: Vec<String> = tickers
                .into_iter()
                .map(|index| format!("symbol = {}", self.column_reference(index)))
                .collect();
            let such_as =
                if names.is_empty() { String::new() } else { format!(", such as {}", names.join(" or ")) };
            self.line(format!("\n# The file has several symbols: add the symbol column to [columns]{such_as}, then remove these lines."));
            return self.line("[symbols]\nfile_name = \"{symbol}: choose the symbol column\"");
        }
        if let [index] = ticker_columns(self.profile, self.proposal)[..] {
            let (reference, sample) = (self.column_reference(index), self.profile.columns[index].sample());
            self.line(format!(
                "# symbol = {reference} # is it the symbol? its cells look like symbols: {sample}"
            ));
        }
        self.line("\n# Without a symbol column, a file name such as AAPL.csv gives the symbol. For other names, set a pattern:");
        self.line("# [symbols]\n# file_name = \"table_{symbol}.csv\"");
    }

    fn write_wide(&mut self) {
        let Some(wide) = &self.proposal.wide else { return };
        let about = match wide.pattern {
            "{date}" => "The columns are named by dates: a line of the file has a row for each date.",
            _ => "The columns are named by symbols: a line of the file has a row for each symbol.",
        };
        self.line(format!("\n# {about}\n[wide]\nname = \"{}\"", wide.pattern));
        if wide.fields.is_empty() {
            let value = match self.proposal.kind {
                Some(Kind::Dividend) => "amount",
                Some(Kind::Split) => "ratio",
                _ => "close",
            };
            self.line(format!("value = \"{value}\""));
        }
        match wide.skip.as_slice() {
            [] => self.line("# skip = [\"Average\"]"),
            skip => self.line(format!("skip = {skip:?}")),
        }
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Name on one line, shortened for a comment.
fn one_line(name: &str) -> String {
    abbreviate(name.split_whitespace().collect::<Vec<_>>().join(" ").as_bytes())
}

fn comment(sample: &str) -> String {
    let sample = sample.lines().next().unwrap_or_default();
    if sample.is_empty() { String::new() } else { format!(" # {sample}") }
}
