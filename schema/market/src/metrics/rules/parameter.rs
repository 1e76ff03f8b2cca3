//! Rule parameter: name, unit, default and range, and validation of a value.

use rust_decimal::Decimal;
use serde::Serialize;

/// Rule parameter: a number that this service chose for a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RuleParameter {
    /// Name, for example `streak.tolerance`.
    pub name: &'static str,
    /// Number of the rule, for example R14.
    pub rule: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Default value.
    pub default: Decimal,
    /// Smallest valid value, in `unit`.
    pub least: Decimal,
    /// Largest valid value, in `unit`.
    pub most: Decimal,
    /// True if the value must be a whole number.
    pub whole: bool,
    /// Meaning of the parameter, as a sentence.
    pub meaning: &'static str,
}

/// Parameter whose value differs from its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ParameterDeviation {
    /// Name of the parameter.
    pub name: &'static str,
    /// Current value, in `unit`.
    pub value: Decimal,
    /// Default value, in `unit`.
    pub default: Decimal,
    /// Unit of `value` and `default`.
    pub unit: &'static str,
    /// Number of the rule, for example R14.
    pub rule: &'static str,
}

/// Error in a rule parameter.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0:?} is not NAME=VALUE with a decimal value, such as streak.tolerance=0.05")]
    Form(String),
    #[error("rule parameter {name:?} does not exist; the nearest is {nearest}")]
    Unknown { name: String, nearest: &'static str },
    #[error("{name} cannot be {value}: it is from {least} to {most}, in {unit}")]
    Range { name: &'static str, value: Decimal, least: Decimal, most: Decimal, unit: &'static str },
    #[error("{name} cannot be {value}: it is a whole number, in {unit}")]
    Fraction { name: &'static str, value: Decimal, unit: &'static str },
    #[error("{0} is given twice")]
    Twice(&'static str),
}

impl RuleParameter {
    /// Validates a value: it must be in the range, and whole if `whole` is true.
    pub(crate) fn validate(&self, value: Decimal) -> Result<Decimal, RuleError> {
        let Self { name, unit, least, most, .. } = *self;
        if value < least || most < value {
            return Err(RuleError::Range { name, value, least, most, unit });
        }
        if self.whole && !value.is_integer() {
            return Err(RuleError::Fraction { name, value, unit });
        }
        Ok(value.normalize())
    }

    /// Finds a parameter by name. The error suggests the most similar name.
    pub(crate) fn find(name: &str, among: &'static [Self]) -> Result<&'static Self, RuleError> {
        let distance = |parameter: &&Self| strsim::damerau_levenshtein(name, parameter.name);
        match among.iter().min_by_key(distance) {
            Some(nearest) if nearest.name == name => Ok(nearest),
            nearest => Err(RuleError::Unknown {
                name: name.to_owned(),
                nearest: nearest.map_or("none", |nearest| nearest.name),
            }),
        }
    }
}
