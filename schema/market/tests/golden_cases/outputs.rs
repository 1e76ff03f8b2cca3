//! Derived figures of a worked case, by the names that the cases use.

use chrono::NaiveDate;
use market::day::date_of;
use market::decimal::with_decimals_as_text;
use market::history::SourcePolicy;
use market::metrics::ExchangeRates;
use market::metrics::calendar::sessions_between;
use market::metrics::{
    CloseSeries, DerivationContext, DerivedRows, Explanation, Rules, benchmark, derive, explain, total_return,
};
use market::price::{CumulativeFactors, PriceBasis, PriceMultiplier};
use market::row::DividendStatus;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::inputs::Inputs;

pub(crate) struct Outputs<'a> {
    inputs: &'a Inputs,
    derived: Option<Box<(DerivedRows, Explanation)>>,
    fields: Map<String, Value>,
    total_return: Option<Decimal>,
}

/// Figures whose name differs between the cases and the API. Each pair is the name in the cases and the name of the
/// served field.
const NAMES: [(&str, &str); 23] = [
    ("ttm_dividend", "dps_ttm"),
    ("ttm_dividend_total", "dps_ttm_total"),
    ("forward_dividend", "dps_forward"),
    ("dividend_yield_pct", "dividend_yield"),
    ("ttm_yield_pct", "yield_ttm"),
    ("ttm_yield_total_pct", "yield_ttm_total"),
    ("forward_yield_pct", "yield_forward"),
    ("payout_ratio_pct", "payout_ratio"),
    ("fcf_payout_ratio_pct", "fcf_payout_ratio"),
    ("growth_1y_pct", "growth_1y"),
    ("growth_3y_pct", "growth_3y"),
    ("growth_5y_pct", "growth_5y"),
    ("growth_10y_pct", "growth_10y"),
    ("streak_years", "increase_streak_years"),
    ("payment_years", "payment_streak_years"),
    ("is_aristocrat", "is_dividend_aristocrat"),
    ("is_king", "is_dividend_king"),
    ("high_52w", "year_high"),
    ("low_52w", "year_low"),
    ("volatility_pct", "volatility_1y"),
    ("beta", "beta_5y"),
    ("latest_increase_pct", "latest_increase_percent"),
    ("safety_label", "safety"),
];

impl<'a> Outputs<'a> {
    /// Derived rows and their explanation; `None` if the case has no as-of date.
    pub(crate) fn explained(&self) -> Option<&(DerivedRows, Explanation)> {
        self.derived.as_deref()
    }

    pub(crate) fn of(inputs: &'a Inputs) -> Self {
        let policy = SourcePolicy::default();
        let rules = &Rules::DEFAULT;
        let rates = ExchangeRates::new(&inputs.exchange_rates, &policy);
        let months = inputs.as_of.zip(inputs.benchmark.as_ref());
        let months = months.map(|(as_of, history)| benchmark(history, as_of, &rates, &policy, rules));
        let market = inputs.as_of.map(|as_of| DerivationContext {
            as_of,
            newest: as_of,
            benchmark: months.as_ref(),
            rates: &rates,
            reporting_currency: "USD",
            policy: &policy,
            rules,
        });
        let derived = market
            .map(|market| Box::new((derive(&inputs.history, &market), explain(&inputs.history, &market))));
        let mut fields = Map::new();
        if let Some((derived, _)) = derived.as_deref() {
            let rows = with_decimals_as_text(|| {
                [
                    json!(derived.fundamentals),
                    json!(derived.stock),
                    json!(derived.quote),
                    json!(derived.metrics),
                ]
            });
            rows.into_iter().filter_map(|row| row.as_object().cloned()).for_each(|row| fields.extend(row));
        }
        let total_return = derived
            .as_deref()
            .zip(inputs.first_bar)
            .and_then(|((derived, _), from)| total_return_since(derived, from));
        Self { inputs, derived, fields, total_return }
    }

