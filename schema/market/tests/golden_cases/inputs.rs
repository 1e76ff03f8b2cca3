//! Conversion of the inputs of a worked case to a history, as if ingest had loaded them.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, TimeDelta};
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::day::day_number;
use market::event::{
    Action, Dividend, DividendEvidence, DividendType, FormerSymbol, Frequency, Fundamentals, FxRate,
    ListingStatus, Security, SecurityType, ShareBasis, Split,
};
use market::history::{History, Observation, SourceBars};
use market::metrics::currency::Currency;
use market::symbol::Symbol;
use rust_decimal::Decimal;
use serde_json::{Map, Value};

pub(crate) struct Inputs {
    pub(crate) profile: Map<String, Value>,
    pub(crate) as_of: Option<NaiveDate>,
    pub(crate) history: History,
    pub(crate) benchmark: Option<History>,
    pub(crate) exchange_rates: Vec<Observation<FxRate>>,
    pub(crate) first_bar: Option<NaiveDate>,
    /// Map from the line number of a dividend row to the position of this row in the case.
    pub(crate) dividend_lines: BTreeMap<u64, usize>,
}

pub(crate) fn date(value: &Value) -> Option<NaiveDate> {
    value.as_str().filter(|text| *text != "0000-00-00")?.parse().ok()
}

pub(crate) fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

impl Inputs {
    pub(crate) fn read(case: &Value) -> Self {
        let inputs = &case["inputs"];
        let profile = inputs["profile"].as_object().cloned().unwrap_or_default();
        let as_of = date(&case["as_of"]);
        let rows = |key: &str| inputs[key].as_array().cloned().unwrap_or_default();
        let unit = Currency::parse(text(&profile, "currency").unwrap_or("USD")).expect("a currency");
        let symbol = Symbol::parse(text(&profile, "symbol").unwrap_or("TEST")).expect("a symbol");
        let dividends: Vec<Value> = rows("dividends");
        let lines = dividends.iter().enumerate().map(|(index, row)| (line(row, index), index)).collect();
        let prices = rows("prices");
        let history = History {
            symbol: symbol.clone(),
            former_symbols: former_symbols(&profile),
            security: Some(observed(None, 0, Action::Put, 1, security(&profile, &symbol, &unit))),
            dividends: dividends
                .iter()
                .enumerate()
                .map(|(index, row)| dividend(row, index, &symbol, &unit))
                .collect(),
            splits: rows("splits")
                .iter()
                .enumerate()
                .map(|(index, row)| split(row, index, &symbol))
                .collect(),
            fundamentals: as_of
                .iter()
                .map(|as_of| observed(None, 0, Action::Put, 1, fundamentals(&profile, &symbol, *as_of)))
                .collect(),
            etf: Vec::new(),
            holdings: Vec::new(),
            decisions: Vec::new(),
            evidence: evidence(&prices, &symbol),
            dividend_feeds: (1900..=2100).map(|year| ("case".to_owned(), year)).collect(),
            prices: vec![SourceBars {
                source: "case".into(),
                bars: bars(&prices).into(),
                closes_only: Vec::new(),
            }],
        };
        let benchmark = ["benchmark_prices", "benchmark"]
            .iter()
            .find_map(|key| profile.get(*key))
            .or(inputs.get("benchmark_prices"));
        let benchmark = benchmark.and_then(Value::as_array).map(|rows| History {
            dividends: Vec::new(),
            splits: Vec::new(),
            prices: vec![SourceBars {
                source: "case".into(),
                bars: bars(rows).into(),
                closes_only: Vec::new(),
            }],
            ..history.clone()
        });
        let exchange_rates = rows("exchange_rates").iter().map(exchange_rate).collect();
        let first_bar = prices.iter().filter_map(|row| date(&row["date"])).min();
        Self { profile, as_of, history, benchmark, exchange_rates, first_bar, dividend_lines: lines }
    }
}

pub(crate) fn text<'a>(profile: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    profile.get(key).and_then(Value::as_str)
}

fn line(row: &Value, index: usize) -> u64 {
    row["seq"].as_u64().unwrap_or(index as u64)
}

fn observed<T>(id: Option<String>, revision: i64, action: Action, line: u64, record: T) -> Observation<T> {
    let observed_at = DateTime::UNIX_EPOCH;
    Observation {
        source: "case".into(),
        id,
        security_ref: None,
        revision,
        action,
        observed_at,
        line,
        frame: [0; 16],
        record,
    }
}

fn first<'a>(profile: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| profile.get(*key)).filter(|value| !value.is_null())
}

