//! Transactions that a reader pastes or uploads: CSV for the API, or a simple list such as `2021-03-01 KO 100`.

use chrono::NaiveDate;

use super::portfolio_text::number_of;

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

    fn check(text: &str, lines: &[&str]) {
        let csv = [&[HEADER.join(",").as_str()], lines].concat().join("\n");
        assert_eq!(TransactionText::read(text).csv, csv, "{text}");
    }

    #[test]
    fn a_list_becomes_csv_line_by_line() {
        check("2021-03-01 KO 100\n\nKO 2021-05-01 -25.5", &["2021-03-01,KO,100", "", "2021-05-01,KO,-25.5"]);
        check("2021-03-01 KO 1,200.50", &["2021-03-01,KO,1200.50"]);
        check("2021-03-01;KO;1,5;70,25;EUR;ira", &["2021-03-01,KO,1.5,70.25,EUR,ira"]);
        check(
            "2021-03-01 KO 100 50 USD my \"old\" account",
            &["2021-03-01,KO,100,50,USD,\"my \"\"old\"\" account\""],
        );
        check("2021-03-01\tKO\tmany", &["2021-03-01,KO,many"]);
        check("2021-03-01 KO", &["2021-03-01,KO"]);
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
