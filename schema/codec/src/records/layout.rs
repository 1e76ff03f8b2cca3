//! Layouts: the stored fields of every kind of record, in order.
//!
//! Stored rows must stay readable forever, so the order never changes. A new field is optional and is added at the end.

use super::encoded::{EncodedField, FieldReader, FieldWriter, RecordLayout, split_fields};
use super::field::Field;
use crate::error::PackedRecordsError;
use market::event::{
    DecidedRow, Decision, Dividend, DividendEvidence, Etf, FormerSymbol, Fundamentals, FxRate, Holding,
    HoldingSnapshot, MarketSession, Security, Split,
};

macro_rules! layouts {
    ($($record:ident { $($field:ident),* $(,)? })*) => {
        $(impl RecordLayout for $record {
            fn write(&self, out: &mut FieldWriter) -> Result<(), PackedRecordsError> {
                $(out.put(&self.$field)?;)*
                Ok(())
            }

            fn read<'a>(
                fields: &mut FieldReader<impl Iterator<Item = EncodedField<'a>>>,
            ) -> Result<Self, PackedRecordsError> {
                Ok(Self { $($field: fields.take_field()?),* })
            }
        })*
    };
}

layouts! {
    Security {
        symbol, name, r#type, currency, status, former_symbols, indexes, quote_unit, exchange, sector, industry, country,
        description, website, ceo, employees, ipo_date, cik, figi, isin, cusip, delisted_on, dividend_suspended_on,
        streak_seed_years, streak_seed_through, successor, merger_ratio,
    }
    Dividend {
        symbol, amount, currency, r#type, amount_basis, sibling_amounts, ex_date, record_date, payment_date, declaration_date, frequency,
        basis_as_of,
    }
    Split { symbol, ex_date, from, to, declaration_date, payable_date, r#type }
    Fundamentals {
        symbol, as_of, eps_ttm, eps_as_of, ffo_per_share_ttm, shares_outstanding, shares_as_of, float_shares, market_cap,
        float_market_cap, avg_daily_value, revenue_ttm, net_income_ttm, operating_cash_flow_ttm, capital_expenditure_ttm,
        free_cash_flow_ttm, dividends_paid_ttm, book_value_per_share, total_debt, total_equity, enterprise_value, gross_margin,
        operating_margin, net_margin, roe, roa, current_ratio, interest_coverage, forward_pe, peg_ratio, ps_ratio, ev_to_ebitda,
        beta, fiscal_period_end, reported_currency,
    }
    Etf {
        symbol, as_of, issuer, asset_class, category, strategy, index_name, domicile, inception_date, expense_ratio, aum, nav,
        nav_date, sec_yield_30d, is_leveraged, is_inverse, leverage_factor, related_symbol, turnover,
    }
    HoldingSnapshot { symbol, as_of, holdings }
    Holding {
        name, weight, symbol, asset_type, shares, market_value, currency, isin, cusip, figi, sector, country,
    }
    FxRate { symbol, base, quote, date, rate }
    FormerSymbol { symbol, from, to }
    MarketSession { date, note }
    Decision { symbol, verdict, row, reason, note }
    DividendEvidence {
        symbol, dividends_from, dividends_to, ex_date, previous, factor, basis, price_unit, conflict_date, conflict_close,
    }
    DecidedRow { kind, source, row_id, date, value }
}

/// Implements the encoding for a record that is a field of another record.
macro_rules! nested {
    ($($record:ident),*) => {
        $(impl Field for $record {
            fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
                let mut fields = FieldWriter::default();
                RecordLayout::write(self, &mut fields)?;
                bytes.extend_from_slice(fields.bytes());
                Ok(())
            }

            fn read(bytes: &[u8]) -> Result<Self, PackedRecordsError> {
                FieldReader::read_record(split_fields(bytes))
            }
        })*
    };
}

nested! { FormerSymbol, Holding, DecidedRow }
