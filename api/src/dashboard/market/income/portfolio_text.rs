//! Portfolio that a reader pastes or uploads: lines of symbol and shares, or a broker's CSV.
//!
//! Transactions that a reader pastes or uploads: CSV for the API, or a simple list such as `2021-03-01 KO 100`.

use chrono::NaiveDate;
use market::identity::{AddressError, SecurityAddress, split_address};
use rust_decimal::Decimal;

/// Number of decimal places to which shares and cost are rounded.
const PLACES: u32 = 6;
/// Maximum number of unparsed lines for which a message is shown. Further lines are only counted.
const NAMED: usize = 10;
/// Accepted column headings in lower case: one line each for symbol, shares, total cost and price. The first matching
/// heading of a line is used.
const HEADINGS: &str = include_str!("headings.csv");

/// Holdings parsed from pasted text, and the lines that could not be parsed.
#[derive(Debug, Default)]
pub(crate) struct PortfolioText {
    /// Value of the API's parameter `holdings`, for example `KO:120,PEP:40:1200.5`.
    pub(crate) holdings: String,
    /// One sentence for each line that could not be parsed, for at most [`NAMED`] lines.
    pub(crate) unread: Vec<String>,
    /// Number of unparsed lines that have no sentence in `unread`.
    pub(crate) further_unread: usize,
}

/// Parses a text in which every line must be a holding. Returns the value of the API's parameter `holdings`. If a line
/// cannot be parsed, returns a message for the reader.
pub(crate) fn read_holdings(text: &str) -> Result<String, String> {
    let read = PortfolioText::read(text);
    match read.unread.into_iter().next() {
        Some(problem) => Err(problem),
        None if read.holdings.is_empty() => Err("No line has a symbol and a number of shares".to_owned()),
        None => Ok(read.holdings),
    }
}

/// Column indexes in a table, from 0.
#[derive(Debug, Clone, Copy)]
struct Columns {
    symbol: usize,
    shares: usize,
    cost: Option<usize>,
    /// Column of the purchase price per share; `None` without such a column.
    price: Option<usize>,
}

impl PortfolioText {
    /// Parses a text. If the text has a row with column headings, the rows above it are skipped.
    pub(crate) fn read(text: &str) -> Self {
        let rows = read_rows(text.trim_start_matches('\u{feff}'));
        let headings = rows.iter().position(|(_, cells)| Columns::find(cells).is_some());
        let columns = headings.and_then(|place| Columns::find(&rows[place].1));
        let mut read = Self::default();
        let mut items = Vec::new();
        for row in rows.iter().skip(headings.map_or(0, |place| place + 1)) {
            match read_row(row, columns) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => {}
                Err(problem) if read.unread.len() < NAMED => read.unread.push(problem),
                Err(_) => read.further_unread += 1,
            }
        }
        read.holdings = items.join(",");
        read
    }
}

impl Columns {
    fn find(cells: &[String]) -> Option<Self> {
        let heading: Vec<String> = cells.iter().map(|cell| cell.to_lowercase()).collect();
        let place = |name: &str| heading.iter().position(|cell| cell == name);
        let mut columns = HEADINGS.lines().map(|names| names.split(',').find_map(place));
        let mut next = || columns.next().flatten();
        Some(Self { symbol: next()?, shares: next()?, cost: next(), price: next() })
    }
}

/// Holding of a row, in the format of the API's parameter `holdings`; `None` for an empty row.
fn read_row((line, cells): &Row, columns: Option<Columns>) -> Result<Option<String>, String> {
    if cells.iter().all(String::is_empty) {
        return Ok(None);
    }
    let cell = |place: usize| cells.get(place).map_or("", String::as_str);
    let columns = columns.unwrap_or_else(|| in_order(cells));
    let (symbol, shares) = (cell(columns.symbol), cell(columns.shares));
    match SecurityAddress::parse(symbol) {
        Ok(_) if !symbol.contains(',') => {}
        Ok(_) | Err(AddressError::Symbol(_)) => {
            return Err(format!("Line {line}: “{}” is not a symbol", shorten(symbol)));
        }
        Err(error) => return Err(format!("Line {line}: “{}” {error}", shorten(symbol))),
    }
    let shares =
        number_of(shares).map(|shares| shares.round_dp(PLACES)).filter(|shares| *shares > Decimal::ZERO);
    let shares = shares.ok_or_else(|| format!("Line {line}: no number of shares of {}", shorten(symbol)))?;
    let total = columns.cost.and_then(|place| number_of(cell(place)));
    let price = || columns.price.and_then(|place| number_of(cell(place)))?.checked_mul(shares);
    let cost = total
        .or_else(price)
        .filter(|cost| *cost >= Decimal::ZERO)
        .map(|cost| cost.round_dp(PLACES).normalize());
    let shares = shares.normalize();
    Ok(Some(match cost {
        Some(cost) => format!("{symbol}:{shares}:{cost}"),
        None => format!("{symbol}:{shares}"),
    }))
}

