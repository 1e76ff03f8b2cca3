//! What the price did: change, total return, volatility, beta.

use rust_decimal::Decimal;

use super::basis::Basis;
use crate::measure::adjust::Factor;
use crate::measure::arithmetic::change_percent;
use crate::measure::market::Market;
use crate::measure::risk::{beta, month_ends, volatility};
use crate::measure::total_return::{Closes, start_bar, total_return};

/// Returns in percent, beta plain.
#[derive(Debug)]
pub(crate) struct Returns {
    pub price_change_1y: Option<Decimal>,
    pub total_return_1y: Option<Decimal>,
    pub total_return_5y: Option<Decimal>,
    pub volatility: Option<Decimal>,
    pub beta: Option<Decimal>,
}

/// Measures returns.
pub(crate) fn returns(basis: &Basis<'_>, market: &Market<'_>) -> Returns {
    let (series, as_of) = (basis.series(), basis.as_of);
    let factors: Vec<Factor> = basis.ex_days.iter().map(Factor::from).collect();
    let closes = Closes { days: &series.bars.day, close: &|index| series.close(index), factors: &factors };
    let since = |start: Option<usize>| total_return(&closes, start?, basis.price?.index);
    let year_ago = start_bar(&series, as_of, 12);
    let old_close = year_ago.map(|index| series.close_on_basis(index, as_of));
    Returns {
        price_change_1y: basis.close().zip(old_close).and_then(|(new, old)| change_percent(new, old)),
        total_return_1y: since(year_ago),
        total_return_5y: since(start_bar(&series, as_of, 60)),
        volatility: volatility(&series, &basis.ex_days),
        beta: market.benchmark.and_then(|benchmark| {
            beta(&month_ends(&series, &basis.ex_days, as_of), benchmark, &basis.rules.risk)
        }),
    }
}
