//! Return metrics: price change, total return, volatility, beta.

use rust_decimal::Decimal;

use super::income::IncomeMetrics;
use super::inputs::MetricInputs;
use crate::metrics::arithmetic::change_percent;
use crate::metrics::context::DerivationContext;
use crate::metrics::prices::adjustment::AdjustmentFactor;
use crate::metrics::prices::risk::{beta, month_ends, volatility};
use crate::metrics::prices::total_return::{CloseSeries, start_bar, total_return};
use crate::row::DividendState;

/// Price change, total returns and volatility in percent; beta as a ratio.
#[derive(Debug)]
pub(crate) struct ReturnMetrics {
    pub price_change_1y: Option<Decimal>,
    pub total_return_1y: Option<Decimal>,
    pub total_return_5y: Option<Decimal>,
    pub volatility: Option<Decimal>,
    pub beta: Option<Decimal>,
}

pub(crate) fn returns(
    inputs: &MetricInputs<'_>,
    income: &IncomeMetrics,
    context: &DerivationContext<'_>,
) -> ReturnMetrics {
    let (series, as_of) = (inputs.series(), inputs.as_of);
    let factors: Vec<AdjustmentFactor> = inputs.ex_days.iter().map(AdjustmentFactor::from).collect();
    let closes =
        CloseSeries { days: &series.bars.day, close: &|index| series.close(index), factors: &factors };
    // With unknown dividends, the total return is unknown too.
    let is_known = income.status != DividendState::Unknown;
    let since = |start: Option<usize>| {
        if is_known { total_return(&closes, start?, inputs.price?.index) } else { None }
    };
    let year_ago = start_bar(&series, as_of, 12);
    let old_close = year_ago.map(|index| series.close_on_basis(index, as_of));
    ReturnMetrics {
        price_change_1y: inputs.close().zip(old_close).and_then(|(new, old)| change_percent(new, old)),
        total_return_1y: since(year_ago),
        total_return_5y: since(start_bar(&series, as_of, 60)),
        volatility: volatility(&series, &factors),
        beta: context.benchmark.and_then(|benchmark| beta(&month_ends(&series, &factors, as_of), benchmark)),
    }
}
