//! Constants of the proposed map, which apply to all rows: adjustment for splits, and currency.

use market::event::Kind;

use super::cell_formats::currency_of;
use super::map_writer::MapWriter;
use super::table_evidence::{CENTS, TableEvidence};

impl MapWriter<'_> {
    /// Writes the constants of a map for prices or dividends; other maps have none. `units` are the currency units in
    /// the cells.
    pub(super) fn write_constants(&mut self, units: &[&'static str]) {
        match self.evidence.proposal.kind {
            Some(Kind::Price) => self.write_price_constants(units),
            Some(Kind::Dividend) => self.write_dividend_constants(units),
            _ => {}
        }
    }

    fn write_price_constants(&mut self, units: &[&'static str]) {
        self.line("\n# The default basis is raw: prices as traded. For prices adjusted for splits, set:");
        if self.evidence.is_adjusted() {
            self.line(
                "[constants]\nbasis = \"split_adjusted\" # check: inferred from the columns or the file name",
            );
        } else {
            self.line("# [constants]\n# basis = \"split_adjusted\"");
        }
        let has_currency = self.evidence.proposal.column("currency").is_some();
        let sign = TableEvidence::sign_to_strip(units);
        let in_name = self.evidence.unit_in_name().filter(|unit| *unit != CENTS && units.is_empty());
        match sign.and_then(currency_of).or(in_name).filter(|_| !has_currency) {
            Some(unit) => {
                if !self.evidence.is_adjusted() {
                    self.line("[constants]");
                }
                self.line(format!("currency = \"{unit}\" # check: is it the currency of the prices?"));
            }
            None if units.is_empty() && !has_currency => {
                self.line("# currency = \"GBX\" # for prices in pence: they are converted to pounds");
            }
            None => {}
        }
        self.line("\n# For prices in another unit (here: ten-thousandths of a dollar), set an exact factor in quotes:");
        self.line("# [scale]\n# close = \"0.0001\"");
        if self.evidence.unit_in_name() == Some(CENTS) {
            self.write_cents(&["open", "high", "low", "close"]);
        }
    }

    fn write_dividend_constants(&mut self, units: &[&'static str]) {
        let sign = TableEvidence::sign_to_strip(units);
        let has_currency = self.evidence.proposal.column("currency").is_some();
        let missing = !has_currency && (units.is_empty() || sign.is_some());
        let adjusted = self.evidence.is_yahoo() || self.evidence.file_name_says_adjusted();
        let in_name = self.evidence.unit_in_name();
        let named = sign.and_then(currency_of).or_else(|| in_name.filter(|unit| *unit != CENTS));
        match named.filter(|_| missing) {
            Some(currency) => {
                self.line(format!(
                    "\n[constants]\ncurrency = \"{currency}\" # check: is it the currency of the amounts?"
                ));
            }
            None => {
                self.line(if adjusted { "\n[constants]" } else { "\n# [constants]" });
                if missing {
                    self.line("# currency = \"EUR\" # the file names no currency: the default is the currency of the security");
                }
            }
        }
        self.line("# The default basis is as_declared: amounts as paid. For amounts adjusted for later splits, set:");
        if adjusted {
            self.line("amount_basis = \"split_adjusted\" # check: Yahoo adjusts amounts; for amounts as paid, use as_declared");
        } else {
            self.line("# amount_basis = \"split_adjusted\"");
        }
        if in_name == Some(CENTS) {
            self.write_cents(&["amount"]);
        }
    }

    /// Writes the scale of columns whose name says that they are in cents.
    fn write_cents(&mut self, columns: &[&str]) {
        self.line("\n[scale]");
        for column in columns.iter().filter(|column| self.evidence.proposal.column(column).is_some()) {
            self.line(format!("{column} = \"0.01\" # check: the name says cents"));
        }
    }
}
