//! Conversion of canonical cells to records of the log, per kind.

use chrono::NaiveDate;
use market::event::{
    Action, Dividend, DividendType, Etf, FormerSymbol, Frequency, Fundamentals, FxRate, Holding, Kind,
    ListingStatus, MarketSession, Security, SecurityType, ShareBasis, Split,
};
use market::metrics::currency::Currency;
use market::metrics::merge::{dividend_fault, dividend_key_fault, split_fault};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::price_rows::accept_price;
use crate::batch::row_accumulator::{RowAccumulator, RowProvenance};
use crate::normalize::{
    RecordCells, RowError, abbreviate, parse_date, parse_session_date, parse_web_address,
};

/// Builds a record from the cells that have the names of its fields. `column = read => function` applies the function
/// to the value of the cell.
macro_rules! record {
    ($cells:ident as $record:ident {
        texts: $($text:ident),*;
        values: $($column:ident = $read:ident $(=> $convert:ident)?),*;
        $($rest:tt)*
    }) => {
        // The error of a row is the error of its first invalid cell in this order.
        $record {
            $($text: $cells.owned_text(stringify!($text)),)*
            $($rest)*
            $($column: $($convert)? ($cells.$read(stringify!($column))?),)*
        }
    };
}

/// Converts one record, and adds it to `rows`. `bytes` is the length of its source text.
pub(super) fn convert_record(
    kind: Kind,
    cells: &RecordCells<'_>,
    line: u64,
    bytes: usize,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    if kind == Kind::Price {
        return accept_price(cells, line, rows);
    }
    let provenance = provenance(cells, line, rows)?;
    let retracted = provenance.action == Action::Retract;
    match kind {
        Kind::Security => {
            rows.add_security(provenance.with_record(security(cells, retracted)?), bytes);
            note_website(cells, line, rows);
        }
        Kind::Dividend => {
            let record = dividend(cells, retracted, provenance.id.is_some())?;
            let type_text = cells.text("type_text").or_else(|| cells.text("type")).unwrap_or_default();
            rows.add_dividend(provenance.with_record(record), &type_text.to_ascii_lowercase(), bytes);
        }
        Kind::Split => rows.add_split(provenance.with_record(split(cells, retracted)?), bytes),
        Kind::Fundamentals => rows.add_fundamentals(provenance.with_record(fundamentals(cells)?), bytes),
        Kind::Etf => rows.add_etf(provenance.with_record(etf(cells)?), bytes),
        Kind::Holding => accept_holding(cells, provenance, rows)?,
        Kind::Fx => {
            let rate = fx_rate(cells, retracted)?;
            rows.check_not_future("date", rate.date)?;
            rows.add_fx_rate(provenance.with_record(rate), bytes);
        }
        Kind::Session => {
            let date = parse_session_date("date", cells.required_text("date")?.as_bytes(), rows.zone)?;
            rows.check_not_future("date", date)?;
            let note = cells.owned_text("note");
            rows.add_session(provenance.with_record(MarketSession { date, note }), bytes);
        }
        Kind::Price | Kind::Decision | Kind::Evidence | Kind::Reject | Kind::Run => {}
    }
    rows.stats.rounded += cells.rounded_count();
    Ok(())
}

fn provenance(cells: &RecordCells<'_>, line: u64, rows: &RowAccumulator) -> Result<RowProvenance, RowError> {
    Ok(RowProvenance {
        line,
        id: cells.owned_text("id"),
        revision: cells.integer("revision")?.unwrap_or(0),
        action: cells.word("action")?.unwrap_or(Action::Put),
        observed_at: cells.time("observed_at")?.unwrap_or(rows.observed_at),
        security_ref: cells.owned_text("security_ref"),
        record: (),
    })
}

