//! Charts as SVG, rendered on the server: prices as a line, amounts as bars.

mod axis;
pub(crate) mod bar_chart;
pub(crate) mod price_chart;
mod thinning;
