//! Price file with an adjusted close, for a security whose dividend rows are missing. Its dividends can be detected
//! only by the adjusted close.

use crate::csv_row::push_micros;
use crate::distributions::SyntheticDistribution;

/// Header of the file, in the usual layout of chart data.
const COLUMNS: &str = "Date,Open,High,Low,Close,Adj Close,Volume";
/// Fixed-point representation of the adjustment factor 1, with twelve fraction digits.
const ONE: i128 = 1_000_000_000_000;
/// One cent, in millionths of a dollar.
const CENT: i128 = 10_000;

/// Adds an adjusted close to the canonical price rows of one security. `start` is the index of the first row in the
/// market's sessions. The distributions must be sorted by session position.
pub(super) fn with_adjusted_close(
    rows: &[u8],
    start: usize,
    distributions: &[SyntheticDistribution],
) -> Vec<u8> {
    let text = String::from_utf8_lossy(rows);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let close = |row: &[&str]| row[5].replace('.', "").parse::<i128>().unwrap_or_default() * CENT;
    let mut factors = vec![ONE; rows.len()];
    let mut factor = ONE;
    for index in (1..rows.len()).rev() {
        let from = distributions.partition_point(|payment| payment.position < start + index);
        let of_day = distributions[from..].iter().take_while(|payment| payment.position == start + index);
        let cash: i64 = of_day.filter(|payment| payment.is_cash()).map(|payment| payment.amount).sum();
        let before = close(&rows[index - 1]).max(1);
        factor = factor * (before - i128::from(cash)).max(1) / before;
        factors[index - 1] = factor;
    }
    let mut out = format!("{COLUMNS}\n").into_bytes();
    for (row, factor) in rows.iter().zip(factors) {
        out.extend_from_slice(row[1..6].join(",").as_bytes());
        out.push(b',');
        push_micros(&mut out, i64::try_from(close(row) * factor / ONE).unwrap_or_default());
        out.push(b',');
        out.extend_from_slice(row[6].as_bytes());
        out.push(b'\n');
    }
    out
}
