//! Rows of a load, collected by symbol for the review at its end.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use event_log::record_batch::Body;
use market::bars::Bars;
use market::day::date_of;
use market::event::{Dividend, DividendEvidence, EventRow, Security, Split};
use market::history::{DividendFeeds, History, Observation, SourceBars};
use market::metrics::currency::assign_currency;
use market::symbol::Symbol;

use crate::batch::row_review::{MAX_ROWS, RowReview};

/// Rows for a review, by symbol.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReviewedRows {
    symbols: BTreeMap<Symbol, SymbolRows>,
    rows: usize,
}

#[derive(Debug, Clone, Default)]
struct SymbolRows {
    security: Option<Box<EventRow<Security>>>,
    dividends: Vec<EventRow<Dividend>>,
    splits: Vec<EventRow<Split>>,
    evidence: Vec<EventRow<DividendEvidence>>,
    bars: Vec<Bars>,
}

impl ReviewedRows {
    /// Adds the rows of a record batch. If the total exceeds [`MAX_ROWS`], removes all rows, because the load will not
    /// be reviewed.
    pub(crate) fn add_body(&mut self, body: Body) {
        self.rows = self.rows.saturating_add(body.row_count());
        if self.is_too_large() {
            self.symbols.clear();
            return;
        }
        match body {
            Body::Prices(series) => {
                for series in series {
                    self.rows_mut(&series.symbol).bars.push(series.bars);
                }
            }
            Body::Securities(rows) => {
                for row in rows {
                    let known = self.rows_mut(&row.record.symbol);
                    known.security = Some(Box::new(row));
                }
            }
            Body::Dividends(rows) => {
                for row in rows {
                    self.rows_mut(&row.record.symbol).dividends.push(row);
                }
            }
            Body::Splits(rows) => {
                for row in rows {
                    self.rows_mut(&row.record.symbol).splits.push(row);
                }
            }
            Body::Evidence(rows) => {
                for row in rows {
                    self.rows_mut(&row.record.symbol).evidence.push(row);
                }
            }
            _ => {}
        }
    }

    fn rows_mut(&mut self, symbol: &Symbol) -> &mut SymbolRows {
        self.symbols.entry(symbol.clone()).or_default()
    }

    fn is_too_large(&self) -> bool {
        self.rows > MAX_ROWS
    }

    /// Adds the rows of another file.
    pub(crate) fn merge(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        if self.is_too_large() {
            self.symbols.clear();
            return;
        }
        if self.symbols.is_empty() {
            self.symbols = other.symbols;
            return;
        }
        for (symbol, mut rows) in other.symbols {
            let known = self.symbols.entry(symbol).or_default();
            known.security = rows.security.or(known.security.take());
            known.dividends.append(&mut rows.dividends);
            known.splits.append(&mut rows.splits);
            known.evidence.append(&mut rows.evidence);
            known.bars.append(&mut rows.bars);
        }
    }

    /// Reviews the rows as of the newest day with a price; as of `today` if no row has a price.
    pub(crate) fn review(self, source: &str, today: NaiveDate) -> RowReview {
        if self.is_too_large() {
            return RowReview { is_too_large: true, ..RowReview::default() };
        }
        let newest_single =
            self.symbols.values().filter(|rows| rows.is_single_price()).flat_map(|rows| &rows.bars);
        let newest_single = newest_single.filter_map(Bars::last_live_day).max();
        let judged = self.symbols.into_iter().filter(|(_, rows)| !rows.is_single_price());
        let histories: Vec<History> =
            judged.filter_map(|(symbol, rows)| rows.into_history(symbol, source)).collect();
        let bars = histories.iter().flat_map(|history| &history.prices).map(|prices| prices.bars.as_ref());
        let as_of = bars.filter_map(Bars::last_live_day).max().max(newest_single).map_or(today, date_of);
        let mut review = RowReview::default();
        histories.iter().for_each(|history| review.add_history(history, as_of));
        review
    }
}

impl SymbolRows {
    /// True if no rule can doubt the rows: at most one price, and no event. The rules compare a price only with other
    /// prices, and the load has already rejected impossible values.
    fn is_single_price(&self) -> bool {
        let Self { security: _, dividends, splits, evidence, bars } = self;
        dividends.is_empty()
            && splits.is_empty()
            && evidence.is_empty()
            && bars.iter().map(Bars::len).sum::<usize>() <= 1
    }

