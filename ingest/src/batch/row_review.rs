//! Review of a load: applies the domain rules R28 and R34–R38, and reports doubtful rows to the user.
//!
//! The review uses only the files of the load. The projector uses all sources, so the figures of the API may differ.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use chrono::NaiveDate;
use event_log::record_batch::Body;
use market::bars::Bars;
use market::day::date_of;
use market::event::{Dividend, DividendEvidence, EventRow, Security, ShareBasis, Split};
use market::history::{DividendFeeds, History, Observation, SourceBars, SourcePolicy};
use market::metrics::currency::assign_currency;
use market::metrics::{DerivationContext, DerivedRows, Rules, derive};
use market::row::{AmountReading, Flag, Metrics};
use market::symbol::Symbol;
use serde::Serialize;
use telemetry::counted;

/// Maximum number of rows in a review, because all of them are in memory. A larger load is not reviewed.
const MAX_ROWS: usize = 500_000;
/// Maximum number of example rows, of symbols with growth figures, and of displayed symbols per flag.
const MAX_EXAMPLES: usize = 10;
/// Flags that a review reports. The review ignores all other flags.
const FLAGS: [Flag; 10] = [
    Flag::AmountBasisSuspect,
    Flag::AmountDip,
    Flag::BoundaryShift,
    Flag::DividendsMissing,
    Flag::InferredSpecial,
    Flag::NearDuplicate,
    Flag::PaymentGap,
    Flag::PriceJumpWithoutSplit,
    Flag::PriceLevelBreak,
    Flag::SplitNotInPrice,
];

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

/// Result of a review.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RowReview {
    /// True if the load has too many rows for a review.
    pub is_too_large: bool,
    /// Count of quarantined rows, by kind and reason code.
    pub quarantined: BTreeMap<String, BTreeMap<String, u64>>,
    /// Flags that the domain rules set, each with its symbols.
    pub flags: BTreeMap<String, Vec<Symbol>>,
    /// The first quarantined rows and doubtful dividends, at most ten.
    pub examples: Vec<DoubtedRow>,
    /// Growth figures of symbols whose amounts may already be adjusted for later splits (R37); at most ten symbols.
    pub share_bases: Vec<ShareBasisReadings>,
}

/// A quarantined row, or a dividend that the rules do not treat as a plain regular payment.
#[derive(Debug, Clone, Serialize)]
pub struct DoubtedRow {
    /// Symbol of the row.
    pub symbol: Symbol,
    /// Session of a price, or ex-date; `None` if the row has no date.
    pub date: Option<NaiveDate>,
    /// Reason code of a quarantined row. For a dividend, the interpretation of its amount, such as `read as special`.
    pub reason: String,
    /// Reason for the quarantine, as a sentence. For a dividend, the amount and the special part, if it has one.
    pub message: String,
}

/// Growth figures of a symbol's dividends, computed twice. The first computation assumes that the amounts in the file
/// are as declared. The second assumes that these amounts are already adjusted for later splits (R37).
#[derive(Debug, Clone, Serialize)]
pub struct ShareBasisReadings {
    /// Symbol of the rows.
    pub symbol: Symbol,
    /// Growth figures under the assumption that the amounts are as declared.
    pub raw: GrowthFigures,
    /// Growth figures under the assumption that the amounts are already adjusted for splits.
    pub split_adjusted: GrowthFigures,
}

/// Growth figures of a symbol's dividends, under one assumption: amounts as declared, or split-adjusted amounts.
#[derive(Debug, Clone, Serialize)]
pub struct GrowthFigures {
    /// Growth of the dividend over one year, percent; `None` if it cannot be computed.
    pub growth_1y: Option<String>,
    /// Growth of the dividend over five years, percent a year; `None` if it cannot be computed.
    pub growth_5y: Option<String>,
    /// Number of consecutive years with an increased dividend.
    pub increase_streak_years: i32,
}

impl GrowthFigures {
    fn new(metrics: &Metrics) -> Self {
        Self {
            growth_1y: metrics.growth_1y.map(|growth| growth.to_string()),
            growth_5y: metrics.growth_5y.map(|growth| growth.to_string()),
            increase_streak_years: metrics.increase_streak_years,
        }
    }
}

