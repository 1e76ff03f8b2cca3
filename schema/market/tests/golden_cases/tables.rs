//! Computation of the figures for cases with a table of inputs, for example sector members or calendar rows.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, NaiveDate, Utc};
use market::decimal::ExactDecimal;
use market::event::SecurityType;
use market::history::SourcePolicy;
use market::identity::resolve::resolve;
use market::metrics::calendar::new_york_date;
use market::metrics::dividends::ex_date::Settlement;
use market::metrics::dividends::grower_lists::chowder_number;
use market::metrics::dividends::safety::{HIGH_YIELD_MINIMUM, is_suspect, passes_high_yield};
use market::metrics::sector::{SectorMember, sector_row, top_payers};
use market::metrics::{DerivationContext, ExchangeRates, Rules, derive};
use market::row::{DividendState, Stock, StockFigures, StockRow};
use market::symbol::Symbol;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::inputs::{Inputs, date, decimal, security_type, text};

pub(crate) fn value(key: &str, inputs: &Inputs) -> Option<Value> {
    let table = |name: &str| inputs.profile.get(name).and_then(Value::as_array);
    if let Some(dates) = table("record_dates").filter(|_| key == "derived_ex_dates") {
        return Some(
            dates.iter().filter_map(date).map(|day| json!(Settlement::UnitedStates.ex_date(day))).collect(),
        );
    }
    if let Some(rows) = table("distributions").filter(|_| key == "derived_ex_dates") {
        return Some(rows.iter().map(|row| json!(distribution(row))).collect());
    }
    if let Some(rows) = table("rows").filter(|_| key == "results") {
        return Some(rows.iter().map(chowder_row).collect());
    }
    if let Some(instants) = table("now_utc").filter(|_| key == "today") {
        return Some(instants.iter().map(|instant| json!(new_york_date(utc(instant)))).collect());
    }
    if let Some(queries) = table("query").filter(|_| key == "canonical") {
        let known: BTreeSet<Symbol> =
            table("known")?.iter().filter_map(|symbol| Symbol::parse(symbol.as_str()?).ok()).collect();
        return Some(
            queries.iter().map(|query| json!(resolve(query.as_str().unwrap_or_default(), &known))).collect(),
        );
    }
    if let Some(rows) = table("screen_rows") {
        return screen(key, rows, inputs);
    }
    if let Some(rows) = table("sector_rows") {
        return sector(key, rows, inputs);
    }
    if let Some(rows) = table("calendar_rows") {
        return calendar(key, rows, inputs);
    }
    None
}

fn utc(instant: &Value) -> DateTime<Utc> {
    instant.as_str().and_then(|text| text.parse().ok()).expect("an instant")
}

fn distribution(row: &Value) -> Option<NaiveDate> {
    let price = decimal(&row["price"]);
    let paid = date(&row["pay_date"]).or_else(|| date(&row["payment_date"]));
    Some(Settlement::UnitedStates.ex_date_of(
        date(&row["record_date"])?,
        paid,
        decimal(&row["amount"])?,
        price,
    ))
}

fn chowder_row(row: &Value) -> Value {
    let found =
        chowder_number(decimal(&row["yield_pct"]), decimal(&row["growth_5y_pct"]), row["sector"].as_str());
    json!({ "chowder_number": found.map(|c| c.number.to_string()), "pass": found.map(|c| c.passes) })
}

fn number(row: &Value, keys: &[&str]) -> Option<Decimal> {
    keys.iter().find_map(|key| decimal(&row[*key]))
}

fn kind(row: &Value) -> SecurityType {
    security_type(row["asset_type"].as_str().or_else(|| row["type"].as_str()).unwrap_or("stock"))
}

fn flag(row: &Value, name: &str) -> bool {
    row[name]
        .as_bool()
        .unwrap_or_else(|| row["flags"].as_array().is_some_and(|flags| flags.contains(&json!(name))))
}

