//! Figures over time on the page of a security: growth of an amount, and yield and payout ratio by quarter.

use market::decimal::ExactDecimal;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::dashboard::market::chart::{Close, PriceChart, PriceLine};
use crate::dashboard::market::values::{Unit, render_date, render_value, rows_of, str_of};

/// Renders the growth of an amount. `reinvested` and `cash` are the rows with and without reinvestment of dividends.
pub(super) fn render_growth(reinvested: &Value, cash: &Value, currency: &str) -> Option<Markup> {
    let line = |name: &str, rows: &Value| line_of(name, rows, "value");
    let lines = vec![line("With reinvested dividends", reinvested), line("Dividends as cash", cash)];
    let chart = PriceChart {
        title: "Growth of an amount",
        currency,
        lines,
        ex_dates: Vec::new(),
        splits: Vec::new(),
    };
    let (first, last, last_cash) =
        (rows_of(reinvested).first()?, rows_of(reinvested).last()?, rows_of(cash).last()?);
    let money = Unit::Money(currency);
    let yearly = &last["annualized_return"];
    Some(html! {
        p {
            (render_value(&last["invested"], money)) ", invested on " (render_date(str_of(&first["date"])))
            ", are " strong id="grown" { (render_value(&last["value"], money)) } " with reinvested dividends"
            @if !yearly.is_null() { " (" (render_value(yearly, Unit::Percent)) " a year)" }
            ", and " (render_value(&last_cash["value"], money)) " with dividends as cash."
        }
        (chart.render()?)
    })
}

/// Renders charts of the yield and the payout ratio. A figure that is never known has no chart.
pub(super) fn render_figures_by_quarter(points: &Value, mean_yield: &Value) -> Option<Markup> {
    let chart = |field: &str, title: &'static str| {
        let lines = vec![line_of(title, points, field)];
        PriceChart { title, currency: "%", lines, ex_dates: Vec::new(), splits: Vec::new() }.render()
    };
    let charts = [chart("dividend_yield", "Dividend yield"), chart("payout_ratio", "Payout ratio")];
    if charts.iter().all(Option::is_none) {
        return None;
    }
    Some(html! {
        @if !mean_yield.is_null() { p { "Mean yield of five years: " (render_value(mean_yield, Unit::Percent)) } }
        @for chart in charts.into_iter().flatten() { (chart) }
    })
}

fn line_of(name: &str, rows: &Value, field: &str) -> PriceLine {
    let value = |row: &Value| {
        let value = Decimal::from_str_exact(row[field].as_str()?).ok()?;
        Some(Close { date: str_of(&row["date"]).parse().ok()?, close: ExactDecimal(value) })
    };
    PriceLine { name: name.to_owned(), closes: rows_of(rows).iter().filter_map(value).collect() }
}
