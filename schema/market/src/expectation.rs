//! Expectations of the gate: limits for the effect of a load. A load that does not meet one of them is held.

use std::fmt;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::decimal::ExactDecimal;
use crate::event::Kind;
use crate::text_enum;

text_enum! {
    /// Measured property of a load that has a limit.
    pub enum Expectation {
        /// Securities or rows of the load, in percent of the earlier loads of the same file name.
        Coverage = "coverage",
        /// Rows of the load, in percent of the median of the last twenty loads of the same file name; 100 if one of them
        /// has as few.
        Rows = "rows",
        /// Sessions from the newest session of the last load of the same file name to that of the load.
        Session = "session",
        /// Values from before the newest ten sessions that the load changes, in percent.
        Changed = "changed",
        /// Securities whose values the load multiplies by one factor.
        Factor = "factor",
        /// Securities of which the load changes more than half of the values from before the newest ten sessions.
        Rewritten = "rewritten",
        /// Median change of the closes in the newest session, in percent.
        Move = "move",
        /// Securities with the close and volume of the session before, in percent.
        Repeated = "repeated",
        /// Securities whose dividend status becomes lapsed, suspended or unknown, in percent.
        Status = "status",
        /// Median change of the forward dividends that change, in percent.
        Forward = "forward",
        /// Rows that are rejected or quarantined, in percent.
        Rejected = "rejected",
        /// Rows of other sources that the figures stop using.
        Replaced = "replaced",
        /// Securities that an earlier held load of the same source contains too.
        Behind = "behind",
    }
}

impl Expectation {
    /// Limit without a setting.
    pub fn default_limit(self) -> Decimal {
        Decimal::from(self.definition().0)
    }

    /// Meaning of the measured value.
    pub fn meaning(self) -> &'static str {
        self.definition().1
    }

    /// Limit without a setting, and the meaning of the measured value.
    fn definition(self) -> (u8, &'static str) {
        match self {
            Self::Coverage => (90, "% of the securities or rows of earlier files of this name"),
            Self::Rows => (50, "% of the usual rows of files of this name"),
            Self::Session => (1, "sessions since the last file of this name"),
            Self::Changed => (1, "% of the values from before the newest ten sessions change"),
            Self::Factor => (0, "securities with values multiplied by one factor"),
            Self::Rewritten => (0, "securities with most of their earlier values changed"),
            Self::Move => (10, "% median change of the newest closes"),
            Self::Repeated => (50, "% of the securities repeat the session before"),
            Self::Status => (1, "% of the securities become lapsed, suspended or unknown"),
            Self::Forward => (10, "% median change of the changed forward dividends"),
            Self::Rejected => (5, "% of the rows are rejected or quarantined"),
            Self::Replaced => (20, "rows of other sources are no longer used"),
            Self::Behind => (0, "securities wait for an earlier held load"),
        }
    }

    /// True if the value may be as large as the limit; false if it must not be smaller.
    pub fn is_maximum(self) -> bool {
        !matches!(self, Self::Coverage | Self::Rows)
    }

    fn is_met(self, value: Decimal, limit: Option<Decimal>) -> bool {
        match (limit, self) {
            (None, _) => true,
            // A file without a new session repeats an earlier one.
            (Some(limit), Self::Session) => value >= Decimal::ONE && value <= limit,
            (Some(limit), _) if self.is_maximum() => value <= limit,
            (Some(limit), _) => value >= limit,
        }
    }
}

/// Maximum number of examples of a check.
const MAX_EXAMPLES: usize = 3;
/// Fraction digits of a measured value.
const VALUE_DIGITS: u32 = 8;
/// Fraction digits of a measured value in a text.
const TEXT_DIGITS: u32 = 2;

/// Measured value of a load, compared with its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationCheck {
    /// Measured property.
    pub expectation: Expectation,
    /// Kind of the rows.
    pub kind: Kind,
    /// Measured value, with at most eight fraction digits.
    pub value: ExactDecimal,
    /// Limit; null if the expectation is off.
    pub limit: Option<ExactDecimal>,
    /// True if the value is within the limit.
    pub met: bool,
    /// Number of loads of the same source that the gate measured in the 90 days before. The first comparison of each
    /// load counts.
    pub earlier_loads: usize,
    /// Number of these loads whose value is not within the limit.
    pub earlier_failures: usize,
    /// Worst examples, at most three.
    pub first: Vec<String>,
}

impl ExpectationCheck {
    /// Compares a value with a limit. `earlier` has the values of earlier loads; `examples` begin with the worst one.
    pub fn new(
        expectation: Expectation,
        kind: Kind,
        value: Decimal,
        limit: Option<Decimal>,
        earlier: &[Decimal],
        mut examples: Vec<String>,
    ) -> Self {
        examples.truncate(MAX_EXAMPLES);
        let value = value.round_dp(VALUE_DIGITS).normalize();
        let is_met = |value: &Decimal| expectation.is_met(*value, limit);
        Self {
            expectation,
            kind,
            value: ExactDecimal(value),
            limit: limit.map(ExactDecimal),
            met: is_met(&value),
            earlier_loads: earlier.len(),
            earlier_failures: earlier.iter().filter(|value| !is_met(value)).count(),
            first: examples,
        }
    }
}

