//! Split rows of a security. Stock dividends are included.

use rust_decimal::Decimal;

use super::id::{split_id, stock_dividend_id};
use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic::{factor, quotient};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::{MergedSplit, is_known, share_type};
use crate::metrics::prices::adjustment::Ratio;
use crate::row::{SplitRow, SplitStatus};

/// Split rows by ex-date: effective, announced and cancelled splits, and stock dividends.
pub(crate) fn splits(computed: &ComputedMetrics<'_>) -> Vec<SplitRow> {
    let known = |split: &&MergedSplit| {
        is_known(&computed.inputs.history.splits[split.index].record, &computed.inputs.known)
    };
    let splits = computed.inputs.merged.splits.splits.iter().filter(known);
    let mut rows: Vec<SplitRow> = splits.map(|split| split_row(computed, split)).collect();
    for payment in computed.inputs.payments().iter().filter(|p| p.class == DividendClass::Stock) {
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
            ..base(computed, stock_dividend_id(payment), payment.ex_date, ratio, false)
        });
    }
    rows.sort_by(|a, b| (a.ex_date, &a.id).cmp(&(b.ex_date, &b.id)));
    rows
}

fn split_row(computed: &ComputedMetrics<'_>, split: &MergedSplit) -> SplitRow {
    let splits = &computed.inputs.history.splits;
    let observation = &splits[split.index];
    SplitRow {
        r#type: split.r#type,
        ex_date: split.ex_date,
        declaration_date: observation.record.declaration_date,
        payable_date: observation.record.payable_date,
        revision: observation.revision,
        updated_at: observation.observed_at,
        ..base(computed, split_id(&splits[split.named]), split.effective, split.ratio, split.cancelled)
    }
}

/// Split row with the fields common to splits and stock dividends. `effective` is the session at which the price moves.
fn base(
    computed: &ComputedMetrics<'_>,
    id: String,
    effective: chrono::NaiveDate,
    ratio: Ratio,
    cancelled: bool,
) -> SplitRow {
    let status = match (cancelled, effective <= computed.inputs.as_of) {
        (true, _) => SplitStatus::Cancelled,
        (false, true) => SplitStatus::Effective,
        (false, false) => SplitStatus::Announced,
    };
    let later = computed.inputs.merged.split_table.price_ratio_between(effective, computed.inputs.as_of);
    let cumulative = if status == SplitStatus::Effective { ratio.then(later) } else { later };
    let number = |value: Decimal| ExactDecimal::from(value.normalize());
    SplitRow {
        id,
        symbol: computed.inputs.history.symbol.to_string(),
        ex_date: effective,
        declaration_date: None,
        payable_date: None,
        from_shares: number(ratio.from),
        to_shares: number(ratio.to),
        ratio: quotient(ratio.to, ratio.from).map_or_else(ExactDecimal::default, factor),
        text: format!("{}:{}", ratio.to.normalize(), ratio.from.normalize()),
        r#type: share_type(ratio, None),
        price_factor: factor(ratio.factor()),
        cumulative_price_factor: factor(cumulative.factor()),
        status,
        revision: 0,
        updated_at: computed.updated_at,
    }
}
