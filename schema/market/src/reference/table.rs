//! Reference tables: text files with one row per line and fields separated by semicolons.

/// Name in lower case without blanks and punctuation: `Cboe BZX (BATS)` is `cboebzxbats`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Declares the row struct of a table. After the declared fields, a line has a field with other common names, separated
/// by blanks. Missing fields are empty.
macro_rules! reference_table {
    ($(#[$meta:meta])* pub struct $name:ident in $file:literal { $($(#[$field_meta:meta])* $field:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: &'static str,)+
            /// Other common names, in lower case without blanks and punctuation.
            aliases: Vec<&'static str>,
        }

        static ALL: std::sync::LazyLock<Vec<$name>> = std::sync::LazyLock::new(|| {
            let row = |line: &'static str| {
                let mut fields = line.split(';');
                let mut next = || fields.next().unwrap_or_default();
                let row = $name { $($field: next(),)+ aliases: next().split_whitespace().collect() };
                debug_assert!(fields.next().is_none(), "too many fields: {line}");
                row
            };
            include_str!($file).lines().filter(|line| !line.starts_with('#')).map(row).collect()
        });

        impl $name {
            /// All rows, in the order of the table.
            pub fn all() -> &'static [Self] {
                &ALL
            }

            /// Finds the row with a code, name or other common name that equals `name`; `None` without such a row.
            /// Case, blanks and punctuation are ignored in the comparison.
            pub fn find(name: &str) -> Option<&'static Self> {
                let name = plain(name);
                ALL.iter().find(|row| {
                    [$(row.$field),+].iter().any(|other| plain(other) == name)
                        || row.aliases.contains(&name.as_str())
                })
            }
        }
    };
}
pub(super) use reference_table;