    pub(crate) fn value(&self, key: &str) -> Option<Value> {
        let (derived, explanation) = self.derived.as_deref()?;
        let named = NAMES.iter().find(|(name, _)| *name == key).map_or(key, |(_, field)| field);
        let by_date = |value: &dyn Fn(NaiveDate) -> Value| -> Value {
            let days = derived.bars.day.iter().map(|day| date_of(*day));
            Value::Object(days.map(|day| (day.to_string(), value(day))).collect())
        };
        Some(match key {
            "adjusted_close" => by_date(&|day| text(served_close(derived, day, PriceBasis::ALL))),
            "split_adjusted_close" => by_date(&|day| text(served_close(derived, day, PriceBasis::SPLIT))),
            "adjusted_close_return_pct" => {
                let (first, last) = (date_of(*derived.bars.day.first()?), date_of(*derived.bars.day.last()?));
                let close = |day| served_close(derived, day, PriceBasis::ALL);
                let ratio = close(last) / close(first) - Decimal::ONE;
                text(ratio * Decimal::ONE_HUNDRED)
            }
            "split_adjusted_dividends" => {
                let live = derived
                    .dividends
                    .iter()
                    .filter(|d| matches!(d.status, DividendStatus::Declared | DividendStatus::Paid));
                let adjusted = live.map(|d| (d.ex_date.to_string(), text(d.adjusted_amount.0)));
                Value::Object(adjusted.collect())
            }
            "annual_totals" => {
                let totals = derived.metrics.annual_totals.0.iter();
                Value::Object(totals.map(|total| (total.year.to_string(), text(total.amount.0))).collect())
            }
            "kept_ex_dates" => {
                let kept = derived
                    .dividends
                    .iter()
                    .filter(|d| matches!(d.status, DividendStatus::Declared | DividendStatus::Paid));
                kept.map(|d| json!(d.ex_date)).collect()
            }
            "quarantined" => self.quarantined(derived),
            "total_return_pct" => self.total_return.map_or(Value::Null, text),
            "next_ex_date" => json!(derived.metrics.next.0.as_ref().map(|next| next.ex_date)),
            "next_ex_status" => json!(derived.metrics.next.0.as_ref().map(|next| next.status)),
            "frequency" if ["none", "unknown"].contains(&derived.metrics.frequency.as_str()) => Value::Null,
            "frequency_source" => json!(explanation.frequency_source),
            "payout_status" => json!(explanation.payout_status),
            "payout_basis" => json!(explanation.payout_basis),
            "ttm_complete" => json!(!derived.metrics.flags.0.iter().any(|flag| flag == "ttm_incomplete")),
            "latest_close" => self.fields.get("price")?.clone(),
            "latest_date" | "latest_close_date" | "price_as_of" => self.fields.get("price_date")?.clone(),
            "sessions_between" => json!(sessions_between(self.inputs.first_bar?, self.inputs.as_of?)),
            "stale_sessions" | "age_sessions" | "sessions_stale" => {
                self.fields.get("price_age_sessions")?.clone()
            }
            "status" => json!(if derived.stock.listed.is_active { "active" } else { "delisted" }),
            _ => self.fields.get(named)?.clone(),
        })
    }

    fn quarantined(&self, derived: &DerivedRows) -> Value {
        let index =
            |line: i64| self.inputs.dividend_lines.get(&u64::try_from(line).unwrap_or_default()).copied();
        let mut rows: Vec<(Option<usize>, &str)> =
            derived.quarantined.iter().map(|row| (index(row.line), row.reason.as_str())).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(index, reason)| json!({ "index": index, "reason": reason })).collect()
    }
}

fn text(value: Decimal) -> Value {
    Value::String(value.to_string())
}

fn total_return_since(derived: &DerivedRows, from: NaiveDate) -> Option<Decimal> {
    let bars = &derived.bars;
    let close = |index: usize| Decimal::new(bars.close[index], bars.scale);
    let closes = CloseSeries { days: &bars.day, close: &close, factors: &derived.factors };
    let first = bars.day.partition_point(|day| date_of(*day) <= from).checked_sub(1)?;
    total_return(&closes, first, bars.len().checked_sub(1)?)
}

fn served_close(derived: &DerivedRows, day: NaiveDate, basis: PriceBasis) -> Decimal {
    let wanted = market::day::day_number(day);
    let index = derived.bars.day.binary_search(&wanted).expect("a bar of the day");
    let factors = CumulativeFactors::new(&derived.factors, None);
    let factor = factors.at(factors.position(wanted));
    let micros = PriceMultiplier::new(factor, basis, derived.bars.scale).micros(derived.bars.close[index]);
    Decimal::from_i128_with_scale(micros, 6).normalize()
}
