//! Section `[rows]` of the proposed map: which rows of the file are read.

use market::event::Kind;
use telemetry::counted;

use super::map_writer::{MapWriter, quoted};
use super::row_checks::RepeatedDays;

impl MapWriter<'_> {
    /// Writes the selection of rows and the words for missing values.
    pub(super) fn write_rows(&mut self) {
        let wide = self.proposal.wide.is_some();
        let mapped = if wide { (0..self.profile.columns.len()).collect() } else { self.proposal.indexes() };
        let mut absent = self.profile.absent_words(&mapped);
        // Some words for absent values are also tickers. A word in the symbol column is taken as a ticker, and is not
        // written as a word for absent values.
        if let Some(symbol) = self.proposal.column("symbol") {
            absent.retain(|word| !self.profile.columns[symbol].cells.contains(word));
        }
        let day = self.proposal.day_column();
        let day_words =
            self.proposal.column(day).map(|index| self.profile.absent_words(&[index])).unwrap_or_default();
        let mut required: Vec<&str> = Vec::new();
        if self.profile.has_totals || !day_words.is_empty() {
            required.extend(self.proposal.column(day).map(|_| day));
        }
        match self.proposal.kind {
            Some(Kind::Dividend) => required.extend(self.evidence.has_zeros("amount").then_some("amount")),
            Some(Kind::Split) => required.extend(self.evidence.has_zeros("ratio").then_some("ratio")),
            _ => {}
        }
        let repeated = self.repeated_days();
        if absent.is_empty() && required.is_empty() && self.proposal.only.is_none() && repeated.is_none() {
            return;
        }
        self.line("\n[rows]");
        if let Some((column, words)) = &self.proposal.only {
            let name = quoted(&self.profile.columns[*column].name);
            self.line(format!("only = {{ {name} = {words:?} }} # other rows are skipped"));
        }
        if let Some(repeated) = repeated {
            self.write_repeated_days(&repeated);
        }
        if !absent.is_empty() {
            self.line(format!(
                "absent = {:?} # words for a missing value",
                absent.iter().collect::<Vec<_>>()
            ));
        }
        if !required.is_empty() {
            self.line(format!(
                "skip_without = {required:?} # rows without this value, or with 0, are skipped"
            ));
        }
    }

    pub(super) fn repeated_days(&self) -> Option<RepeatedDays> {
        let (proposal, profile) = (self.proposal, self.profile);
        let prices = self.is_price() && proposal.wide.is_none();
        let (date, close) = proposal.column("date").zip(proposal.column("close")).filter(|_| prices)?;
        profile.repeated_days(proposal.column("symbol"), date, close)
    }

    /// Writes the choice between rows of one symbol and day whose closes differ.
    fn write_repeated_days(&mut self, repeated: &RepeatedDays) {
        let rows = counted(repeated.rows, "row");
        let who = if self.proposal.column("symbol").is_some() { "symbol and day" } else { "day" };
        let Some((name, words)) = &repeated.column else {
            return self.line(format!(
                "# Another close than an earlier row of the same {who}: {rows}. Does a column name the symbol or the market?"
            ));
        };
        self.line(format!(
            "# Another close than an earlier row of the same {who}: {rows}. The rows differ in column {name}. Choose:"
        ));
        for word in words.iter().take(10) {
            self.line(format!("# only = {{ {} = {} }}", quoted(name), quoted(word)));
        }
    }
}