pub(crate) fn security_type(word: &str) -> SecurityType {
    match word {
        "cef" => SecurityType::ClosedEndFund,
        "fund" => SecurityType::Etf,
        word => word.parse().unwrap_or(SecurityType::Stock),
    }
}

fn security(profile: &Map<String, Value>, symbol: &Symbol, unit: &Currency) -> Security {
    let status = text(profile, "status").or(text(profile, "listing_status"));
    let seed = profile.get("streak_seed");
    let year = |key: &str| seed.and_then(|seed| seed[key].as_i64()).and_then(|year| i32::try_from(year).ok());
    let delisted_on = first(profile, &["delisted_on", "delisting_date", "delisted"]).and_then(date);
    let suspended = profile
        .iter()
        .find(|(key, value)| key.contains("suspen") && !value.is_null())
        .map(|(_, value)| value);
    Security {
        symbol: symbol.clone(),
        name: symbol.to_string(),
        r#type: security_type(text(profile, "asset_type").unwrap_or("stock")),
        currency: unit.code.clone(),
        status: if status == Some("delisted") || delisted_on.is_some() {
            ListingStatus::Delisted
        } else {
            ListingStatus::Active
        },
        former_symbols: former_symbols(profile),
        indexes: if profile.get("sp500") == Some(&Value::Bool(true)) {
            vec!["sp500".into()]
        } else {
            Vec::new()
        },
        exchange: None,
        sector: text(profile, "sector").map(str::to_owned),
        industry: None,
        country: None,
        description: None,
        website: None,
        ceo: None,
        employees: None,
        ipo_date: first(profile, &["ipo_date", "listed_on", "listing_date", "listed_from", "listed"])
            .and_then(date),
        cik: None,
        figi: None,
        isin: None,
        cusip: None,
        delisted_on,
        dividend_suspended_on: suspended.and_then(notice_date),
        streak_seed_years: year("years"),
        streak_seed_through: year("through_year"),
        successor: None,
        merger_ratio: None,
        quote_unit: unit.minor.map(str::to_owned),
    }
}

/// Date of the notice that a company suspends its dividend. A case may nest the date in objects and arrays; the first
/// date is used.
fn notice_date(value: &Value) -> Option<NaiveDate> {
    match value {
        Value::Object(fields) => fields.values().find_map(notice_date),
        Value::Array(notices) => notices.iter().find_map(notice_date),
        value => date(value),
    }
}

