//! Transactions of a saved portfolio as text: CSV with the columns of a transaction, and nothing else of the entered text.

use super::body_lines::TRANSACTION_COLUMNS;
use super::listing::resolve_listings;
use super::transactions::{Transactions, parse_transactions};
use crate::answer::RequestBody;
use crate::parameters::{ParameterErrors, ResponseFormat, SymbolList};
use crate::read::ServedGeneration;
use crate::render::icalendar::CalendarSource;

/// Maximum number of errors in a message.
const MAX_ERRORS: usize = 10;

/// Parses CSV transactions, and writes them with the columns that the endpoint reads. Also returns their number. In a
/// broker's file, the chosen listing replaces an ISIN of several listings. An error has one line for each faulty value.
pub(crate) async fn normalize_transactions(
    text: String,
    generation: &ServedGeneration,
) -> Result<(String, usize), String> {
    let mut transactions = parse(text)?;
    resolve_listings(generation, &mut transactions).await.map_err(|error| error.to_string())?;
    write(&transactions)
}

fn write(transactions: &Transactions) -> Result<(String, usize), String> {
    if transactions.list.is_empty() {
        return Err("transactions has no purchase and no sale".to_owned());
    }
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(TRANSACTION_COLUMNS);
    for one in &transactions.list {
        let symbol = transactions.symbols.0.get(one.symbol).map_or("", |symbol| symbol.text.as_str());
        let cells = [
            one.account.clone().unwrap_or_default(),
            symbol.to_owned(),
            one.date.to_string(),
            one.quantity.normalize().to_string(),
            one.price.map(|price| price.normalize().to_string()).unwrap_or_default(),
            one.currency.clone().unwrap_or_default(),
        ];
        let _ = writer.write_record(cells);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    Ok((String::from_utf8_lossy(&bytes).into_owned(), transactions.list.len()))
}

/// Distinct symbols of CSV transactions.
pub(crate) fn transaction_symbols(text: String) -> Result<SymbolList, String> {
    Ok(parse(text)?.symbols)
}

fn parse(text: String) -> Result<Transactions, String> {
    let body = RequestBody { format: ResponseFormat::Csv, text, calendar: CalendarSource::default() };
    parse_transactions(&body).map_err(describe)
}

fn describe(errors: ParameterErrors) -> String {
    let ParameterErrors::Parameters(errors) = errors else { return String::new() };
    let lines = errors.iter().take(MAX_ERRORS).map(|error| format!("{} {}", error.param, error.error));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_columns_and_values_of_the_transactions() {
        let text = "quantity,symbol,date,price,currency,account\n1e2,ko,2021-03-01,5120,GBX,\"my, account\"\n-0.50,isin:US1912161007,2021-04-01,,,\n";
        let expected = "account,symbol,date,quantity,price,currency\n\"my, account\",ko,2021-03-01,100,51.2,GBP\n,isin:US1912161007,2021-04-01,-0.5,,\n";
        let normalize = |text: &str| write(&parse(text.to_owned())?);
        let (saved, count) = normalize(text).expect("valid transactions");
        assert_eq!((saved.as_str(), count), (expected, 2));
        assert_eq!(normalize(&saved).expect("valid transactions").0, saved);
        assert!(normalize("symbol,date,quantity\nKO,2021-03-01,x\n").is_err());
    }
}
