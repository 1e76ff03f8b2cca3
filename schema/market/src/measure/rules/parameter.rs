//! A number in the rules that is this service's own choice: its name, its unit, and what may stand in its place.

use rust_decimal::Decimal;
use serde::Serialize;

/// A number that no source sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// For example `streak.tolerance`.
    pub name: &'static str,
    /// The rule it belongs to, for example R14.
    pub rule: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// What it is unless another is asked for.
    pub default: Decimal,
    /// The smallest allowed.
    pub least: Decimal,
    /// The greatest allowed.
    pub most: Decimal,
    /// Whether it is a whole number.
    pub whole: bool,
    /// What it decides.
    pub meaning: &'static str,
}

/// A parameter that is not its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// Name of the parameter.
    pub name: &'static str,
    /// What it is.
    pub value: Decimal,
    /// What it is by default.
    pub default: Decimal,
    /// What both are counted in.
    pub unit: &'static str,
    /// The rule it belongs to.
    pub rule: &'static str,
}

/// Why a parameter cannot be what was asked for.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0:?} is not NAME=VALUE with a decimal value, such as streak.tolerance=0.05")]
    Form(String),
    #[error("there is no rule parameter {name:?}; the nearest is {nearest}")]
    Unknown { name: String, nearest: &'static str },
    #[error("{name} cannot be {value}: it is from {least} to {most}, in {unit}")]
    Range { name: &'static str, value: Decimal, least: Decimal, most: Decimal, unit: &'static str },
    #[error("{name} cannot be {value}: it is a whole number, in {unit}")]
    Fraction { name: &'static str, value: Decimal, unit: &'static str },
    #[error("{0} is given twice")]
    Twice(&'static str),
}

impl Parameter {
    /// The value, if it may stand in the parameter's place.
    pub(super) fn admit(&self, value: Decimal) -> Result<Decimal, RuleError> {
        let Self { name, unit, least, most, .. } = *self;
        if value < least || most < value {
            return Err(RuleError::Range { name, value, least, most, unit });
        }
        if self.whole && !value.is_integer() {
            return Err(RuleError::Fraction { name, value, unit });
        }
        Ok(value.normalize())
    }

    /// The parameter of a name among some; failing it, the error names the nearest.
    pub(super) fn named(name: &str, among: &'static [Self]) -> Result<&'static Self, RuleError> {
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

/// A literal's text as an exact decimal, while compiling: digits, one point, underscores.
pub(super) const fn exact(text: &str) -> Decimal {
    let bytes = text.as_bytes();
    let (mut digits, mut scale, mut in_fraction, mut place) = (0u64, 0, false, 0);
    while place < bytes.len() {
        match bytes[place] {
            b'.' => in_fraction = true,
            b'_' => {}
            digit => {
                digits = 10 * digits + (digit - b'0') as u64;
                scale += in_fraction as u32;
            }
        }
        place += 1;
    }
    Decimal::from_parts(digits as u32, (digits >> 32) as u32, 0, false, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_exact() {
        assert_eq!(exact("0.05"), dec!(0.05));
        assert_eq!(exact("550"), dec!(550));
        assert_eq!(exact("1_000_000_000_000"), dec!(1000000000000));
    }
}