    /// History of the symbol, built from the rows. `None` if the bars cannot be merged. The review ignores this error,
    /// because the projector reports it later.
    fn into_history(self, symbol: Symbol, source: &str) -> Option<History> {
        let bars = Bars::merge_all(self.bars).ok()?;
        let mut history = History {
            symbol,
            former_symbols: Vec::new(),
            security: self.security.map(|row| observation(source, *row)),
            dividends: self.dividends.into_iter().map(|row| observation(source, row)).collect(),
            splits: self.splits.into_iter().map(|row| observation(source, row)).collect(),
            fundamentals: Vec::new(),
            etf: Vec::new(),
            holdings: Vec::new(),
            decisions: Vec::new(),
            evidence: self.evidence.into_iter().map(|row| observation(source, row)).collect(),
            dividend_feeds: DividendFeeds::default(),
            prices: vec![SourceBars {
                source: source.to_owned(),
                bars: bars.into(),
                closes_only: Vec::new(),
            }],
        };
        assign_currency(&mut history);
        Some(history)
    }
}

fn observation<T>(source: &str, row: EventRow<T>) -> Observation<T> {
    let EventRow { line, id, revision, action, observed_at, security_ref, record } = row;
    let source = source.into();
    Observation { source, id, security_ref, revision, action, observed_at, line, frame: [0; 16], record }
}

#[cfg(test)]
mod tests {
    use event_log::record_batch::SymbolSeries;
    use market::bars::{Bar, BarVersion, MISSING};
    use market::day::day_number;
    use market::event::Action;
    use serde_json::json;

    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    /// Closes of the symbol `PRICED` on the given days.
    fn prices(closes: &[(&str, i64)]) -> Body {
        let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
        let (open, high, low, volume, vwap, trade_count) =
            (MISSING, MISSING, MISSING, MISSING, MISSING, MISSING);
        for (day, close) in closes {
            let day = day_number(date(day));
            bars.push(Bar { day, open, high, low, close: *close, volume, vwap, trade_count }, 0);
        }
        Body::Prices(vec![SymbolSeries { symbol: Symbol::parse("PRICED").unwrap(), bars }])
    }

    /// Dividend of the symbol `PAYER`.
    fn dividend(ex_date: &str) -> Body {
        let record = json!({ "symbol": "PAYER", "amount": "0.25", "currency": "USD", "type": "regular",
                             "amount_basis": "raw", "ex_date": ex_date });
        Body::Dividends(vec![EventRow {
            line: 1,
            id: None,
            revision: 0,
            action: Action::Put,
            observed_at: "2024-06-28T20:00:00Z".parse().unwrap(),
            security_ref: None,
            record: serde_json::from_value(record).unwrap(),
        }])
    }

    fn quarantined(bodies: impl IntoIterator<Item = Body>) -> Vec<String> {
        let mut rows = ReviewedRows::default();
        bodies.into_iter().for_each(|body| rows.add_body(body));
        let review = rows.review("vendor", date("2020-01-02"));
        review.examples.into_iter().map(|row| format!("{} {}", row.symbol, row.reason)).collect()
    }

    #[test]
    fn the_newest_price_is_the_day_of_the_review_even_if_it_is_the_only_one() {
        // Without a price, the day of the review is the fallback in 2020. The ex-date is then too far in the future.
        assert_eq!(quarantined([dividend("2024-07-01")]), ["PAYER far_future_ex_date"]);
        assert!(quarantined([prices(&[("2024-06-28", 4_000)]), dividend("2024-07-01")]).is_empty());
        let two = prices(&[("2024-06-27", 4_000), ("2024-06-28", 4_010)]);
        assert!(quarantined([two, dividend("2024-07-01")]).is_empty());
    }

    #[test]
    fn a_second_price_of_a_symbol_is_reviewed() {
        let days = |newest: i64| [("2024-06-27", 4_000), ("2024-06-28", newest)];
        assert!(quarantined([prices(&days(4_010)[1..])]).is_empty());
        assert_eq!(quarantined([prices(&days(40_000))]), ["PRICED unconfirmed_price"]);
        // The two prices are in two record batches.
        let batches = [prices(&days(40_000)[..1]), prices(&days(40_000)[1..])];
        assert_eq!(quarantined(batches), ["PRICED unconfirmed_price"]);
    }
}