impl fmt::Display for ExpectationCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expectation, kind, limit, .. } = self;
        let rounded = self.value.0.round_dp(TEXT_DIGITS).normalize();
        // A rounded value on the other side of the limit would contradict the verdict.
        let is_clear = expectation.is_met(rounded, limit.map(|limit| limit.0)) == self.met;
        let value = if is_clear { rounded } else { self.value.0 };
        write!(f, "{expectation} of {kind}: {value} {}", expectation.meaning())?;
        match (limit, expectation) {
            (None, _) => return f.write_str(" (off)"),
            (Some(limit), Expectation::Session) => write!(f, " (limit: 1 to {limit}")?,
            (Some(limit), _) if expectation.is_maximum() => write!(f, " (limit: at most {limit}")?,
            (Some(limit), _) => write!(f, " (limit: at least {limit}")?,
        }
        match self.earlier_loads {
            0 => f.write_str(")"),
            loads => write!(f, "; not met by {} of {loads} loads in 90 days)", self.earlier_failures),
        }
    }
}

/// Result of the gate for one load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// Id of the run.
    pub run: String,
    /// True if all expectations are met.
    pub met: bool,
    /// All checks, those that are not met first.
    pub checks: Vec<ExpectationCheck>,
}

impl GateVerdict {
    /// Verdict about the run from its checks.
    pub fn new(run: String, mut checks: Vec<ExpectationCheck>) -> Self {
        checks.sort_by_key(|check| check.met);
        Self { run, met: checks.iter().all(|check| check.met), checks }
    }

    /// Checks that are not met.
    pub fn failed(&self) -> impl Iterator<Item = &ExpectationCheck> {
        self.checks.iter().filter(|check| !check.met)
    }

    /// Lines of the verdict for people: each check with its examples, if it is not met.
    pub fn lines(&self) -> Vec<String> {
        let head = match self.failed().count() {
            0 => format!("gate: all {} expectations are met", self.checks.len()),
            failed => format!("gate: {failed} of {} expectations are not met", self.checks.len()),
        };
        let mut lines = vec![head];
        for check in &self.checks {
            let mark = if check.met { "ok" } else { "NOT MET" };
            lines.push(format!("  {mark:<8}{check}"));
            let examples = check.first.iter().filter(|_| !check.met);
            lines.extend(examples.map(|example| format!("          {example}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive_and_can_be_off() {
        use Expectation::*;
        let is_met = |expectation, value: i64, limit: Option<i64>| {
            let [value, limit] = [Some(value), limit].map(|number| number.map(Decimal::from));
            ExpectationCheck::new(expectation, Kind::Price, value.unwrap(), limit, &[], Vec::new()).met
        };
        assert!(is_met(Coverage, 90, Some(90)) && !is_met(Coverage, 89, Some(90)));
        assert!(is_met(Changed, 1, Some(1)) && !is_met(Changed, 2, Some(1)) && is_met(Changed, 2, None));
        assert!(is_met(Session, 1, Some(1)) && !is_met(Session, 0, Some(1)) && !is_met(Session, 2, Some(1)));
    }

    #[test]
    fn a_value_is_compared_before_it_is_rounded_for_the_text() {
        let check = |value: &str| {
            let (value, limit) = (value.parse().unwrap(), Some(Decimal::ONE));
            ExpectationCheck::new(Expectation::Changed, Kind::Price, value, limit, &[], Vec::new())
        };
        let shown = |value| {
            let check = check(value);
            (check.met, check.to_string().split(' ').nth(3).unwrap().to_owned())
        };
        for (value, met, text) in [
            ("0.994", true, "0.99"),
            ("0.999", true, "1"),
            ("1.004", false, "1.004"),
            ("1.2345", false, "1.23"),
        ] {
            assert_eq!(shown(value), (met, text.to_owned()));
        }
        assert_eq!(check("33.333333333333").value.to_string(), "33.33333333");
    }

    #[test]
    fn a_verdict_begins_with_what_is_not_met() {
        let check = |expectation, value: i64| {
            let (limit, earlier) =
                (Some(Expectation::default_limit(expectation)), [9, 11].map(Decimal::from));
            let examples = ["KO", "PEP", "MO", "SPY"].map(str::to_owned).to_vec();
            ExpectationCheck::new(expectation, Kind::Price, value.into(), limit, &earlier, examples)
        };
        let verdict = GateVerdict::new(
            "r".to_owned(),
            vec![check(Expectation::Move, 2), check(Expectation::Coverage, 10)],
        );
        assert!(!verdict.met);
        assert_eq!(
            verdict.lines(),
            [
                "gate: 1 of 2 expectations are not met",
                "  NOT MET coverage of price: 10 % of the securities or rows of earlier files of this name (limit: at least 90; not met by 2 of 2 loads in 90 days)",
                "          KO",
                "          PEP",
                "          MO",
                "  ok      move of price: 2 % median change of the newest closes (limit: at most 10; not met by 1 of 2 loads in 90 days)",
            ]
        );
    }
}
