//! Derivation of a security as if one source were the only source, and number of conflicts between two sources, by field of
//! their rows.
//!
//! A field is compared if both rows of a date have a value. Amounts are not adjusted for later splits. An ex-date of
//! only one source is a conflict, in the period that both sources cover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;
use market::bars::Bars;
use market::event::{Action, Kind, Security};
use market::history::{History, Observation};
use market::metrics::source_preference::MANUAL;
use market::metrics::{Derivation, DerivationContext};
use market::row::{DividendRow, DividendStatus, FundamentalsRow, SplitRow, SplitStatus, TableRow};

use super::result::{BySource, SourceQuality};
use crate::review::compare::{BAR_FIELDS, DerivedCells, RowComparison, each_pair};

const EX_DATE: &str = "ex_date";
const DIVIDEND_FIELDS: [&str; 7] =
    ["amount", "currency", "type", "frequency", "payment_date", "record_date", "declaration_date"];
const SPLIT_FIELDS: [&str; 2] = ["ratio", "type"];
const FUNDAMENTALS_FIELDS: [&str; 6] = [
    "shares_outstanding",
    "eps_ttm",
    "book_value_per_share",
    "revenue_ttm",
    "net_income_ttm",
    "free_cash_flow_ttm",
];

/// Compares the rows of one security from two sources. Adds the counts to `quality`, which belongs to the first source.
pub(super) fn count_conflicts(
    quality: &mut SourceQuality,
    sides: [&IsolatedRows; 2],
    as_of: NaiveDate,
) -> anyhow::Result<()> {
    each_pair(sides.map(|side| side.bars.as_ref()), |pair| {
        for field in BAR_FIELDS.iter().filter(|field| pair.has_both(field)) {
            quality.compare(Kind::Price, field.0, pair.field_differs(field));
        }
        Ok(())
    })?;
    let is_live = |status: DividendStatus| matches!(status, DividendStatus::Declared | DividendStatus::Paid);
    let dividends = sides.map(|side| {
        let live = side.dividends.iter().filter(|row| is_live(row.status) && row.ex_date <= as_of);
        by_date(live.map(|row| (row.ex_date, row)))
    });
    let fields = FieldComparison::new::<DividendRow>("dividends", &DIVIDEND_FIELDS)?;
    compare_dated(quality, Kind::Dividend, &fields, &dividends)?;
    let splits = sides.map(|side| {
        let live = side.splits.iter().filter(|row| row.status == SplitStatus::Effective);
        by_date(live.map(|row| (row.ex_date, row)))
    });
    let fields = FieldComparison::new::<SplitRow>("splits", &SPLIT_FIELDS)?;
    compare_dated(quality, Kind::Split, &fields, &splits)?;
    if let [Some(own), Some(other)] = sides.map(|side| side.fundamentals.as_ref())
        && own.as_of == other.as_of
    {
        let fields = FieldComparison::new::<FundamentalsRow>("fundamentals", &FUNDAMENTALS_FIELDS)?;
        fields.compare(quality, Kind::Fundamentals, [own, other])?;
    }
    Ok(())
}

/// Rows by date.
type Dated<'a, T> = BTreeMap<NaiveDate, Vec<&'a T>>;

fn by_date<'a, T>(rows: impl Iterator<Item = (NaiveDate, &'a T)>) -> Dated<'a, T> {
    let mut dated = Dated::new();
    rows.for_each(|(date, row)| dated.entry(date).or_default().push(row));
    dated
}

/// Compares the rows of both sources by date, in the period that both cover. Fields are compared only if each source
/// has exactly one row on the date.
fn compare_dated<T: TableRow>(
    quality: &mut SourceQuality,
    kind: Kind,
    fields: &FieldComparison,
    sides: &[Dated<'_, T>; 2],
) -> anyhow::Result<()> {
    let bounds = |rows: &Dated<'_, T>| Some((*rows.first_key_value()?.0, *rows.last_key_value()?.0));
    let [Some(own), Some(other)] = sides.each_ref().map(bounds) else { return Ok(()) };
    let common = own.0.max(other.0)..=own.1.min(other.1);
    let dates: BTreeSet<NaiveDate> = sides.iter().flat_map(|rows| rows.keys().copied()).collect();
    for date in dates.into_iter().filter(|date| common.contains(date)) {
        let rows = sides.each_ref().map(|rows| rows.get(&date));
        quality.compare(kind, EX_DATE, rows.iter().any(Option::is_none));
        if let [Some([own]), Some([other])] = rows.map(|rows| rows.map(Vec::as_slice)) {
            fields.compare(quality, kind, [*own, *other])?;
        }
    }
    Ok(())
}

/// Comparison of some fields of two rows.
struct FieldComparison {
    rows: RowComparison,
    fields: &'static [&'static str],
}

impl FieldComparison {
    fn new<T: TableRow>(table: &str, fields: &'static [&'static str]) -> anyhow::Result<Self> {
        Ok(Self { rows: RowComparison::of_derived::<T>(table, &[])?, fields })
    }

    fn compare<T: TableRow>(
        &self,
        quality: &mut SourceQuality,
        kind: Kind,
        rows: [&T; 2],
    ) -> anyhow::Result<()> {
        let cells = [DerivedCells::encode(rows[0])?, DerivedCells::encode(rows[1])?];
        for field in self.fields {
            if let Some([own, other]) = self.rows.values(field, cells.each_ref())? {
                quality.compare(kind, field, own != other);
            }
        }
        Ok(())
    }
}

