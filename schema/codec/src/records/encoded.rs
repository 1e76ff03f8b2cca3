//! Encoded record: the bytes of all fields in a fixed order. The length of each field is stored before its bytes.
//!
//! Layouts: the stored fields of every kind of record, in order. Stored rows must stay readable forever, so the order never
//! changes. A new field is optional and is added at the end.

use market::event::{
    DecidedRow, Decision, Dividend, DividendEvidence, Etf, FormerSymbol, Fundamentals, FxRate, Holding,
    HoldingSnapshot, MarketSession, Security, Split,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::field::{Field, next_part, write_bytes, write_part};
use crate::PackedRecordsError;

/// Initial capacity for an encoded record, in bytes. Most records are not longer.
const USUAL_BYTES: usize = 64;
/// Number of present fields that [`RowFields`] can store without a heap allocation. Most records do not have more
/// present fields.
const USUAL_FIELDS: usize = 12;

/// Record whose fields are encoded in a fixed order.
pub trait RecordLayout: Sized {
    /// Writes all fields.
    ///
    /// # Errors
    /// A text contains the character U+0000.
    fn write(&self, out: &mut FieldWriter) -> Result<(), PackedRecordsError>;

    /// Reads all fields.
    ///
    /// # Errors
    /// The bytes are not an encoded record.
    fn read<'a>(
        fields: &mut FieldReader<impl Iterator<Item = EncodedField<'a>>>,
    ) -> Result<Self, PackedRecordsError>;
}

/// Bytes of one field of an encoded record, or the error of reading them.
pub type EncodedField<'a> = Result<&'a [u8], PackedRecordsError>;

/// Record encoded as bytes, without absent fields at the end. A new optional field at the end therefore leaves older
/// records unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EncodedRecord(Box<[u8]>);

impl EncodedRecord {
    /// Encodes a record.
    ///
    /// # Errors
    /// A text contains the character U+0000.
    pub fn encode(record: &impl RecordLayout) -> Result<Self, PackedRecordsError> {
        let mut fields = FieldWriter::default();
        record.write(&mut fields)?;
        Ok(Self(fields.bytes().into()))
    }

    /// Builds an encoded record from fields that are already encoded.
    pub(super) fn join<'a>(
        fields: impl Iterator<Item = EncodedField<'a>>,
    ) -> Result<Self, PackedRecordsError> {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        for field in fields {
            write_bytes(field?, &mut bytes)?;
        }
        Ok(Self(bytes.into()))
    }

    /// Bytes of the first field; `None` if the record has no fields. The first field is the symbol if records of this
    /// kind have a symbol.
    pub(super) fn symbol(&self) -> Result<Option<&[u8]>, PackedRecordsError> {
        self.fields().next().transpose()
    }

    /// Encoded fields, in the order of the layout. An absent field is an empty byte string.
    pub(super) fn fields(&self) -> impl Iterator<Item = EncodedField<'_>> {
        split_fields(&self.0)
    }
}

/// Splits the bytes of an encoded record into fields. In these bytes, every field is preceded by its length.
pub(super) fn split_fields(mut bytes: &[u8]) -> impl Iterator<Item = EncodedField<'_>> {
    std::iter::from_fn(move || next_part(&mut bytes).transpose())
}

/// Writer of a record's fields.
#[derive(Debug, Default)]
pub struct FieldWriter {
    bytes: Vec<u8>,
    /// Length of `bytes` up to the end of the last present field. The bytes after this position encode only absent
    /// fields.
    present: usize,
}

impl FieldWriter {
    /// Appends a field.
    ///
    /// # Errors
    /// A text contains the character U+0000.
    pub fn put(&mut self, field: &impl Field) -> Result<(), PackedRecordsError> {
        if write_part(field, &mut self.bytes)? > 0 {
            self.present = self.bytes.len();
        }
        Ok(())
    }

    /// Encoded fields. Absent fields at the end are left out.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.present]
    }
}

/// Fields of one record in a packed set. Each present field is an index in the set's list of distinct values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowFields {
    /// Bit mask of the present fields. The lowest bit is for the first field.
    present: u64,
    ordinals: SmallVec<[u32; USUAL_FIELDS]>,
}

impl RowFields {
    /// Converts an [`EncodedRecord`] to row fields. `ordinal` returns the index of a field in the set's list of
    /// distinct values.
    pub(super) fn from_record<'a>(
        record: &'a EncodedRecord,
        mut ordinal: impl FnMut(&'a [u8]) -> Result<u32, PackedRecordsError>,
    ) -> Result<Self, PackedRecordsError> {
        let mut fields = Self::default();
        for (field, place) in record.fields().zip(0..) {
            let field = field?;
            if !field.is_empty() {
                let bit =
                    1u64.checked_shl(place).ok_or(PackedRecordsError::Damaged("more than 64 fields"))?;
                fields.present |= bit;
                fields.ordinals.push(ordinal(field)?);
            }
        }
        Ok(fields)
    }