/// Converts a security. Its currency is empty if the row has none.
fn security(cells: &RecordCells<'_>, retracted: bool) -> Result<Security, RowError> {
    let symbol = cells.required_symbol("symbol")?;
    let r#type = match cells.word("type")? {
        Some(r#type) => r#type,
        None if retracted => SecurityType::Stock,
        None => return Err(cells.missing_value("type")),
    };
    let name = match cells.owned_text("name") {
        Some(name) => name,
        None if retracted => symbol.to_string(),
        None => return Err(cells.missing_value("name")),
    };
    let currency = cells.currency("currency")?;
    let minor = currency.as_ref().and_then(|currency| currency.minor);
    Ok(record! { cells as Security {
        texts: industry, description, ceo, cik, figi, isin, cusip;
        values: employees = integer, ipo_date = date, delisted_on = date, dividend_suspended_on = date,
            streak_seed_years = integer, streak_seed_through = integer, successor = symbol, merger_ratio = figure;
        symbol,
        name,
        r#type,
        currency: currency.map(|currency| currency.code).unwrap_or_default(),
        quote_unit: minor.map(str::to_owned),
        status: cells.word("status")?.unwrap_or(ListingStatus::Active),
        former_symbols: former_symbols(cells.text("former_symbols"))?,
        indexes: indexes(cells.text("indexes"))?,
        exchange: cells.exchange("exchange"),
        sector: cells.sector("sector"),
        country: cells.country("country"),
        website: cells.text("website").and_then(parse_web_address).map(str::to_owned),
    } })
}

/// Adds a reject for the website cell if its address is invalid. The rest of the row is accepted.
fn note_website(cells: &RecordCells<'_>, line: u64, rows: &mut RowAccumulator) {
    if let Some(text) = cells.text("website").filter(|text| parse_web_address(text).is_none()) {
        let message = format_args!(
            "website {:?} is not an http or https address: omitted",
            abbreviate(text.as_bytes())
        );
        rows.add_reject(line, text.as_bytes(), RowError::new("bad_website", message));
    }
}

fn dividend(cells: &RecordCells<'_>, retracted: bool, has_id: bool) -> Result<Dividend, RowError> {
    let symbol = cells.required_symbol("symbol")?;
    let currency = cells.currency("currency")?;
    let amount = match cells.amount("amount")? {
        Some(amount) => currency.as_ref().map_or(amount, |currency| currency.to_major(amount)),
        None if retracted => Decimal::ZERO,
        None => return Err(cells.missing_value("amount")),
    };
    let dividend = Dividend {
        symbol,
        amount,
        currency: currency.map(|currency| currency.code.into()).unwrap_or_default(),
        r#type: cells.word("type")?.unwrap_or(DividendType::Regular),
        amount_basis: amount_basis(cells)?,
        ex_date: cells.date("ex_date")?,
        record_date: cells.date("record_date")?,
        payment_date: cells.date("payment_date")?,
        declaration_date: cells.date("declaration_date")?,
        frequency: frequency(cells)?,
        basis_as_of: cells.date("basis_as_of")?,
        sibling_amounts: Vec::new(),
    };
    let fault = match (retracted, has_id) {
        (false, _) => dividend_fault(&dividend),
        (true, false) => dividend_key_fault(&dividend),
        (true, true) => None,
    };
    fault.map_or(Ok(dividend), |fault| Err(RowError::from_rule(fault)))
}

fn amount_basis(cells: &RecordCells<'_>) -> Result<ShareBasis, RowError> {
    match cells.text("amount_basis") {
        None | Some("as_declared" | "raw") => Ok(ShareBasis::Raw),
        Some("split_adjusted") => Ok(ShareBasis::SplitAdjusted),
        Some(text) => Err(RowError::new(
            "bad_value",
            format_args!("amount_basis {text:?} must be one of: as_declared, split_adjusted"),
        )),
    }
}