/// Returns true if the security of a row is listed, and the state of its dividend.
fn states(row: &Value) -> (bool, DividendState) {
    let words =
        ["status", "dividend_status", "listing_status"].map(|key| row[key].as_str().unwrap_or("active"));
    let listed = !words.contains(&"delisted")
        && row["is_active"].as_bool().unwrap_or(true)
        && row["active"].as_bool().unwrap_or(true);
    let paying = words
        .iter()
        .find_map(|word| word.parse::<DividendState>().ok().filter(|state| *state != DividendState::Active));
    (listed, paying.unwrap_or(DividendState::Active))
}

const YIELDS: [&str; 4] = ["dividend_yield_pct", "yield_pct", "headline_yield_pct", "dividend_yield"];

fn screen(key: &str, rows: &[Value], inputs: &Inputs) -> Option<Value> {
    let minimum =
        ["min_yield", "min_yield_pct"].iter().find_map(|key| inputs.profile.get(*key).and_then(decimal));
    // The rows of the case name only the figures that the screen uses. Derived rows have the other ones.
    let as_of = inputs.as_of.unwrap_or_default();
    let context = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &SourcePolicy::default(),
        rules: &Rules::DEFAULT,
    };
    let Stock { listed: stock, figures, .. } = derive(&inputs.history, &context).stock;
    let survives = |row: &&Value| {
        let (is_listed, status) = states(row);
        let currencies = [&row["price_currency"], &row["dividend_currency"]];
        let differs = currencies.iter().all(|c| !c.is_null()) && currencies[0] != currencies[1];
        let ages = ["price_age_sessions", "price_age", "sessions_old", "age_sessions"];
        let aged = ages.iter().find_map(|key| row[*key].as_i64());
        let dated = ["price_date", "price_as_of"].iter().find_map(|key| date(&row[*key])).zip(inputs.as_of);
        let sessions = dated.map(|(day, as_of)| market::metrics::calendar::sessions_between(day, as_of));
        let dividend_yield = number(row, &YIELDS);
        let differs = flag(row, "currency_mismatch") || differs;
        let stock = StockRow {
            r#type: kind(row),
            is_active: is_listed,
            pays_dividend: Some(status == DividendState::Active),
            dividend_yield: dividend_yield.map(ExactDecimal),
            dividend_currency: Some(if differs { "other" } else { "USD" }.to_owned()),
            currency: "USD".to_owned(),
            ..stock.clone()
        };
        let figures = StockFigures {
            yield_suspect: is_suspect(dividend_yield, &Rules::DEFAULT.safety),
            price_age_sessions: aged.and_then(|age| i32::try_from(age).ok()).or(sessions).or(Some(0)),
            ..figures.clone()
        };
        let min_yield = minimum.unwrap_or(HIGH_YIELD_MINIMUM.into());
        passes_high_yield(&stock, &figures, Some(min_yield), None)
    };
    let known = ["survivors", "symbols", "passing", "screen", "results", "high_yield", "passed"];
    known.contains(&key).then(|| rows.iter().filter(survives).map(|row| row["symbol"].clone()).collect())
}

fn member(row: &Value) -> SectorMember {
    let (is_active, status) = states(row);
    let yielded = number(row, &YIELDS);
    let pays = row["pays_dividend"].as_bool().unwrap_or(yielded.is_some_and(|value| value > Decimal::ZERO));
    let cap = number(row, &["market_cap", "cap"]).and_then(|cap| i64::try_from(cap).ok());
    SectorMember {
        is_unconverted: false,
        symbol: row["symbol"].as_str().unwrap_or_default().to_owned(),
        sector: None,
        industry: None,
        security_type: kind(row),
        is_active,
        pays_dividend: Some(pays && status == DividendState::Active),
        dividend_yield: yielded.map(ExactDecimal),
        yield_suspect: flag(row, "yield_suspect")
            || flag(row, "suspect")
            || market::metrics::dividends::safety::is_suspect(yielded, &Rules::DEFAULT.safety),
        market_cap: cap,
        payout_ratio: number(row, &["payout_ratio_pct"]).map(ExactDecimal),
        growth_5y: number(row, &["growth_5y_pct"]).map(ExactDecimal),
        pe_ratio: number(row, &["pe_ratio"]).map(ExactDecimal),
        is_aristocrat: false,
        is_king: false,
        change_percent_1d: None,
        change_percent_ytd: None,
        next_ex_date: None,
    }
}

