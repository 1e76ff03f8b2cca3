//! Sequence numbers of log messages.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use postgres_types::{FromSql, ToSql, Type};
use serde::{Deserialize, Serialize};

/// Sequence number of a message in the log. The first message has number 1. Number 0 is the position before the first
/// message. JetStream's unsigned and Postgres' signed 64-bit integers can both represent all valid numbers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, ToSql,
)]
#[serde(try_from = "i64", into = "i64")]
#[postgres(transparent)]
pub struct Sequence(i64);

/// Error for a number that is not a valid sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a position in the log")]
pub struct SequenceError(pub i128);

impl Sequence {
    /// Sequence as JetStream's unsigned integer.
    pub fn to_u64(self) -> u64 {
        self.0.unsigned_abs()
    }

    /// Sequence as Postgres' bigint.
    pub fn to_i64(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u64> for Sequence {
    type Error = SequenceError;
    fn try_from(number: u64) -> Result<Self, SequenceError> {
        i64::try_from(number).map(Self).map_err(|_| SequenceError(number.into()))
    }
}

impl TryFrom<i64> for Sequence {
    type Error = SequenceError;
    fn try_from(number: i64) -> Result<Self, SequenceError> {
        if number < 0 { Err(SequenceError(number.into())) } else { Ok(Self(number)) }
    }
}

impl From<Sequence> for i64 {
    fn from(sequence: Sequence) -> Self {
        sequence.0
    }
}

impl FromStr for Sequence {
    type Err = Box<dyn Error + Send + Sync>;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<i64>()?.try_into()?)
    }
}

impl<'a> FromSql<'a> for Sequence {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(i64::from_sql(ty, raw)?.try_into()?)
    }
    fn accepts(ty: &Type) -> bool {
        <i64 as FromSql<'_>>::accepts(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_servers_can_count_is_a_position() {
        assert_eq!(Sequence::try_from(7u64).map(Sequence::to_i64), Ok(7));
        assert_eq!(Sequence::try_from(7i64).map(Sequence::to_u64), Ok(7));
        assert!(Sequence::try_from(u64::MAX).is_err());
        assert!(Sequence::try_from(-1i64).is_err());
    }
}