/// Columns of a row in a text without headings: the symbol, the shares, and perhaps the cost. If the first cell is a
/// number and the second is not, the shares come first.
fn in_order(cells: &[String]) -> Columns {
    // Some symbols begin with digits, such as 7203.T.
    let is_number = |cell: &String| number_of(cell).is_some() && !cell.contains(char::is_alphabetic);
    let is_reversed = cells.first().is_some_and(is_number) && !cells.get(1).is_some_and(is_number);
    let (symbol, shares) = if is_reversed { (1, 0) } else { (0, 1) };
    Columns { symbol, shares, cost: Some(2), price: None }
}

fn shorten(text: &str) -> String {
    text.chars().take(24).collect()
}

/// Number of lines that are inspected to recognize the delimiter.
const SAMPLE: usize = 50;

/// Row of a table: line number, from 1, and cells without surrounding spaces.
pub(crate) type Row = (u64, Vec<String>);

/// Splits a text into rows of cells. If the text contains no tab, semicolon or comma, each line is split at spaces and
/// colons.
fn read_rows(text: &str) -> Vec<Row> {
    let Some(delimiter) = delimiter_of(text) else {
        let split =
            |line: &str| line.split(' ').flat_map(split_cells).filter(|cell| !cell.is_empty()).collect();
        return (1..).zip(text.lines()).map(|(number, line)| (number, split(line.trim()))).collect();
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while let Ok(true) = reader.read_record(&mut record) {
        let number = record.position().map_or(0, csv::Position::line);
        rows.push((number, record.iter().map(|cell| cell.trim().to_owned()).collect()));
    }
    rows
}

/// Cells of a text that colons separate. The colon in `isin:US1912161007` separates no cells.
fn split_cells(text: &str) -> Vec<String> {
    let (address, rest) = split_address(text);
    let others = rest.into_iter().flat_map(|rest| rest.split(':'));
    std::iter::once(address).chain(others).map(str::to_owned).collect()
}

/// Delimiter (tab, semicolon or comma) that occurs in the most lines; `None` if no line contains one.
fn delimiter_of(text: &str) -> Option<u8> {
    let count =
        |delimiter: u8| text.lines().take(SAMPLE).filter(|line| line.as_bytes().contains(&delimiter)).count();
    let counts = [b'\t', b';', b','].map(|delimiter| (count(delimiter), delimiter));
    // If several delimiters occur in equally many lines, the first of `counts` is chosen. The comma is last in
    // `counts`, because it can also be a decimal point.
    let best = counts.into_iter().reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.filter(|(count, _)| *count > 0).map(|(_, delimiter)| delimiter)
}

/// Parses the number in a cell. Thousands separators and currency signs are ignored, for example in `1,234.50`,
/// `1.234,50` and `$1234.5`.
fn number_of(cell: &str) -> Option<Decimal> {
    let digits: String =
        cell.chars().filter(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-')).collect();
    let others = cell.chars().filter(|c| c.is_alphabetic()).count();
    if others > 3 || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (comma, point) = (digits.rfind(','), digits.rfind('.'));
    // With a point and a comma, the last one is the decimal point. Without a point, a single comma is the decimal
    // point, unless it separates thousands.
    let is_decimal_comma = match (comma, point) {
        (Some(comma), Some(point)) => comma > point,
        (Some(_), None) => {
            digits.matches(',').count() == 1 && !separates_thousands(digits.trim_start_matches('-'))
        }
        _ => false,
    };
    let plain =
        if is_decimal_comma { digits.replace('.', "").replace(',', ".") } else { digits.replace(',', "") };
    plain.parse().ok()
}

/// True if the only comma of a number has one to three digits before it, not beginning with 0, and three after it.
fn separates_thousands(digits: &str) -> bool {
    digits.split_once(',').is_some_and(|(before, after)| {
        (1..=3).contains(&before.len()) && !before.starts_with('0') && after.len() == 3
    })
}

/// Order of the values in a line of a simple list. Date and symbol may change places.
const HEADER: [&str; 6] = ["date", "symbol", "quantity", "price", "currency", "account"];

/// Delimiters of a simple list, in the order in which they are tried. `None` is any number of spaces.
const DELIMITERS: [Option<char>; 4] = [Some('\t'), None, Some(';'), Some(',')];

/// Transactions as CSV.
#[derive(Debug, Clone)]
pub(crate) struct TransactionText {
    pub(crate) csv: String,
    /// Number of lines that the CSV has before the first line of the text: 1 for a simple list, 0 for a CSV.
    added_lines: usize,
}

impl TransactionText {
    /// Converts a simple list to CSV. Any other text is left as it is, because the API reads it.
    pub(crate) fn read(text: &str) -> Self {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let is_list =
            |delimiter: &Option<char>| cells_of(first, *delimiter).iter().take(2).any(|cell| is_date(cell));
        let Some(delimiter) = DELIMITERS.into_iter().find(is_list) else {
            return Self { csv: text.to_owned(), added_lines: 0 };
        };
        let lines = text.lines().map(|line| csv_line(cells_of(line, delimiter)));
        let lines: Vec<String> = std::iter::once(HEADER.join(",")).chain(lines).collect();
        Self { csv: lines.join("\n"), added_lines: 1 }
    }

    /// Names the lines of the text in the API's errors, one error a line: `line 5.date is not a date` becomes
    /// `Line 4: date is not a date`.
    pub(crate) fn explain(&self, errors: &str) -> String {
        let explain = |error: &str| {
            let place = error.strip_prefix("line ")?;
            let (number, rest) = place.split_at(place.find(|letter: char| !letter.is_ascii_digit())?);
            let number = number.parse::<usize>().ok()?.saturating_sub(self.added_lines);
            Some(format!("Line {number}: {}", rest.trim_start_matches(['.', ' '])))
        };
        let lines = errors.lines().map(|error| explain(error).unwrap_or_else(|| error.to_owned()));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Cells of a line. Without a delimiter, spaces separate them.
fn cells_of(line: &str, delimiter: Option<char>) -> Vec<&str> {
    match delimiter {
        Some(delimiter) => line.split(delimiter).map(|cell| cell.trim().trim_matches('"')).collect(),
        None => line.split_whitespace().collect(),
    }
}

fn is_date(cell: &str) -> bool {
    cell.parse::<NaiveDate>().is_ok()
}

/// Line of the CSV with the values of a line of the list. A value that is not a number stays as it is, because the API
/// names it in its error.
fn csv_line(mut cells: Vec<&str>) -> String {
    if cells.get(1).is_some_and(|cell| is_date(cell)) {
        cells.swap(0, 1);
    }
    let account = cells.split_off(cells.len().min(HEADER.len() - 1)).join(" ");
    let values = cells.iter().enumerate().map(|(place, cell)| match place {
        2 | 3 if !cell.contains(char::is_alphabetic) => number_of(cell).map(|number| number.to_string()),
        _ => None,
    });
    let values = values.zip(&cells).map(|(number, cell)| number.unwrap_or_else(|| (*cell).to_owned()));
    let values: Vec<String> = values.chain((!account.is_empty()).then_some(account)).collect();
    values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(",")
}

/// Cell of a CSV.
fn quote(cell: &str) -> String {
    if cell.contains(['"', ',']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, holdings: &str, unread: &[&str]) {
        let read = PortfolioText::read(text);
        assert_eq!(
            (read.holdings.as_str(), read.unread),
            (holdings, unread.iter().map(|line| (*line).to_owned()).collect()),
            "{text}"
        );
    }

    #[test]
    fn lines_have_a_symbol_and_shares() {
        check("KO 120\n\nPEP:40:1200.50\n15 BRK.B", "KO:120,PEP:40:1200.5,BRK.B:15", &[]);
        check("KO,120,5400\nPEP,40", "KO:120:5400,PEP:40", &[]);
        check("7203.T 100", "7203.T:100", &[]);
        check("US1912161007 10\nisin:US1912161007:20:900", "US1912161007:10,isin:US1912161007:20:900", &[]);
        check("KO@XNYS 10", "KO@XNYS:10", &[]);
        check("US1912161008 10", "", &["Line 1: “US1912161008” has a wrong ISIN check digit"]);
        check("KO;1,5;70,25", "KO:1.5:70.25", &[]);
        check("KO", "", &["Line 1: no number of shares of KO"]);
        check("hello world", "", &["Line 1: no number of shares of hello"]);
    }

    #[test]
    fn a_brokers_table_is_read_by_its_headings() {
        let table = "\u{feff}\"Positions for account XXXX-1234 as of 06/17/2024\"\n\n\
            \"Symbol\",\"Description\",\"Qty (Quantity)\",\"Price\",\"Mkt Val (Market Value)\",\"Cost Basis\"\n\
            \"COLA\",\"COLA COMPANY\",\"1,120\",\"$55.10\",\"$61,712.00\",\"$40,000.50\"\n\
            \"BRK.B\",\"BROOK HOLDINGS\",\"12.5\",\"$50.00\",\"$625.00\",\"--\"\n\
            \"Cash & Cash Investments\",\"--\",\"--\",\"--\",\"$321.00\",\"--\"\n\
            \"Account Total\",\"--\",\"--\",\"--\",\"$62,658.00\",\"$40,000.50\"\n";
        let unread = [
            "Line 6: no number of shares of Cash & Cash Investments",
            "Line 7: no number of shares of Account Total",
        ];
        check(table, "COLA:1120:40000.5,BRK.B:12.5", &unread);
        check("Ticker\tShares\tAvg price\nKO\t10\t58.20", "KO:10:582", &[]);
    }

    #[test]
    fn many_unread_lines_are_counted() {
        let read = PortfolioText::read(&"?\n".repeat(15));
        assert_eq!((read.unread.len(), read.further_unread), (10, 5));
    }

    fn check_number(cell: &str, expected: Option<&str>) {
        let expected = expected.map(|text| text.parse::<Decimal>().expect("a number"));
        assert_eq!(number_of(cell), expected, "{cell}");
    }

    #[test]
    fn numbers_are_read_as_brokers_write_them() {
        check_number("120", Some("120"));
        check_number("1,234.50", Some("1234.50"));
        check_number("1.234,50", Some("1234.50"));
        check_number("12,5", Some("12.5"));
        check_number("1,234", Some("1234"));
        check_number("-1,234", Some("-1234"));
        check_number("0,125", Some("0.125"));
        check_number("-0,125", Some("-0.125"));
        check_number("1234,567", Some("1234.567"));
        check_number("1,234,567", Some("1234567"));
        check_number("$5,400.00", Some("5400.00"));
        check_number("EUR 3.5", Some("3.5"));
        check_number("-7", Some("-7"));
        for cell in ["", "--", "n/a", "KO", "Account 12 total"] {
            check_number(cell, None);
        }
    }

    #[test]
    fn the_delimiter_is_the_one_of_most_lines() {
        let cells = |text: &str| read_rows(text).into_iter().map(|(_, cells)| cells).collect::<Vec<_>>();
        assert_eq!(cells("KO 120\nPEP:40"), [["KO", "120"], ["PEP", "40"]]);
        assert_eq!(cells("KO;1,5\nPEP;2,5"), [["KO", "1,5"], ["PEP", "2,5"]]);
        assert_eq!(cells("KO,\"1,200\""), [["KO", "1,200"]]);
        assert_eq!(cells("KO\t120"), [["KO", "120"]]);
    }

    fn check_transactions(text: &str, lines: &[&str]) {
        let csv = [&[HEADER.join(",").as_str()], lines].concat().join("\n");
        assert_eq!(TransactionText::read(text).csv, csv, "{text}");
    }

    #[test]
    fn a_list_becomes_csv_line_by_line() {
        check_transactions(
            "2021-03-01 KO 100\n\nKO 2021-05-01 -25.5",
            &["2021-03-01,KO,100", "", "2021-05-01,KO,-25.5"],
        );
        check_transactions("2021-03-01 KO 1,200.50", &["2021-03-01,KO,1200.50"]);
        check_transactions("2021-03-01;KO;1,5;70,25;EUR;ira", &["2021-03-01,KO,1.5,70.25,EUR,ira"]);
        check_transactions(
            "2021-03-01 KO 100 50 USD my \"old\" account",
            &["2021-03-01,KO,100,50,USD,\"my \"\"old\"\" account\""],
        );
        check_transactions("2021-03-01\tKO\tmany", &["2021-03-01,KO,many"]);
        check_transactions("2021-03-01 KO", &["2021-03-01,KO"]);
    }

    #[test]
    fn a_csv_is_left_to_the_api() {
        for text in
            ["symbol,date,quantity\nKO,2021-03-01,100\n", "Run Date,Action\n03/01/2021,BUY\n", "KO 100", ""]
        {
            assert_eq!(TransactionText::read(text).csv, text);
        }
    }

    #[test]
    fn errors_name_the_line_of_the_text() {
        let list = TransactionText::read("2021-03-01 KO x");
        assert_eq!(
            list.explain("line 2.quantity is not a number\ntax is wrong"),
            "Line 1: quantity is not a number\ntax is wrong"
        );
        let csv = TransactionText::read("symbol,date,quantity\nKO,2021-03-01,x\n");
        assert_eq!(csv.explain("line 2 has 7 cells"), "Line 2: has 7 cells");
    }
}
