//! Conversion of canonical cells to records of the log, per kind.

use chrono::NaiveDate;
use market::event::{
    Action, Dividend, DividendType, Etf, FormerSymbol, Frequency, Fundamentals, Holding, Kind, ListingStatus,
    MarketSession, Security, SecurityType, ShareBasis, Split,
};
use market::metrics::currency::Currency;
use market::metrics::merge::{dividend_fault, dividend_key_fault, split_fault};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::price_reader;
use crate::batch::row_accumulator::{RowAccumulator, RowProvenance};
use crate::normalize::{
    RecordCells, RowError, abbreviate, parse_date, parse_session_date, parse_web_address,
};
use crate::price::bar_parser::PriceCells;

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
            rows.add_security(provenance.into_row(security(cells, retracted)?), bytes);
            note_website(cells, line, rows);
        }
        Kind::Dividend => {
            let record = dividend(cells, retracted, provenance.id.is_some())?;
            let type_text = cells.text("type_text").or_else(|| cells.text("type")).unwrap_or_default();
            rows.add_typed_dividend(provenance.into_row(record), &type_text.to_ascii_lowercase(), bytes);
        }
        Kind::Split => rows.add_split(provenance.into_row(split(cells, retracted)?), bytes),
        Kind::Fundamentals => rows.add_fundamentals(provenance.into_row(fundamentals(cells)?), bytes),
        Kind::Etf => rows.add_etf(provenance.into_row(etf(cells)?), bytes),
        Kind::Holding => accept_holding(cells, provenance, rows)?,
        Kind::Session => {
            let date = parse_session_date("date", cells.required_text("date")?.as_bytes(), rows.zone())?;
            rows.add_session(
                provenance.into_row(MarketSession { date, note: cells.owned_text("note") }),
                bytes,
            )?;
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
        observed_at: cells.time("observed_at")?.unwrap_or_else(|| rows.observed_at()),
        security_ref: cells.owned_text("security_ref"),
    })
}

fn accept_price(cells: &RecordCells<'_>, line: u64, rows: &mut RowAccumulator) -> Result<(), RowError> {
    let bytes = |name: &str| cells.text(name).unwrap_or_default().as_bytes();
    let version = price_reader::parse_version(cells, rows)?;
    let date = parse_session_date("date", bytes("date"), rows.zone())?;
    let prices = PriceCells {
        open: bytes("open"),
        high: bytes("high"),
        low: bytes("low"),
        close: bytes("close"),
        volume: bytes("volume"),
        vwap: bytes("vwap"),
        trade_count: bytes("trade_count"),
    };
    rows.add_price(bytes("symbol"), date, &prices, version, line)
}

fn security(cells: &RecordCells<'_>, retracted: bool) -> Result<Security, RowError> {
    let symbol = cells.required_symbol("symbol")?;
    let r#type = match cells.word("type")? {
        Some(r#type) => r#type,
        None if retracted => SecurityType::Stock,
        None => return Err(RowError::missing_value("type")),
    };
    let name = match cells.owned_text("name") {
        Some(name) => name,
        None if retracted => symbol.to_string(),
        None => return Err(RowError::missing_value("name")),
    };
    let Currency { code: currency, minor } = cells.currency("currency")?.unwrap_or_else(Currency::dollar);
    Ok(Security {
        symbol,
        name,
        r#type,
        currency,
        quote_unit: minor.map(str::to_owned),
        status: cells.word("status")?.unwrap_or(ListingStatus::Active),
        former_symbols: former_symbols(cells.text("former_symbols"))?,
        indexes: indexes(cells.text("indexes"))?,
        exchange: cells.exchange("exchange"),
        sector: cells.sector("sector"),
        industry: cells.owned_text("industry"),
        country: cells.country("country"),
        description: cells.owned_text("description"),
        website: cells.text("website").and_then(parse_web_address).map(str::to_owned),
        ceo: cells.owned_text("ceo"),
        employees: cells.integer("employees")?,
        ipo_date: cells.date("ipo_date")?,
        cik: cells.owned_text("cik"),
        figi: cells.owned_text("figi"),
        isin: cells.owned_text("isin"),
        cusip: cells.owned_text("cusip"),
        delisted_on: cells.date("delisted_on")?,
        dividend_suspended_on: cells.date("dividend_suspended_on")?,
        streak_seed_years: cells.integer("streak_seed_years")?,
        streak_seed_through: cells.integer("streak_seed_through")?,
        successor: cells.symbol("successor")?,
        merger_ratio: cells.figure("merger_ratio")?,
    })
}

/// Adds a reject for an invalid website address. The row is accepted without the address.
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
        None => return Err(RowError::missing_value("amount")),
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

/// Frequency from a word, or from a number of payments a year.
fn frequency(cells: &RecordCells<'_>) -> Result<Option<Frequency>, RowError> {
    let Some(text) = cells.text("frequency").filter(|text| text.bytes().all(|b| b.is_ascii_digit())) else {
        return cells.word("frequency");
    };
    let class = text.parse().ok().and_then(Frequency::from_payments_per_year);
    let message = format_args!(
        "frequency {text} is no usual number of payments a year: 0, 1, 2, 3, 4, 6, 12, 13, 24, 26 or 52"
    );
    class.map(Some).ok_or_else(|| RowError::new("bad_value", message))
}

