//! Rule parameters: numbers that this service chose for its rules. Each has a name, default, unit, range and meaning.
//!
//! Rules receive the parameters as plain values. Two kinds of numbers are not parameters: a number from the published
//! source of a rule, such as a Chowder threshold, and a number that the caller chooses, such as the minimum yield of a
//! screen.

mod table;

use std::collections::BTreeMap;

use rust_decimal::Decimal;

pub use table::{ParameterDeviation, RuleError, RuleParameter, *};

/// Version of the rules. It increases when a change of the rules changes a figure for the same facts.
pub const METHOD_VERSION: &str = "2026.10";

impl Rules {
    /// Parses parameters of the form `NAME=VALUE`. Parameters that are not given have their defaults.
    pub fn parse<T: AsRef<str>>(given: &[T]) -> Result<Self, RuleError> {
        let mut chosen = BTreeMap::new();
        for text in given.iter().map(AsRef::as_ref) {
            let form = || RuleError::Form(text.to_owned());
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            let parameter = RuleParameter::find(name.trim(), Self::PARAMETERS)?;
            let value = Decimal::from_str_exact(value.trim()).map_err(|_| form())?;
            if chosen.insert(parameter.name.to_owned(), value).is_some() {
                return Err(RuleError::Twice(parameter.name));
            }
        }
        Self::try_from(chosen)
    }

    /// Parameters that differ from their defaults, in the order of the rules.
    pub fn deviations(&self) -> Vec<ParameterDeviation> {
        if *self == Self::DEFAULT {
            return Vec::new();
        }
        let with_values = Self::PARAMETERS.iter().zip(self.values());
        let deviating = with_values.filter(|(parameter, value)| parameter.default != *value);
        deviating
            .map(|(&RuleParameter { name, default, unit, rule, .. }, value)| ParameterDeviation {
                name,
                value,
                default,
                unit,
                rule,
            })
            .collect()
    }

    /// Version of the rules, followed by the parameters that differ from their defaults, for example
    /// `2026.4+streak.tolerated_flat_years=1`.
    pub fn method_version(&self) -> String {
        self.with_deviations(METHOD_VERSION)
    }

    /// Returns `version`, followed by the parameters that differ from their defaults.
    pub fn with_deviations(&self, version: &str) -> String {
        let mut version = version.to_owned();
        for (place, ParameterDeviation { name, value, .. }) in self.deviations().iter().enumerate() {
            let sign = if place == 0 { '+' } else { ',' };
            version.push_str(&format!("{sign}{name}={value}"));
        }
        version
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<BTreeMap<String, Decimal>> for Rules {
    type Error = RuleError;

    fn try_from(chosen: BTreeMap<String, Decimal>) -> Result<Self, RuleError> {
        let mut rules = Self::DEFAULT;
        for (name, value) in chosen {
            let parameter = RuleParameter::find(&name, Self::PARAMETERS)?;
            let value = parameter.validate(value)?;
            let fraction = RuleError::Fraction { name: parameter.name, value, unit: parameter.unit };
            rules.set(parameter.name, value).ok_or(fraction)?;
        }
        Ok(rules)
    }
}

impl From<Rules> for BTreeMap<String, Decimal> {
    fn from(rules: Rules) -> Self {
        rules.deviations().into_iter().map(|one| (one.name.to_owned(), one.value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_stands_in_its_range_and_can_be_set() {
        for parameter in Rules::PARAMETERS {
            let RuleParameter { name, default, least, most, .. } = *parameter;
            assert_eq!(parameter.validate(default), Ok(default), "{name}");
            for value in [least, most] {
                let rules = Rules::parse(&[format!("{name}={value}")]).unwrap();
                let found: Vec<(&str, Decimal)> =
                    rules.deviations().iter().map(|one| (one.name, one.value)).collect();
                let expected = (value != default).then_some((name, value));
                assert_eq!(found, Vec::from_iter(expected), "{name}={value}");
            }
            assert!(!parameter.meaning.is_empty() && parameter.meaning.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        let check = |given: &[&str], expected: &str| {
            assert_eq!(Rules::parse(given).unwrap_err().to_string(), expected, "{given:?}");
        };
        check(
            &["streak.tolerated_flatyears=1"],
            "rule parameter \"streak.tolerated_flatyears\" does not exist; the nearest is streak.tolerated_flat_years",
        );
        check(&["streak.tolerance=11"], "streak.tolerance cannot be 11: it is from 0 to 10, in percent");
        check(&["streak.tolerance=-1"], "streak.tolerance cannot be -1: it is from 0 to 10, in percent");
        check(&["lists.king_years=49.5"], "lists.king_years cannot be 49.5: it is a whole number, in years");
        let form = "is not NAME=VALUE with a decimal value, such as streak.tolerance=0.05";
        check(&["streak.tolerance"], &format!("\"streak.tolerance\" {form}"));
        check(&["streak.tolerance=much"], &format!("\"streak.tolerance=much\" {form}"));
        check(&["streak.tolerance=1", "streak.tolerance=2"], "streak.tolerance is given twice");
    }

    #[test]
    fn the_version_names_what_deviates_and_nothing_else() {
        assert_eq!(Rules::DEFAULT.method_version(), METHOD_VERSION);
        let given = ["streak.tolerated_flat_years=1", "status.lapse_periods=2.50", "streak.tolerance=0.050"];
        let rules = Rules::parse(&given).unwrap();
        let expected = format!("{METHOD_VERSION}+status.lapse_periods=2.5,streak.tolerated_flat_years=1");
        assert_eq!(rules.method_version(), expected);
        let stored = serde_json::to_string(&rules).unwrap();
        assert_eq!(stored, r#"{"status.lapse_periods":"2.5","streak.tolerated_flat_years":"1"}"#);
        assert_eq!(serde_json::from_str::<Rules>(&stored).unwrap(), rules);
        assert_eq!(serde_json::to_string(&Rules::DEFAULT).unwrap(), "{}");
        assert!(serde_json::from_str::<Rules>(r#"{"of.another_program":"1"}"#).is_err());
    }
}
