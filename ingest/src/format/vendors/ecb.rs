//! Reference rates of the European Central Bank (R41): a row per day, a column per currency, units of the currency per euro.
//! "N/A" and an empty cell mean that the currency has no rate on this day.

use super::{
    Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, SymbolScope, VendorFile,
    VendorFormat, is_absent_value, read_rows,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "ecb",
    about: "Euro reference rates CSV of the European Central Bank (eurofxref-hist.csv, eurofxref.csv)",
    needs: "the columns Date, USD, JPY and GBP are needed",
    detect,
    read,
};

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let is_table = ["date", "usd", "jpy", "gbp"].iter().all(|name| head.has_column(&[name]));
    (head.encoding == Encoding::Csv && is_table).then_some(Ok(SymbolScope::Rows))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    read_rows(file, rows, |row, rows| {
        // The currencies are the records, so that one bad cell rejects no other rate.
        rows.stats.records -= 1;
        let date = row.date(&["date"]);
        let rates = row
            .fields()
            .filter(|(name, rate)| !name.is_empty() && *name != "date" && !is_absent_value(rate.as_bytes()));
        for (currency, rate) in rates {
            rows.stats.records += 1;
            let record = RecordBuilder::new(Kind::Fx)
                .with_value("date", date)
                .with_value("base", Some("EUR"))
                .with_value("quote", Some(currency.to_ascii_uppercase()))
                .with_value("rate", Some(rate));
            if let Err(fault) = record.validate_into(row.line, rate.len(), rows) {
                rows.add_reject(row.line, row.raw, fault);
            }
        }
        Ok(())
    })
}
