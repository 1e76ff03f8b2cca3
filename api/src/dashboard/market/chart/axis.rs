//! Vertical axis of a chart: round bounds, and labels. All values are exact decimals.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

/// The step is chosen so that the range of the values has at most this number of steps. The axis may have one more,
/// because its bounds are rounded outward.
const INTERVALS: i64 = 5;

/// Axis from `low` to `high` in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    low: Decimal,
    high: Decimal,
    step: Decimal,
}

impl Axis {
    /// Creates an axis that contains both values, with steps of 1, 2 or 5 times a power of ten.
    pub(crate) fn around(least: Decimal, most: Decimal) -> Self {
        let range = if most > least { most - least } else { most.abs().max(Decimal::ONE) };
        let mut power = Decimal::new(1, 10);
        let step = loop {
            let steps = [1, 2, 5].map(|factor| power * Decimal::from(factor));
            if let Some(step) = steps.into_iter().find(|step| *step * Decimal::from(INTERVALS) >= range) {
                break step.normalize();
            }
            power *= Decimal::TEN;
        };
        let low = (least / step).floor() * step;
        let high = ((most / step).ceil() * step).max(low + step);
        Self { low, high, step }
    }

    /// Position of a value on an axis of `length` drawing units. Position 0 is at the bottom, `length` at the top.
    pub(crate) fn place(&self, value: Decimal, length: i64) -> i64 {
        let share = (value - self.low) * Decimal::from(length) / (self.high - self.low);
        share.round().to_i64().unwrap_or(0).clamp(0, length)
    }

    /// Labelled values, from the top down.
    pub(crate) fn labels(&self) -> Vec<Decimal> {
        let mut labels = Vec::new();
        let mut value = self.high;
        while value >= self.low {
            let mut label = value;
            label.rescale(self.step.scale());
            labels.push(label);
            value -= self.step;
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(least: &str, most: &str, labels: &[&str]) {
        let number = |text: &str| text.parse::<Decimal>().expect("a number");
        let axis = Axis::around(number(least), number(most));
        let found: Vec<String> = axis.labels().iter().map(ToString::to_string).collect();
        assert_eq!(found, labels, "{least} to {most}");
    }

    #[test]
    fn bounds_are_round_and_contain_the_values() {
        check("51.2", "63.9", &["65", "60", "55", "50"]);
        check("0", "1.94", &["2.0", "1.5", "1.0", "0.5", "0.0"]);
        check("0", "0", &["0.2", "0.0"]);
        check("120000", "980000", &["1000000", "800000", "600000", "400000", "200000", "0"]);
        check("7", "7", &["8", "6"]);
    }

    #[test]
    fn places_are_shares_of_the_length() {
        let axis = Axis::around(Decimal::ZERO, Decimal::TEN);
        let places = [0, 5, 10].map(|value| axis.place(Decimal::from(value), 600));
        assert_eq!(places, [0, 300, 600]);
    }
}
