//! Constants of the proposed map, which apply to all rows: adjustment for splits, and currency.

use market::event::Kind;

use super::cell_formats::currency_of;
use super::map_writer::MapWriter;
use super::table_evidence::TableEvidence;

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
        self.line("\n# Prices as traded are raw. Are they adjusted for splits, say so:");
        if self.evidence.is_adjusted() {
            self.line("[constants]\nbasis = \"split_adjusted\" # check: what is beside them says so");
        } else {
            self.line("# [constants]\n# basis = \"split_adjusted\"");
        }
        if units.is_empty() {
            self.line("# currency = \"GBX\" # if prices are in pence: they become pounds");
        }
        self.line("\n# Are prices in other units, a factor in quotes brings them to dollars, exactly:");
        self.line("# [scale]\n# close = \"0.0001\"");
    }

    fn write_dividend_constants(&mut self, units: &[&'static str]) {
        let sign = TableEvidence::sign_to_strip(units);
        let has_currency = self.evidence.proposal.column("currency").is_some();
        let missing = !has_currency && (units.is_empty() || sign.is_some());
        let yahoo = self.evidence.profile.columns.iter().any(|column| column.name == "Dividends");
        let adjusted = yahoo || self.evidence.file_name_says_adjusted();
        let named = sign.and_then(currency_of).or_else(|| self.evidence.currency_in_name());
        match named.filter(|_| missing) {
            Some(currency) => {
                self.line(format!(
                    "\n[constants]\ncurrency = \"{currency}\" # check: what the amounts are in"
                ));
            }
            None => {
                self.line(if adjusted { "\n[constants]" } else { "\n# [constants]" });
                if missing {
                    self.line("# currency = \"EUR\" # the file names none: amounts are in the currency of their security");
                }
            }
        }
        self.line("# Amounts as paid are as_declared. Are they adjusted for later splits, say so:");
        if adjusted {
            self.line("amount_basis = \"split_adjusted\" # check: Yahoo's are; as_declared are as paid");
        } else {
            self.line("# amount_basis = \"split_adjusted\"");
        }
    }
}
