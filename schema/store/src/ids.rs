//! Typed ids: one type for each kind of id, stored as a plain number in Postgres, JSON and text.

/// Declares an id type that wraps an integer.
#[macro_export]
macro_rules! id_type {
    ($($(#[$doc:meta])* $vis:vis struct $name:ident($number:ty);)*) => { $(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize,
            ::postgres_types::ToSql, ::postgres_types::FromSql,
        )]
        #[serde(transparent)]
        #[postgres(transparent)]
        $vis struct $name($vis $number);

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = ::std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )* };
}

id_type! {
    /// Number of a generation, from 1. It is part of the name of the generation's schema.
    pub struct GenerationId(i32);

    /// Position in the journal of served rows. Positions are in commit order.
    pub struct JournalPosition(i64);
}