    /// Encoded fields of the record. An absent field is an empty byte string. `values` is the set's list of distinct
    /// values.
    pub(super) fn values<'a>(&'a self, values: &'a [&'a [u8]]) -> impl Iterator<Item = EncodedField<'a>> {
        let mut ordinals = self.ordinals.iter();
        (0..u64::BITS - self.present.leading_zeros()).map(move |place| {
            if (self.present >> place) & 1 == 0 {
                return Ok(&[][..]);
            }
            let ordinal = ordinals.next();
            value_at(
                values,
                *ordinal.ok_or(PackedRecordsError::Damaged("a row has fewer values than fields"))?,
            )
        })
    }
}

/// Reader of a record's fields, in the order of the layout.
#[derive(Debug)]
pub struct FieldReader<I>(I);

impl<'a, I: Iterator<Item = EncodedField<'a>>> FieldReader<I> {
    /// Reads a record from its encoded fields. Fails if the record has more fields than this program version knows.
    pub(super) fn read_record<T: RecordLayout>(fields: I) -> Result<T, PackedRecordsError> {
        let mut reader = Self(fields);
        let record = T::read(&mut reader)?;
        match reader.0.next().transpose()? {
            None => Ok(record),
            Some(_) => Err(PackedRecordsError::UnknownField),
        }
    }

    /// Reads the next field. A field that did not exist when the record was written is read as absent.
    ///
    /// # Errors
    /// The bytes are not an encoded field.
    pub fn take_field<T: Field>(&mut self) -> Result<T, PackedRecordsError> {
        T::read(self.0.next().transpose()?.unwrap_or_default())
    }
}

/// Value at an index; an error if the index is too large.
pub(super) fn value_at<T: Copy>(values: &[T], ordinal: u32) -> Result<T, PackedRecordsError> {
    let value = usize::try_from(ordinal).ok().and_then(|ordinal| values.get(ordinal));
    value.copied().ok_or(PackedRecordsError::Damaged("an index of a row is too large"))
}

macro_rules! layouts {
    ($($record:ident { $($field:ident),* $(,)? })*) => {
        $(impl RecordLayout for $record {
            fn write(&self, out: &mut FieldWriter) -> Result<(), PackedRecordsError> {
                $(out.put(&self.$field)?;)*
                Ok(())
            }

            fn read<'a>(
                fields: &mut FieldReader<impl Iterator<Item = EncodedField<'a>>>,
            ) -> Result<Self, PackedRecordsError> {
                Ok(Self { $($field: fields.take_field()?),* })
            }
        })*
    };
}

layouts! {
    Security {
        symbol, name, r#type, currency, status, former_symbols, indexes, quote_unit, exchange, sector, industry, country,
        description, website, ceo, employees, ipo_date, cik, figi, isin, cusip, delisted_on, dividend_suspended_on,
        streak_seed_years, streak_seed_through, successor, merger_ratio,
    }
    Dividend {
        symbol, amount, currency, r#type, amount_basis, sibling_amounts, ex_date, record_date, payment_date, declaration_date, frequency,
        basis_as_of,
    }
    Split { symbol, ex_date, from, to, declaration_date, payable_date, r#type }
    Fundamentals {
        symbol, as_of, eps_ttm, eps_as_of, ffo_per_share_ttm, shares_outstanding, shares_as_of, float_shares, market_cap,
        float_market_cap, avg_daily_value, revenue_ttm, net_income_ttm, operating_cash_flow_ttm, capital_expenditure_ttm,
        free_cash_flow_ttm, dividends_paid_ttm, book_value_per_share, total_debt, total_equity, enterprise_value, gross_margin,
        operating_margin, net_margin, roe, roa, current_ratio, interest_coverage, forward_pe, peg_ratio, ps_ratio, ev_to_ebitda,
        beta, fiscal_period_end, reported_currency,
    }
    Etf {
        symbol, as_of, issuer, asset_class, category, strategy, index_name, domicile, inception_date, expense_ratio, aum, nav,
        nav_date, sec_yield_30d, is_leveraged, is_inverse, leverage_factor, related_symbol, turnover,
    }
    HoldingSnapshot { symbol, as_of, holdings }
    Holding {
        name, weight, symbol, asset_type, shares, market_value, currency, isin, cusip, figi, sector, country,
    }
    FxRate { symbol, base, quote, date, rate }
    FormerSymbol { symbol, from, to }
    MarketSession { date, note }
    Decision { symbol, verdict, row, reason, note }
    DividendEvidence {
        symbol, dividends_from, dividends_to, ex_date, previous, factor, basis, price_unit, conflict_date, conflict_close,
    }
    DecidedRow { kind, source, row_id, date, value }
}

/// Implements the encoding for a record that is a field of another record.
macro_rules! nested {
    ($($record:ident),*) => {
        $(impl Field for $record {
            fn write(&self, bytes: &mut Vec<u8>) -> Result<(), PackedRecordsError> {
                let mut fields = FieldWriter::default();
                RecordLayout::write(self, &mut fields)?;
                bytes.extend_from_slice(fields.bytes());
                Ok(())
            }

            fn read(bytes: &[u8]) -> Result<Self, PackedRecordsError> {
                FieldReader::read_record(split_fields(bytes))
            }
        })*
    };
}

nested! { FormerSymbol, Holding, DecidedRow }
