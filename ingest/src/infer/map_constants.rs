//! Constants of the proposed map: share basis and currency of the amounts.

use std::fmt::Write;

use market::event::Kind;

use super::cell_formats::currency_of;
use super::table_evidence::TableEvidence;

/// Table and proposal from which the constants of a map are inferred.
pub(super) struct MapConstants<'a> {
    pub(super) evidence: &'a TableEvidence<'a>,
    /// Currency units in the cells of the table.
    pub(super) units: &'a [&'static str],
}

impl MapConstants<'_> {
    /// Writes the constants as TOML. Kinds without constants get nothing.
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        match self.evidence.proposal.kind {
            Some(Kind::Price) => self.write_price_constants(out),
            Some(Kind::Dividend) => self.write_dividend_constants(out),
            _ => Ok(()),
        }
    }

    fn write_price_constants(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\n# Prices as traded are raw. Are they adjusted for splits, say so:")?;
        if self.evidence.is_adjusted() {
            writeln!(out, "[constants]\nbasis = \"split_adjusted\" # check: what is beside them says so")?;
        } else {
            writeln!(out, "# [constants]\n# basis = \"split_adjusted\"")?;
        }
        if self.units.is_empty() {
            writeln!(out, "# currency = \"GBX\" # if prices are in pence: they become pounds")?;
        }
        writeln!(out, "\n# Are prices in other units, a factor in quotes brings them to dollars, exactly:")?;
        writeln!(out, "# [scale]\n# close = \"0.0001\"")
    }

    fn write_dividend_constants(&self, out: &mut String) -> std::fmt::Result {
        let has_currency = self.evidence.proposal.column("currency").is_some();
        let in_cells = !self.units.is_empty() && TableEvidence::sign_to_strip(self.units).is_none();
        let yahoo = self.evidence.profile.columns.iter().any(|column| column.name == "Dividends");
        let adjusted = yahoo || self.evidence.file_name_says_adjusted();
        let named = TableEvidence::sign_to_strip(self.units)
            .and_then(currency_of)
            .or_else(|| self.evidence.currency_in_name());
        let missing = !has_currency && !in_cells;
        match named.filter(|_| missing) {
            Some(currency) => {
                writeln!(out, "\n[constants]\ncurrency = \"{currency}\" # check: what the amounts are in")?;
            }
            None => {
                let sign = if adjusted { "" } else { "# " };
                writeln!(out, "\n{sign}[constants]")?;
                if missing {
                    writeln!(
                        out,
                        "# currency = \"EUR\" # the file names none: amounts are in the currency of their security"
                    )?;
                }
            }
        }
        writeln!(out, "# Amounts as paid are as_declared. Are they adjusted for later splits, say so:")?;
        if adjusted {
            writeln!(out, "amount_basis = \"split_adjusted\" # check: Yahoo's are; as_declared are as paid")
        } else {
            writeln!(out, "# amount_basis = \"split_adjusted\"")
        }
    }
}