/// Frequency of payments, from a word (`quarterly`) or from a number of payments a year (`4`).
fn frequency(cells: &RecordCells<'_>) -> Result<Option<Frequency>, RowError> {
    let Some(text) = cells.text("frequency").filter(|text| text.bytes().all(|b| b.is_ascii_digit())) else {
        return cells.word("frequency");
    };
    let class = text.parse().ok().and_then(Frequency::from_payments_per_year);
    let message = format_args!(
        "frequency {text} must be a usual number of payments a year: 0, 1, 2, 3, 4, 6, 12, 13, 24, 26 or 52"
    );
    class.map(Some).ok_or_else(|| RowError::new("bad_value", message))
}

fn split(cells: &RecordCells<'_>, retracted: bool) -> Result<Split, RowError> {
    let symbol = cells.required_symbol("symbol")?;
    let ex_date = cells.required_date("ex_date")?;
    let side = |name: &str| match cells.figure(name)? {
        Some(shares) => Ok(shares),
        None if retracted => Ok(Decimal::ONE),
        None => Err(cells.missing_value(name)),
    };
    let split = Split {
        symbol,
        ex_date,
        from: side("from")?,
        to: side("to")?,
        declaration_date: cells.date("declaration_date")?,
        payable_date: cells.date("payable_date")?,
        r#type: cells.owned_text("type"),
    };
    let fault = if retracted { None } else { split_fault(&split) };
    fault.map_or(Ok(split), |fault| Err(RowError::from_rule(fault)))
}

fn fx_rate(cells: &RecordCells<'_>, retracted: bool) -> Result<FxRate, RowError> {
    let date = cells.required_date("date")?;
    let currency = |column: &str| match cells.currency(column)? {
        None => Err(RowError::missing_value(column)),
        Some(Currency { code, minor: Some(minor) }) => {
            let message = format_args!("{column} {minor} is a hundredth of {code}: give the rate of {code}");
            Err(RowError::new("minor_unit", message))
        }
        Some(Currency { code, minor: None }) => Ok(code),
    };
    let rate = match cells.amount("rate")? {
        Some(rate) => rate,
        None if retracted => Decimal::ONE,
        None => return Err(RowError::missing_value("rate")),
    };
    let (base, quote) = (currency("base")?, currency("quote")?);
    if rate <= Decimal::ZERO {
        let message = format_args!("the rate is {rate}, but it must be positive");
        return Err(RowError::new("non_positive_rate", message));
    }
    if base == quote {
        return Err(RowError::new("equal_currencies", format_args!("base and quote are both {base}")));
    }
    Ok(FxRate::new(&base, &quote, date, rate))
}

fn fundamentals(cells: &RecordCells<'_>) -> Result<Fundamentals, RowError> {
    let currency = cells.currency("reported_currency")?;
    let major = |amount: Option<Decimal>| match &currency {
        Some(currency) => amount.map(|amount| currency.to_major(amount)),
        None => amount,
    };
    Ok(record! { cells as Fundamentals {
        texts: ;
        values: symbol = required_symbol, as_of = required_date, eps_ttm = amount => major, eps_as_of = date,
            ffo_per_share_ttm = amount => major, shares_outstanding = figure, shares_as_of = date,
            float_shares = figure, market_cap = figure => major, float_market_cap = figure => major,
            avg_daily_value = figure => major, revenue_ttm = figure => major, net_income_ttm = figure => major,
            operating_cash_flow_ttm = figure => major, capital_expenditure_ttm = figure => major,
            free_cash_flow_ttm = figure => major, dividends_paid_ttm = figure => major,
            book_value_per_share = amount => major, total_debt = figure => major, total_equity = figure => major,
            enterprise_value = figure => major, gross_margin = amount, operating_margin = amount,
            net_margin = amount, roe = amount, roa = amount, current_ratio = amount, interest_coverage = amount,
            forward_pe = amount, peg_ratio = amount, ps_ratio = amount, ev_to_ebitda = amount, beta = amount,
            fiscal_period_end = date;
        reported_currency: currency.as_ref().map(|currency| currency.code.clone()),
    } })
}

