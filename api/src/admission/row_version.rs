//! Version of a database row: the system column `xmin` of Postgres. Every change of a row changes its version.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Version of a row: the id of the transaction that last wrote the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowVersion(pub(crate) u32);

impl ToSql for RowVersion {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        // The parameter has type `xid`, which `u32` does not support. The type `oid` has the same wire format.
        self.0.to_sql(&Type::OID, out)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::XID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for RowVersion {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        u32::from_sql(&Type::OID, raw).map(Self)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::XID
    }
}