fn former_symbols(profile: &Map<String, Value>) -> Vec<FormerSymbol> {
    let rows =
        first(profile, &["former_symbols", "former"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let former = |row: &Value| {
        let symbol = row.as_str().or_else(|| row["symbol"].as_str())?;
        Some(FormerSymbol {
            symbol: Symbol::parse(symbol).ok()?,
            from: date(&row["from"]),
            to: date(&row["to"]),
        })
    };
    rows.iter().filter_map(former).collect()
}

fn dividend(row: &Value, index: usize, symbol: &Symbol, prices: &Currency) -> Observation<Dividend> {
    let unit = row["currency"].as_str().and_then(Currency::parse).unwrap_or_else(|| prices.clone());
    let kind = match row["type"].as_str().unwrap_or("regular") {
        "spinoff" => DividendType::SpinOff,
        "recurring" | "CD" => DividendType::Regular,
        "SC" => DividendType::Special,
        "LT" | "capital_gain_lt" => DividendType::CapitalGainLong,
        "ST" | "capital_gain_st" => DividendType::CapitalGainShort,
        word => word.parse().expect("a dividend type"),
    };
    let tag = row.get("vendor_frequency").or_else(|| row.get("frequency"));
    let frequency = tag.and_then(|tag| match tag {
        Value::String(word) => word.parse().ok(),
        tag => tag.as_i64().and_then(Frequency::from_payments_per_year),
    });
    let action = match row["action"].as_str().unwrap_or("insert") {
        "cancel" | "delete" | "retract" => Action::Retract,
        _ => Action::Put,
    };
    let adjusted = row["amount_basis"].as_str() == Some("split_adjusted");
    let record = Dividend {
        symbol: symbol.clone(),
        amount: unit.to_major(decimal(&row["amount"]).unwrap_or_default()),
        currency: unit.code.into(),
        r#type: kind,
        amount_basis: if adjusted { ShareBasis::SplitAdjusted } else { ShareBasis::Raw },
        ex_date: date(&row["ex_date"]),
        record_date: date(&row["record_date"]),
        payment_date: date(&row["pay_date"]).or_else(|| date(&row["payment_date"])),
        declaration_date: date(&row["declaration_date"]),
        frequency,
        basis_as_of: date(&row["basis_as_of"]),
        sibling_amounts: Vec::new(),
    };
    let id = row["id"].as_str().map(str::to_owned);
    let mut dividend =
        observed(id, row["revision"].as_i64().unwrap_or_default(), action, line(row, index), record);
    if let Some(source) = row["source"].as_str() {
        // Sources are loaded in the order of their rows.
        dividend.source = source.into();
        dividend.observed_at += TimeDelta::seconds(i64::try_from(index).expect("a few rows"));
    }
    dividend
}

/// Steps of the ratio `adjusted close / close`, as ingest records them for a file of raw closes.
fn evidence(prices: &[Value], symbol: &Symbol) -> Vec<Observation<DividendEvidence>> {
    let ratio = |row: &Value| Some(decimal(&row["adjusted_close"])? / decimal(&row["close"])?);
    let step = |(before, after): (&Value, &Value)| {
        let factor = (ratio(before)? / ratio(after)?).round_dp(6);
        let record = serde_json::json!({
            "symbol": symbol, "previous": before["date"], "ex_date": after["date"], "factor": factor.to_string(), "basis": "raw",
        });
        let record = serde_json::from_value(record).expect("evidence");
        (factor != Decimal::ONE).then(|| observed(None, 0, Action::Put, 1, record))
    };
    prices.iter().zip(prices.iter().skip(1)).filter_map(step).collect()
}

fn split(row: &Value, index: usize, symbol: &Symbol) -> Observation<Split> {
    let record = Split {
        symbol: symbol.clone(),
        ex_date: date(&row["ex_date"]).expect("an ex-date"),
        from: decimal(&row["from"]).expect("old shares"),
        to: decimal(&row["to"]).expect("new shares"),
        declaration_date: date(&row["declaration_date"]),
        payable_date: date(&row["payable_date"]),
        r#type: None,
    };
    observed(
        row["id"].as_str().map(str::to_owned),
        row["revision"].as_i64().unwrap_or_default(),
        Action::Put,
        line(row, index),
        record,
    )
}

fn exchange_rate(row: &Value) -> Observation<FxRate> {
    let currency = |name: &str| row[name].as_str().expect("a currency");
    let (day, rate) = (date(&row["date"]).expect("a date"), decimal(&row["rate"]).expect("a rate"));
    observed(None, 0, Action::Put, 1, FxRate::new(currency("base"), currency("quote"), day, rate))
}

fn bars(rows: &[Value]) -> Bars {
    let scale = 6;
    let price = |value: &Value| {
        decimal(value).map_or(MISSING, |value| {
            let scaled = value * Decimal::from(1_000_000);
            i64::try_from(scaled.round()).expect("a price")
        })
    };
    let mut bars = Bars { scale, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    for row in rows {
        let bar = Bar {
            day: day_number(date(&row["date"]).expect("a date")),
            open: price(&row["open"]),
            high: price(&row["high"]),
            low: price(&row["low"]),
            close: price(&row["close"]),
            volume: decimal(&row["volume"]).and_then(|v| i64::try_from(v).ok()).unwrap_or(MISSING),
            vwap: MISSING,
            trade_count: MISSING,
        };
        bars.push(bar, 0);
    }
    bars.merge(Bars::default()).expect("bars of one scale")
}

fn fundamentals(profile: &Map<String, Value>, symbol: &Symbol, as_of: NaiveDate) -> Fundamentals {
    let mut record = serde_json::json!({ "symbol": symbol, "as_of": as_of });
    let named = [
        ("eps_ttm", &["eps_ttm", "eps_ttm_diluted", "diluted_eps_ttm", "eps"][..]),
        ("eps_as_of", &["eps_as_of"]),
        ("reported_currency", &["reported_currency"]),
        ("ffo_per_share_ttm", &["ffo_per_share_ttm", "ffo_per_share", "ffo_ttm"]),
        ("shares_outstanding", &["shares_outstanding"]),
        ("shares_as_of", &["shares_as_of"]),
        ("float_market_cap", &["float_market_cap"]),
        ("avg_daily_value", &["avg_daily_value", "advt_3m"]),
        ("operating_cash_flow_ttm", &["operating_cash_flow_ttm", "cfo_ttm", "operating_cash_flow", "cfo"]),
        ("capital_expenditure_ttm", &["capital_expenditure_ttm", "capex_ttm", "capex"]),
        ("free_cash_flow_ttm", &["free_cash_flow_ttm", "fcf_ttm", "fcf"]),
        ("dividends_paid_ttm", &["dividends_paid_ttm", "dividends_paid"]),
    ];
    for (field, keys) in named {
        if let Some(value) = first(profile, keys) {
            record[field] = value.clone();
        }
    }
    serde_json::from_value(record).expect("fundamentals")
}
