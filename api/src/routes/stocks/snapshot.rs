//! `GET /v1/stocks/{symbol}`, `/quote` and `/fundamentals`: profile, quote and company figures of one security.

use std::sync::{Arc, LazyLock};

use chrono::NaiveDate;
use market::dated_text::LimitToHistory;
use market::metrics::DerivedRows;
use market::row::{
    Company, Coverage, FundamentalsRow, Identifiers, JsonColumn, Listing, Pricing, Quote, Stock,
    StockDividends, StockRow, TableRow,
};
use serde::Serialize;
use store::FromRow;
use tokio_postgres::Row;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody, Starter};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, ParameterReader, RequestedSymbol, parameters};
use crate::read::lookup::{self, PastVersion};
use crate::render::envelope::{Meta, Single};
use crate::render::rows;
use crate::routes::endpoint;

const SNAPSHOT: &str = include_str!("../../../queries/stocks/snapshot.sql");
/// Optional parts of the response.
const PARTS: &[&str] = &["company", "pricing", "dividends", "coverage"];

static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    StockRow::COLUMNS
        .iter()
        .copied()
        .chain(["identifiers", "listings"])
        .chain(PARTS.iter().copied())
        .collect()
});

/// Profile of a security: the stock row, identifiers and optional parts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Snapshot {
    #[serde(flatten)]
    stock: StockRow,
    /// Identifiers of the security.
    identifiers: Identifiers,
    /// All listings with the ISIN of the security, including this one.
    listings: Vec<Listing>,
    /// Company profile.
    company: Company,
    /// Price figures of the latest session.
    pricing: Pricing,
    /// Dividend figures.
    dividends: StockDividends,
    /// First and last days of the security's prices and dividends.
    coverage: Coverage,
}

parameters! {
    /// Parameters of the stock snapshot.
    pub(crate) struct SnapshotParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        output: Output = read_output(reader),
    }

    const TIER_MATTERS: bool = true;
}

/// Reads `include` and the output options. If `include` is given, the output has only those optional parts that it
/// lists.
fn read_output(reader: &mut ParameterReader<'_>) -> Output {
    let include = reader.read_words("include", PARTS);
    reader.describe(
        "include",
        "Parts to return, comma-separated: company, pricing, dividends, coverage. Default: all.",
    );
    let mut output = reader.read_output(&COLUMNS);
    if let Some(include) = &include {
        let chosen = output.fields.get_or_insert_with(|| COLUMNS.clone());
        chosen.retain(|column| !PARTS.contains(column) || include.contains(column));
    }
    output
}

impl LimitToHistory for Snapshot {
    fn limit_to_days_from(self, first: NaiveDate) -> Self {
        Self {
            dividends: self.dividends.limit_to_days_from(first),
            coverage: self.coverage.limit_to_days_from(first),
            ..self
        }
    }
}

/// Row of the snapshot statement.
struct SnapshotRow {
    stock: Stock,
    listings: Vec<Listing>,
}

impl FromRow for SnapshotRow {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let JsonColumn(listings) = row.try_get("listings")?;
        Ok(Self { stock: Stock::from_row(row)?, listings })
    }
}

impl From<SnapshotRow> for Snapshot {
    fn from(SnapshotRow { stock, listings }: SnapshotRow) -> Self {
        Self {
            listings,
            stock: stock.listed,
            identifiers: stock.identifiers.0,
            company: stock.company.0,
            pricing: stock.pricing.0,
            dividends: stock.dividends.0,
            coverage: stock.coverage.0,
        }
    }
}

endpoint! {
    /// Stock snapshot
    ///
    /// The stock row, its identifiers, and the parts that `include` selects. The last dividend and the days of
    /// `coverage` are null if they are before the tier's history.
    get "/v1/stocks/{symbol}", tag "Stocks", returns "The snapshot",
    snapshot(Access<Free, SnapshotParameters>) -> Single<Snapshot> { respond(render_snapshot) }
}

async fn render_snapshot(context: HandlerContext<SnapshotParameters>) -> Result<RenderedBody, ApiError> {
    let (version, row) =
        lookup::find_one::<SnapshotRow>(&context.generation, SNAPSHOT, &context.parameters.symbol).await?;
    let depth = context.depth();
    let meta = Meta { known_at: context.known_at, ..Meta::new(&version) };
    let meta = meta.with_depth(depth, context.today);
    let snapshot = Snapshot::from(row).limit_to_days_from(depth.from);
    let body = rows::render_single(&context.parameters.output, &snapshot, &meta)?;
    Ok(RenderedBody { body, version, next_cursor: None })
}

const QUOTE: &str = include_str!("../../../queries/stocks/quote.sql");
const FUNDAMENTALS: &str = include_str!("../../../queries/stocks/fundamentals.sql");

parameters! {
    /// Parameters of the quote and of the fundamentals.
    pub(crate) struct RowParameters<const FUNDAMENTALS: bool> by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(if FUNDAMENTALS { FundamentalsRow::COLUMNS } else { Quote::COLUMNS }),
    }

    const FEATURE: &'static str = if FUNDAMENTALS { "fundamentals" } else { "" };
}

endpoint! {
    /// Comprehensive quote
    ///
    /// End-of-day quote: the latest close with its session, the 52-week range, averages and the headline dividend
    /// figures.
    get "/v1/stocks/{symbol}/quote", tag "Stocks", returns "The quote",
    quote(Access<Free, RowParameters<false>>) -> Single<Quote> { respond(|context| render(context, QUOTE, |rows| rows.quote.clone())) }
}

endpoint! {
    /// Fundamentals (Starter and higher)
    ///
    /// Company figures, with per-share figures adjusted for splits.
    get "/v1/stocks/{symbol}/fundamentals", tag "Stocks", returns "The fundamentals",
    fundamentals(Access<Starter, RowParameters<true>>) -> Single<FundamentalsRow> { respond(|context| render(context, FUNDAMENTALS, DerivedRows::served_fundamentals)) }
}

/// Renders one row of a security. At the current version, the SQL `statement` reads the stored row. At an earlier
/// version, all rows of the security are derived, and the function `derived` selects one of them.
async fn render<T: TableRow + Serialize, const FUNDAMENTALS: bool>(
    context: HandlerContext<RowParameters<FUNDAMENTALS>>,
    statement: &'static str,
    derived: fn(&DerivedRows) -> T,
) -> Result<RenderedBody, ApiError> {
    let RowParameters { symbol, knowledge, output } = &context.parameters;
    let live = async { Ok(lookup::find_one(&context.generation, statement, symbol).await?) };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, symbol).await?;
        Ok(derived(&security.rows))
    };
    let (version, row) = context.read_as_known(knowledge.as_ref(), live, past).await?;
    context.render_single(output, version, &row)
}