fn sector(key: &str, rows: &[Value], inputs: &Inputs) -> Option<Value> {
    let wanted = text(&inputs.profile, "query_sector");
    let rows = rows.iter().filter(|row| wanted.is_none() || row["sector"].as_str() == wanted);
    let members: Vec<SectorMember> = rows.map(member).collect();
    let members: Vec<&SectorMember> = members.iter().collect();
    let figures = sector_row("", &members, inputs.as_of.unwrap_or_default(), "USD");
    let text = |value: Option<market::decimal::ExactDecimal>| json!(value.map(|value| value.0.to_string()));
    Some(match key {
        "median_yield_pct" | "median_yield" => text(figures.median_yield),
        "mean_yield_pct" | "avg_yield_pct" | "average_yield_pct" | "avg_yield" => text(figures.avg_yield),
        "weighted_yield_pct" | "cap_weighted_yield_pct" | "weighted_yield" => text(figures.weighted_yield),
        "max_yield_pct" | "max_yield" => text(figures.max_yield),
        "stock_count" | "member_count" | "members" | "count" => json!(figures.stock_count),
        "payer_count" | "payers" => json!(figures.payer_count),
        "etf_count" => json!(figures.etf_count),
        "market_cap" => json!(figures.market_cap),
        "top_payers" => {
            top_payers(&members, members.len()).iter().map(|member| json!(member.symbol)).collect()
        }
        _ => return None,
    })
}

/// Symbols of the rows with a date in the calendar window, sorted by date and symbol. For a `key` that ends with
/// `count` or `days`, the number of rows.
fn calendar(key: &str, rows: &[Value], inputs: &Inputs) -> Option<Value> {
    let today = inputs.as_of?;
    let payments = key.contains("pay");
    let field: &[&str] = if payments { &["pay_date", "payment_date"] } else { &["ex_date"] };
    let window = inputs.profile.get("window");
    let bound = |names: &[&str]| {
        names.iter().find_map(|name| {
            window.and_then(|w| date(&w[*name])).or_else(|| inputs.profile.get(*name).and_then(date))
        })
    };
    let from = bound(&["start_date", "start", "from"]).unwrap_or(today);
    let until = bound(&["end_date", "end", "to"]).unwrap_or(from + Days::new(if payments { 30 } else { 7 }));
    let least = |name: &str| inputs.profile.get(name).and_then(decimal);
    let mut found: Vec<(NaiveDate, &str, &Value)> = rows
        .iter()
        .filter(|row| {
            row["status"].as_str().is_none_or(|status| !["projected", "cancelled"].contains(&status))
        })
        .filter(|row| {
            least("min_amount").is_none_or(|least| number(row, &["amount"]).is_some_and(|a| a >= least))
        })
        .filter(|row| least("min_yield").is_none_or(|least| number(row, &YIELDS).is_some_and(|y| y >= least)))
        .filter_map(|row| {
            Some((field.iter().find_map(|name| date(&row[*name]))?, row["symbol"].as_str()?, row))
        })
        .filter(|(day, ..)| from <= *day && *day <= until)
        .collect();
    found.sort_by_key(|(day, symbol, _)| (*day, *symbol));
    if key.ends_with("count") || key.ends_with("days") {
        return Some(json!(found.len()));
    }
    Some(found.into_iter().map(|(_, symbol, _)| json!(symbol)).collect())
}
