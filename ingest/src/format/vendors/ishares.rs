//! iShares: holdings file of a fund, with a table between a preamble and a disclaimer.
//!
//! The file does not contain the symbol of the fund. The symbol comes from the command line or the file name.

use chrono::NaiveDate;
use market::reference::Exchange;

use super::{
    CsvReader, CsvRecord, Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, RowError,
    SymbolScope, VendorFile, VendorFormat, VendorRow, fields, meaning_of, normalize_column_name, parse_date,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "ishares",
    about: "iShares holdings CSV of one fund",
    needs: "a line \"Fund Holdings as of\" and a table with Ticker, Name and Weight (%) are needed",
    detect,
    read,
};

/// Exchanges of the United States. A holding that trades on another exchange is loaded without its symbol. A holding
/// without an exchange in the file keeps its symbol.
const HOME: [&str; 5] = ["XNYS", "XNAS", "ARCX", "XASE", "BATS"];

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let found = head.encoding == Encoding::Csv && head.text.contains("Fund Holdings as of");
    found.then_some(Ok(SymbolScope::File))
}

/// Values in the lines above the table.
#[derive(Default)]
struct Preamble {
    name: Option<String>,
    as_of: Option<NaiveDate>,
    inception: Option<NaiveDate>,
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let fund = file.file_symbol()?.to_string();
    let mut records = CsvReader::new(file.source)?;
    let mut preamble = Preamble::default();
    let mut table: Option<(Vec<String>, String)> = None;
    let mut ended = false;
    while let Some(record) = records.next_record()? {
        let Some((columns, as_of)) = &table else {
            if normalize_column_name(&String::from_utf8_lossy(record.field(0))) == "ticker" {
                let as_of = preamble.as_of.ok_or_else(|| {
                    FeedReadError::Refused("has no readable date after \"Fund Holdings as of\"".to_owned())
                })?;
                fund_rows(&fund, &preamble, as_of, record.line, rows)
                    .map_err(|fault| FeedReadError::Refused(fault.message))?;
                let names =
                    record.fields().map(|field| normalize_column_name(&String::from_utf8_lossy(field)));
                table = Some((names.collect(), as_of.to_string()));
            } else {
                preamble.read(&record);
            }
            continue;
        };
        // A record of one field ends the table. All later lines are the disclaimer, even lines with commas.
        ended |= record.len() == 1;
        if ended {
            continue;
        }
        rows.stats.records += 1;
        if let Err(fault) = holding(columns, &fund, as_of, &record, rows) {
            rows.add_reject(record.line, record.raw, fault);
        }
    }
    match table {
        Some(_) => Ok(()),
        None => {
            Err(FeedReadError::Refused("has no table of holdings: no line begins with Ticker".to_owned()))
        }
    }
}

impl Preamble {
    fn read(&mut self, record: &CsvRecord<'_>) {
        let field = |index: usize| String::from_utf8_lossy(record.field(index)).trim().to_owned();
        match field(0).as_str() {
            "Fund Holdings as of" => self.as_of = spelled_date(&field(1)),
            "Inception Date" => self.inception = spelled_date(&field(1)),
            name if self.name.is_none() && !name.is_empty() && record.len() == 1 => {
                self.name = Some(name.to_owned());
            }
            _ => {}
        }
    }
}

/// Parses `Dec 06, 2024`, `06/Dec/2024` or `2024-12-06`.
fn spelled_date(text: &str) -> Option<NaiveDate> {
    let forms = ["%b %d, %Y", "%d/%b/%Y", "%d-%b-%Y", "%B %d, %Y"];
    parse_date(text.as_bytes())
        .or_else(|| forms.iter().find_map(|form| NaiveDate::parse_from_str(text, form).ok()))
}

/// Adds the fund itself, as a security record and an ETF record.
fn fund_rows(
    fund: &str,
    preamble: &Preamble,
    as_of: NaiveDate,
    line: u64,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    if let Some(name) = &preamble.name {
        RecordBuilder::new(Kind::Security)
            .with_value("symbol", Some(fund))
            .with_value("name", Some(name.as_str()))
            .with_value("type", Some("etf"))
            .validate_into(line, name.len(), rows)?;
    }
    RecordBuilder::new(Kind::Etf)
        .with_value("symbol", Some(fund))
        .with_value("as_of", Some(as_of.to_string()))
        .with_value("issuer", Some("iShares"))
        .with_value("inception_date", preamble.inception.map(|date| date.to_string()))
        .validate_into(line, 0, rows)
}

fn holding(
    columns: &[String],
    fund: &str,
    as_of: &str,
    record: &CsvRecord<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    if record.len() != columns.len() {
        let message = format_args!("{} fields where the table has {}", record.len(), columns.len());
        return Err(RowError::new("malformed_row", message));
    }
    let row = &VendorRow::of_record(columns, record);
    let number = |names: &[&str]| row.text(names).map(|text| text.replace(',', ""));
    let equity = row.text(&["assetclass"]).is_none_or(|class| class == "Equity");
    let home = row
        .text(&["exchange"])
        .is_none_or(|name| Exchange::find(name).is_some_and(|e| HOME.contains(&e.mic)));
    // The issuer writes the symbols of share classes without a separator.
    let canonical = |ticker| meaning_of("ishares share class", ticker).unwrap_or(ticker);
    RecordBuilder::new(Kind::Holding)
        .with_value("etf_symbol", Some(fund))
        .with_value("as_of", Some(as_of))
        .with_value("weight", number(&["weight"]))
        .with_value("symbol", row.text(&["ticker"]).filter(|_| equity && home).map(canonical))
        .with_value("shares", number(&["quantity", "shares"]))
        .with_value("market_value", number(&["marketvalue"]))
        .with_values(fields! {
            row.text =>
                name, asset_type: assetclass, currency: currency | marketcurrency, isin, cusip, sector,
                country: location,
        })
        .add_of_row(row, rows)
}
