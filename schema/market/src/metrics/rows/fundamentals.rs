//! Fundamentals row of a security.

use rust_decimal::Decimal;

use super::derived::DerivedRows;
use super::rounded::{amount, percent};
use crate::event::Fundamentals;
use crate::metrics::arithmetic::{percent_of, quotient, round_to_integer};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::computed::company::in_reports;
use crate::metrics::valuation::price_to;
use crate::row::FundamentalsRow;

/// Row of company figures. `None` for a provisional security (without a reference record) that has no reported figures.
pub(crate) fn fundamentals(computed: &ComputedMetrics<'_>) -> Option<FundamentalsRow> {
    let reported = computed.inputs.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let security = computed.inputs.security();
    if reported.is_none() && security.is_none() {
        return None;
    }
    let figure = |field: fn(&Fundamentals) -> Option<Decimal>| reported.and_then(field);
    let company = &computed.figures;
    let price = computed.inputs.close();
    let positive = |value: Option<Decimal>| value.filter(|value| *value > Decimal::ZERO);
    let ratio = |a: Option<Decimal>, b: Option<Decimal>| a.zip(b).and_then(|(a, b)| quotient(a, b));
    let share_of =
        |a: Option<Decimal>, b: Option<Decimal>| a.zip(positive(b)).and_then(|(a, b)| percent_of(a, b));
    let (revenue, income) = (figure(|f| f.revenue_ttm), figure(|f| f.net_income_ttm));
    let equity = figure(|f| f.total_equity);
    let in_reports = |value: Option<Decimal>| in_reports(value, company.report_rate);
    Some(FundamentalsRow {
        symbol: computed.inputs.history.symbol.to_string(),
        name: computed.inputs.name(),
        sector: security.and_then(|security| security.sector.clone()),
        industry: security.and_then(|security| security.industry.clone()),
        country: security.and_then(|security| security.country.clone()),
        website: security.and_then(|security| security.website.clone()),
        employees: security.and_then(|security| security.employees),
        ipo_date: security.and_then(|security| security.ipo_date),
        market_cap: company.market_cap.and_then(round_to_integer),
        enterprise_value: figure(|f| f.enterprise_value).and_then(round_to_integer),
        shares_outstanding: company.shares_outstanding.and_then(round_to_integer),
        float_shares: company.float_shares.and_then(round_to_integer),
        pe_ratio: percent(company.pe_ratio),
        forward_pe: percent(figure(|f| f.forward_pe)),
        peg_ratio: percent(figure(|f| f.peg_ratio)),
        pb_ratio: percent(price_to(in_reports(price), company.book_value_per_share)),
        ps_ratio: percent(
            figure(|f| f.ps_ratio).or_else(|| ratio(in_reports(company.market_cap), positive(revenue))),
        ),
        ev_to_ebitda: percent(figure(|f| f.ev_to_ebitda)),
        eps_ttm: amount(company.eps_ttm),
        book_value_per_share: amount(company.book_value_per_share),
        fcf_per_share: amount(ratio(company.free_cash_flow, positive(company.shares_outstanding))),
        revenue_ttm: amount(revenue),
        net_income_ttm: amount(income),
        free_cash_flow_ttm: amount(company.free_cash_flow),
        gross_margin: percent(figure(|f| f.gross_margin)),
        operating_margin: percent(figure(|f| f.operating_margin)),
        net_margin: percent(figure(|f| f.net_margin).or_else(|| share_of(income, revenue))),
        roe: percent(figure(|f| f.roe).or_else(|| share_of(income, equity))),
        roa: percent(figure(|f| f.roa)),
        payout_ratio: percent(computed.payouts.ratio.ok()),
        fcf_payout_ratio: percent(computed.payouts.fcf),
        debt_to_equity: percent(ratio(figure(|f| f.total_debt), positive(equity))),
        current_ratio: percent(figure(|f| f.current_ratio)),
        interest_coverage: percent(figure(|f| f.interest_coverage)),
        beta: percent(figure(|f| f.beta).or(computed.returns.beta)),
        fiscal_period_end: reported.and_then(|figures| figures.fiscal_period_end),
        reported_currency: reported.and_then(|figures| figures.reported_currency.clone()),
        as_of: reported.map(|figures| figures.as_of),
        updated_at: computed.updated_at,
    })
}

impl DerivedRows {
    /// Company figures as responses show them. Some figures that are missing in the row, such as the sector, are taken
    /// from the stock row. Without a row of company figures, all figures come from the stock row.
    pub fn served_fundamentals(&self) -> FundamentalsRow {
        let (listed, figures) = (&self.stock.listed, &self.stock.figures.screened);
        let row = self.fundamentals.clone().unwrap_or_else(|| FundamentalsRow {
            symbol: listed.symbol.clone(),
            name: listed.name.clone(),
            updated_at: listed.updated_at,
            ..FundamentalsRow::default()
        });
        FundamentalsRow {
            sector: row.sector.or_else(|| listed.sector.clone()),
            industry: row.industry.or_else(|| listed.industry.clone()),
            country: row.country.or_else(|| listed.country.clone()),
            market_cap: row.market_cap.or(listed.market_cap),
            pe_ratio: row.pe_ratio.or(figures.pe_ratio),
            payout_ratio: row.payout_ratio.or(figures.payout_ratio),
            beta: row.beta.or(figures.beta),
            ..row
        }
    }
}