fn etf(cells: &RecordCells<'_>) -> Result<Etf, RowError> {
    Ok(record! { cells as Etf {
        texts: issuer, asset_class, category, strategy, index_name, domicile;
        values: symbol = required_symbol, as_of = required_date, inception_date = date, expense_ratio = amount,
            aum = figure, nav = amount, nav_date = date, sec_yield_30d = amount, is_leveraged = boolean,
            is_inverse = boolean, leverage_factor = amount, related_symbol = symbol, turnover = amount;
    } })
}

fn accept_holding(
    cells: &RecordCells<'_>,
    provenance: RowProvenance,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let (etf, as_of) = (cells.required_symbol("etf_symbol")?, cells.required_date("as_of")?);
    let position = if provenance.action == Action::Retract { None } else { Some(holding(cells)?) };
    rows.add_holding_or_retraction(etf, as_of, provenance.with_record(position))
}

fn holding(cells: &RecordCells<'_>) -> Result<Holding, RowError> {
    let currency = cells.currency("currency")?;
    let value = cells.figure("market_value")?;
    Ok(record! { cells as Holding {
        texts: asset_type, isin, cusip, figi;
        values: symbol = symbol, shares = figure;
        name: cells.owned_text("name").ok_or_else(|| cells.missing_value("name"))?,
        weight: cells.amount("weight")?.ok_or_else(|| cells.missing_value("weight"))?,
        market_value: value.map(|value| currency.as_ref().map_or(value, |currency| currency.to_major(value))),
        currency: currency.map(|currency| currency.code),
        sector: cells.sector("sector"),
        country: cells.country("country"),
    } })
}

/// Parses former symbols. JSON has a list of symbols, or of `{symbol, from, to}`. CSV has entries such as
/// `FB@2012-05-18..2022-06-08`, separated by `;`.
fn former_symbols(text: Option<&str>) -> Result<Vec<FormerSymbol>, RowError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let bad = |part: &str| {
        let message = format_args!("former_symbols {part:?} is not SYMBOL or SYMBOL@YYYY-MM-DD..YYYY-MM-DD");
        RowError::new("bad_value", message)
    };
    if text.starts_with('[') {
        let list: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|_| bad(text))?;
        return list
            .into_iter()
            .map(|item| former_from_json(&item).ok_or_else(|| bad(&item.to_string())))
            .collect();
    }
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| former_from_text(part).ok_or_else(|| bad(part))).collect()
}

fn former_from_json(item: &serde_json::Value) -> Option<FormerSymbol> {
    if let Some(text) = item.as_str() {
        return Some(FormerSymbol { symbol: Symbol::parse(text).ok()?, from: None, to: None });
    }
    let day = |name: &str| match item.get(name) {
        None | Some(serde_json::Value::Null) => Some(None),
        Some(value) => value.as_str().and_then(|text| parse_date(text.as_bytes())).map(Some),
    };
    Some(FormerSymbol {
        symbol: Symbol::parse(item.get("symbol")?.as_str()?).ok()?,
        from: day("from")?,
        to: day("to")?,
    })
}

fn former_from_text(part: &str) -> Option<FormerSymbol> {
    let Some((symbol, days)) = part.split_once('@') else {
        return Some(FormerSymbol { symbol: Symbol::parse(part).ok()?, from: None, to: None });
    };
    let day = |text: &str| -> Option<Option<NaiveDate>> {
        if text.is_empty() { Some(None) } else { parse_date(text.as_bytes()).map(Some) }
    };
    let (from, to) = days.split_once("..")?;
    Some(FormerSymbol { symbol: Symbol::parse(symbol).ok()?, from: day(from)?, to: day(to)? })
}

fn indexes(text: Option<&str>) -> Result<Vec<String>, RowError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    if text.starts_with('[') {
        return serde_json::from_str(text)
            .map_err(|_| RowError::new("bad_value", "indexes is not a list of names"));
    }
    Ok(text.split(';').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