/// Compares the newest security record of each source with that of every other source, symbol by symbol. Counts the
/// conflicts.
pub(super) fn compare_securities(sources: &mut BySource, records: &[Observation<Security>]) {
    let mut newest: BTreeMap<&str, BTreeMap<&str, &Observation<Security>>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.action == Action::Put && record.source != MANUAL) {
        let of_symbol = newest.entry(record.record.symbol.as_str()).or_default();
        let known = of_symbol.entry(record.source.as_str()).or_insert(record);
        if known.version(0) < record.version(0) {
            *known = record;
        }
    }
    for of_symbol in newest.values() {
        for (source, own) in of_symbol {
            for (_, other) in of_symbol.iter().filter(|(other, _)| *other != source) {
                let quality = sources.entry((*source).to_owned()).or_default();
                let pairs = security_fields(&own.record).into_iter().zip(security_fields(&other.record));
                for ((field, own), (_, other)) in pairs {
                    if let (Some(own), Some(other)) = (own, other) {
                        quality.compare(Kind::Security, field, own != other);
                    }
                }
            }
        }
    }
}

fn security_fields(record: &Security) -> [(&'static str, Option<String>); 8] {
    [
        ("name", Some(record.name.clone())),
        ("type", Some(record.r#type.to_string())),
        ("status", Some(record.status.to_string())),
        ("currency", Some(record.currency.clone())),
        ("exchange", record.exchange.clone()),
        ("sector", record.sector.clone()),
        ("industry", record.industry.clone()),
        ("country", record.country.clone()),
    ]
}

/// Rows of a security, derived as if one source were the only source. They are later compared with the rows of other
/// sources. A field is empty if the source has no rows of this kind.
#[derive(Debug, Default)]
pub(super) struct IsolatedRows {
    pub(super) bars: Arc<Bars>,
    pub(super) dividends: Vec<DividendRow>,
    pub(super) splits: Vec<SplitRow>,
    pub(super) fundamentals: Option<FundamentalsRow>,
}

/// Sources of the prices, dividends, splits and company figures of a security. A source may occur several times.
pub(super) fn sources_of(history: &History) -> impl Iterator<Item = &str> {
    let prices = history.prices.iter().map(|prices| prices.source.as_str());
    let dividends = history.dividends.iter().map(|row| row.source.as_str());
    let splits = history.splits.iter().map(|row| row.source.as_str());
    prices.chain(dividends).chain(splits).chain(history.fundamentals.iter().map(|row| row.source.as_str()))
}

/// Derives a security as if `source` were the only source. The quality has the quarantined rows by reason, and the
/// dividend rows by interpretation.
pub(super) fn judge(
    history: &History,
    source: &str,
    context: &DerivationContext<'_>,
) -> (SourceQuality, IsolatedRows) {
    let alone = isolate(history, source);
    let derivation = Derivation::new(&alone, context);
    let mut quality = SourceQuality { readings: derivation.reading_counts(), ..SourceQuality::default() };
    let rows = derivation.rows();
    for row in rows.quarantined.iter().filter(|row| row.source == source) {
        *quality.quarantined.entry(format!("{} {}", row.kind, row.reason)).or_default() += 1;
    }
    let has_prices = history.prices.iter().any(|prices| prices.source == source);
    let own = IsolatedRows {
        bars: if has_prices { rows.bars } else { Arc::default() },
        dividends: rows.dividends,
        splits: if has_rows(&history.splits, source) { rows.splits } else { Vec::new() },
        fundamentals: rows.fundamentals.filter(|_| has_rows(&history.fundamentals, source)),
    };
    (quality, own)
}

fn has_rows<T>(rows: &[Observation<T>], source: &str) -> bool {
    rows.iter().any(|row| row.source == source)
}

/// Reduces a history to the rows of one source. If the source has no prices, the prices of all sources remain. The same
/// applies to splits and to company figures.
fn isolate(history: &History, source: &str) -> History {
    fn own<T: Clone>(rows: &[Observation<T>], source: &str) -> Vec<Observation<T>> {
        rows.iter().filter(|row| row.source == source).cloned().collect()
    }
    fn own_or_all<T: Clone>(rows: &[Observation<T>], source: &str) -> Vec<Observation<T>> {
        if has_rows(rows, source) { own(rows, source) } else { rows.to_vec() }
    }
    let mut prices = history.prices.clone();
    if prices.iter().any(|prices| prices.source == source) {
        prices.retain(|prices| prices.source == source);
    }
    History {
        symbol: history.symbol.clone(),
        former_symbols: history.former_symbols.clone(),
        security: history.security.clone(),
        dividends: own(&history.dividends, source),
        splits: own_or_all(&history.splits, source),
        fundamentals: own_or_all(&history.fundamentals, source),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: history.decisions.clone(),
        evidence: own(&history.evidence, source),
        dividend_feeds: history.dividend_feeds.clone(),
        prices,
    }
}
