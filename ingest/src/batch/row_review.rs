//! Review of a load: applies the domain rules R28 and R34–R38, and reports doubtful rows to the user.
//!
//! The review uses only the files of the load. The projector uses all sources, so the figures of the API may differ.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use chrono::NaiveDate;
use market::event::ShareBasis;
use market::history::{History, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, ExchangeRates, Rules, derive};
use market::row::{AmountReading, Flag, Metrics};
use market::symbol::Symbol;
use serde::Serialize;
use telemetry::report::Report;
use telemetry::{counted, list_names};

/// Maximum number of rows in a review, because all of them are in memory. A larger load is not reviewed.
pub(super) const MAX_ROWS: usize = 500_000;
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
    /// Reviews the rows of one symbol as of the day `as_of`.
    pub(super) fn add_history(&mut self, history: &History, as_of: NaiveDate) {
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

    /// Adds the findings of the review.
    pub(crate) fn add_to(&self, report: &mut Report) {
        if self.is_too_large {
            return report.add_fact(format!(
                "quarantine: not reviewed in a load of more than {MAX_ROWS} rows; see: projector audit"
            ));
        }
        for (kind, reasons) in &self.quarantined {
            let reasons: Vec<String> =
                reasons.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
            report.add_fact(format!(
                "quarantined (judged by these files alone), {kind}: {}",
                reasons.join(", ")
            ));
        }
        for DoubtedRow { symbol, date, reason, message } in &self.examples {
            let date = date.map_or_else(String::new, |date| format!(" {date}"));
            report.add_fact(format!("  {symbol}{date} {reason}: {message}"));
        }
        for (flag, symbols) in &self.flags {
            let names = list_names(symbols, MAX_EXAMPLES, symbols.len());
            report.add_fact(format!("flagged {flag}: {} ({names})", counted(symbols.len(), "symbol")));
        }
        for ShareBasisReadings { symbol, raw, split_adjusted } in &self.share_bases {
            report.add_fact(format!("  {symbol} as declared: {raw}"));
            report.add_fact(format!(
                "  {symbol} with amount_basis = \"split_adjusted\" (column or map constant): {split_adjusted}"
            ));
        }
    }
}

fn derive_rows(history: &History, as_of: NaiveDate) -> DerivedRows {
    let (rates, policy, rules) = (&ExchangeRates::NONE, SourcePolicy::default(), &Rules::DEFAULT);
    derive(
        history,
        &DerivationContext {
            as_of,
            newest: as_of,
            benchmark: None,
            rates,
            reporting_currency: "USD",
            policy: &policy,
            rules,
        },
    )
}
