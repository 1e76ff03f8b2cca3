//! Split records.

use rust_decimal::Decimal;

use super::id::{split_id, stock_dividend_id};
use crate::measure::adjust::Ratio;
use crate::measure::arithmetic::{factor, quotient};
use crate::measure::measured::Measured;
use crate::measure::merge::{CleanSplit, is_known};
use crate::row::{SplitRow, SplitStatus, SplitType};
use crate::value::Exact;

/// Effective, announced and cancelled splits by ex-date; stock dividends are among them.
pub(super) fn splits(measured: &Measured<'_>) -> Vec<SplitRow> {
    let known = |split: &&CleanSplit| {
        is_known(&measured.basis.history.splits[split.index].record, &measured.basis.known)
    };
    let mut rows: Vec<SplitRow> = measured
        .basis
        .merged
        .splits
        .splits
        .iter()
        .filter(known)
        .map(|split| split_row(measured, split))
        .collect();
    for payment in measured.basis.payments().iter().filter(|p| p.class == crate::measure::class::Class::Stock)
    {
        if rows.iter().any(|row| row.ex_date == payment.ex_date && row.status != SplitStatus::Cancelled) {
            continue;
        }
        let observation = payment.observation;
        let ratio = Ratio { from: Decimal::ONE, to: Decimal::ONE + payment.amount };
        rows.push(SplitRow {
            declaration_date: observation.record.declaration_date,
            payable_date: observation.record.payment_date,
            revision: observation.revision,
            updated_at: observation.observed_at,
            ..base(measured, stock_dividend_id(payment), payment.ex_date, ratio, false)
        });
    }
    rows.sort_by(|a, b| (a.ex_date, &a.id).cmp(&(b.ex_date, &b.id)));
    rows
}

fn split_row(measured: &Measured<'_>, split: &CleanSplit) -> SplitRow {
    let splits = &measured.basis.history.splits;
    let observation = &splits[split.index];
    let declared = observation.record.r#type.as_deref().and_then(|word| word.parse::<SplitType>().ok());
    let by_ratio = split_type(split.ratio);
    let shares_paid = declared == Some(SplitType::StockDividend) && by_ratio != SplitType::Reverse;
    SplitRow {
        r#type: if shares_paid { SplitType::StockDividend } else { by_ratio },
        declaration_date: observation.record.declaration_date,
        payable_date: observation.record.payable_date,
        revision: observation.revision,
        updated_at: observation.observed_at,
        ..base(measured, split_id(&splits[split.named]), split.ex_date, split.ratio, split.cancelled)
    }
}

fn base(
    measured: &Measured<'_>,
    id: String,
    ex_date: chrono::NaiveDate,
    ratio: Ratio,
    cancelled: bool,
) -> SplitRow {
    let status = match (cancelled, ex_date <= measured.basis.as_of) {
        (true, _) => SplitStatus::Cancelled,
        (false, true) => SplitStatus::Effective,
        (false, false) => SplitStatus::Announced,
    };
    let later = measured.basis.merged.split_table.between(ex_date, measured.basis.as_of);
    let cumulative = if status == SplitStatus::Effective { ratio.then(later) } else { later };
    let number = |value: Decimal| Exact::from(value.normalize());
    SplitRow {
        id,
        symbol: measured.basis.history.symbol.to_string(),
        ex_date,
        declaration_date: None,
        payable_date: None,
        from_shares: number(ratio.from),
        to_shares: number(ratio.to),
        ratio: quotient(ratio.to, ratio.from).map_or_else(Exact::default, factor),
        text: format!("{}:{}", ratio.to.normalize(), ratio.from.normalize()),
        r#type: split_type(ratio),
        price_factor: factor(ratio.factor()),
        cumulative_price_factor: factor(cumulative.factor()),
        status,
        revision: 0,
        updated_at: measured.updated_at,
    }
}

/// Forward and reverse by direction; under 1.25 new shares for an old one is a stock dividend.
fn split_type(ratio: Ratio) -> SplitType {
    let quarter_more = ratio.from.saturating_mul(Decimal::new(125, 2));
    if ratio.to < ratio.from {
        SplitType::Reverse
    } else if ratio.to < quarter_more {
        SplitType::StockDividend
    } else {
        SplitType::Forward
    }
}