impl Display for GrowthFigures {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let figure = |growth: &Option<String>| {
            growth.as_ref().map_or_else(|| "unknown".to_owned(), |growth| format!("{growth} %"))
        };
        let (one, five) = (figure(&self.growth_1y), figure(&self.growth_5y));
        write!(f, "growth_1y {one}, growth_5y {five}, increase_streak_years {}", self.increase_streak_years)
    }
}

impl RowReview {
    fn add_history(&mut self, history: &History, as_of: NaiveDate) {
        let found = derive_rows(history, as_of);
        for row in &found.quarantined {
            *self.quarantined.entry(row.kind.clone()).or_default().entry(row.reason.clone()).or_default() +=
                1;
            self.add_example(history, row.date, row.reason.clone(), row.message.clone());
        }
        for row in &found.dividends {
            let Some(reading) = row.reading.filter(|reading| *reading != AmountReading::Regular) else {
                continue;
            };
            let special =
                row.special_amount.map_or_else(String::new, |special| format!(", special part {special}"));
            let message = format!("amount {}{special}", row.amount);
            self.add_example(history, Some(row.ex_date), format!("read as {reading}"), message);
        }
        let has = |flag: &Flag| found.metrics.flags.0.contains(&flag.to_string());
        for flag in FLAGS.iter().filter(|flag| has(flag)) {
            self.flags.entry(flag.to_string()).or_default().push(history.symbol.clone());
        }
        if has(&Flag::AmountBasisSuspect) && self.share_bases.len() < MAX_EXAMPLES {
            let mut adjusted = history.clone();
            for row in &mut adjusted.dividends {
                row.record.amount_basis = ShareBasis::SplitAdjusted;
            }
            self.share_bases.push(ShareBasisReadings {
                symbol: history.symbol.clone(),
                raw: GrowthFigures::new(&found.metrics),
                split_adjusted: GrowthFigures::new(&derive_rows(&adjusted, as_of).metrics),
            });
        }
    }

    fn add_example(&mut self, history: &History, date: Option<NaiveDate>, reason: String, message: String) {
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(DoubtedRow { symbol: history.symbol.clone(), date, reason, message });
        }
    }
}

/// Result of the review as text; empty if the review found nothing.
impl Display for RowReview {
    fn fmt(&self, text: &mut Formatter<'_>) -> std::fmt::Result {
        if self.is_too_large {
            return writeln!(
                text,
                "quarantine: not reviewed in a load of more than {MAX_ROWS} rows; see: projector audit"
            );
        }
        for (kind, reasons) in &self.quarantined {
            let reasons: Vec<String> =
                reasons.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
            writeln!(text, "quarantined (judged by these files alone), {kind}: {}", reasons.join(", "))?;
        }
        for DoubtedRow { symbol, date, reason, message } in &self.examples {
            let date = date.map_or_else(String::new, |date| format!(" {date}"));
            writeln!(text, "  {symbol}{date} {reason}: {message}")?;
        }
        for (flag, symbols) in &self.flags {
            let names: Vec<&str> = symbols.iter().take(MAX_EXAMPLES).map(Symbol::as_str).collect();
            let more = if symbols.len() > MAX_EXAMPLES { ", …" } else { "" };
            writeln!(
                text,
                "flagged {flag}: {} ({}{more})",
                counted(symbols.len(), "symbol"),
                names.join(", ")
            )?;
        }
        for ShareBasisReadings { symbol, raw, split_adjusted } in &self.share_bases {
            writeln!(text, "  {symbol} as declared: {raw}")?;
            writeln!(
                text,
                "  {symbol} with amount_basis = \"split_adjusted\" (column or map constant): {split_adjusted}"
            )?;
        }
        Ok(())
    }
}

fn derive_rows(history: &History, as_of: NaiveDate) -> DerivedRows {
    let (policy, rules) = (SourcePolicy::default(), &Rules::DEFAULT);
    derive(history, &DerivationContext { as_of, newest: as_of, benchmark: None, policy: &policy, rules })
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
