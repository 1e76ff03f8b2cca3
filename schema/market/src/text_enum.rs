//! Macro for enumerations whose values have one text form in feeds, events, SQL, JSON and OpenAPI.

/// Declares an enum without fields, with the text of each value in feeds, JSON, SQL and OpenAPI. `as` renames the
/// OpenAPI schema.
#[macro_export]
macro_rules! text_enum {
    ($(#[doc = $doc:literal])* $vis:vis enum $name:ident $(as $schema:literal)? { $($(#[doc = $said:literal])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        $vis enum $name { $($(#[doc = $said])* #[doc = concat!("`", $text, "`")] #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// All values, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Text form of the value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(format!("must be one of: {}", [$($text),+].join(", "))),
                }
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some(concat!($($doc,)* $($crate::said!($text $($said)*)),+).trim()))
                    .enum_values(Some([$($text),+]))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            $(fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($schema)
            })?
        }

        impl postgres_types::ToSql for $name {
            fn to_sql(&self, ty: &postgres_types::Type, out: &mut bytes::BytesMut)
                -> Result<postgres_types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
                self.as_str().to_sql(ty, out)
            }
            fn accepts(ty: &postgres_types::Type) -> bool {
                <&str as postgres_types::ToSql>::accepts(ty)
            }
            postgres_types::to_sql_checked!();
        }

        impl $crate::column::ColumnType for $name {
            const TYPE: postgres_types::Type = postgres_types::Type::TEXT;
        }

        impl<'a> postgres_types::FromSql<'a> for $name {
            fn from_sql(ty: &postgres_types::Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
                Ok(<&str as postgres_types::FromSql>::from_sql(ty, raw)?.parse()?)
            }
            fn accepts(ty: &postgres_types::Type) -> bool {
                <&str as postgres_types::FromSql>::accepts(ty)
            }
        }
    };
}

/// Line about one enum value in the OpenAPI description. The line is empty if the value has no documentation.
#[doc(hidden)]
#[macro_export]
macro_rules! said {
    ($text:literal) => { "" };
    ($text:literal $($said:literal)+) => { concat!("\n- `", $text, "`:", $($said),+) };
}