fn split(cells: &RecordCells<'_>, retracted: bool) -> Result<Split, RowError> {
    let symbol = cells.required_symbol("symbol")?;
    let ex_date = cells.required_date("ex_date")?;
    let side = |name: &str| match cells.figure(name)? {
        Some(shares) => Ok(shares),
        None if retracted => Ok(Decimal::ONE),
        None => Err(RowError::missing_value(name)),
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

fn fundamentals(cells: &RecordCells<'_>) -> Result<Fundamentals, RowError> {
    let currency = cells.currency("reported_currency")?;
    let major = |amount: Option<Decimal>| match &currency {
        Some(currency) => amount.map(|amount| currency.to_major(amount)),
        None => amount,
    };
    let share = |name: &str| cells.amount(name).map(major);
    let money = |name: &str| cells.figure(name).map(major);
    Ok(Fundamentals {
        symbol: cells.required_symbol("symbol")?,
        as_of: cells.required_date("as_of")?,
        eps_ttm: share("eps_ttm")?,
        eps_as_of: cells.date("eps_as_of")?,
        ffo_per_share_ttm: share("ffo_per_share_ttm")?,
        shares_outstanding: cells.figure("shares_outstanding")?,
        shares_as_of: cells.date("shares_as_of")?,
        float_shares: cells.figure("float_shares")?,
        market_cap: money("market_cap")?,
        float_market_cap: money("float_market_cap")?,
        avg_daily_value: money("avg_daily_value")?,
        revenue_ttm: money("revenue_ttm")?,
        net_income_ttm: money("net_income_ttm")?,
        operating_cash_flow_ttm: money("operating_cash_flow_ttm")?,
        capital_expenditure_ttm: money("capital_expenditure_ttm")?,
        free_cash_flow_ttm: money("free_cash_flow_ttm")?,
        dividends_paid_ttm: money("dividends_paid_ttm")?,
        book_value_per_share: share("book_value_per_share")?,
        total_debt: money("total_debt")?,
        total_equity: money("total_equity")?,
        enterprise_value: money("enterprise_value")?,
        gross_margin: cells.amount("gross_margin")?,
        operating_margin: cells.amount("operating_margin")?,
        net_margin: cells.amount("net_margin")?,
        roe: cells.amount("roe")?,
        roa: cells.amount("roa")?,
        current_ratio: cells.amount("current_ratio")?,
        interest_coverage: cells.amount("interest_coverage")?,
        forward_pe: cells.amount("forward_pe")?,
        peg_ratio: cells.amount("peg_ratio")?,
        ps_ratio: cells.amount("ps_ratio")?,
        ev_to_ebitda: cells.amount("ev_to_ebitda")?,
        beta: cells.amount("beta")?,
        fiscal_period_end: cells.date("fiscal_period_end")?,
        reported_currency: currency.map(|currency| currency.code),
    })
}

fn etf(cells: &RecordCells<'_>) -> Result<Etf, RowError> {
    Ok(Etf {
        symbol: cells.required_symbol("symbol")?,
        as_of: cells.required_date("as_of")?,
        issuer: cells.owned_text("issuer"),
        asset_class: cells.owned_text("asset_class"),
        category: cells.owned_text("category"),
        strategy: cells.owned_text("strategy"),
        index_name: cells.owned_text("index_name"),
        domicile: cells.owned_text("domicile"),
        inception_date: cells.date("inception_date")?,
        expense_ratio: cells.amount("expense_ratio")?,
        aum: cells.figure("aum")?,
        nav: cells.amount("nav")?,
        nav_date: cells.date("nav_date")?,
        sec_yield_30d: cells.amount("sec_yield_30d")?,
        is_leveraged: cells.boolean("is_leveraged")?,
        is_inverse: cells.boolean("is_inverse")?,
        leverage_factor: cells.amount("leverage_factor")?,
        related_symbol: cells.symbol("related_symbol")?,
        turnover: cells.amount("turnover")?,
    })
}

fn accept_holding(
    cells: &RecordCells<'_>,
    provenance: RowProvenance,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let (etf, as_of) = (cells.required_symbol("etf_symbol")?, cells.required_date("as_of")?);
    let position = if provenance.action == Action::Retract { None } else { Some(holding(cells)?) };
    rows.add_holding_or_retraction(etf, as_of, provenance.into_row(position))
}

fn holding(cells: &RecordCells<'_>) -> Result<Holding, RowError> {
    let currency = cells.currency("currency")?;
    let value = cells.figure("market_value")?;
    Ok(Holding {
        name: cells.owned_text("name").ok_or_else(|| RowError::missing_value("name"))?,
        weight: cells.amount("weight")?.ok_or_else(|| RowError::missing_value("weight"))?,
        symbol: cells.symbol("symbol")?,
        asset_type: cells.owned_text("asset_type"),
        shares: cells.figure("shares")?,
        market_value: value.map(|value| currency.as_ref().map_or(value, |currency| currency.to_major(value))),
        currency: currency.map(|currency| currency.code),
        isin: cells.owned_text("isin"),
        cusip: cells.owned_text("cusip"),
        figi: cells.owned_text("figi"),
        sector: cells.sector("sector"),
        country: cells.country("country"),
    })
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
