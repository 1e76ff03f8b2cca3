//! `GET /v1/fx`: exchange rates of two currencies, as the figures use them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::row::{FxRow, TableRow};

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::parameters::{Direction, Knowledge, Output, Page, PageOptions, SortValue, Sortable, parameters};
use crate::read::past_version::find_current_version;
use crate::render::envelope::List;
use crate::routes::conversion::load_exchange_rates;
use crate::routes::endpoint;

const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["date"],
    order: &[("date", Direction::Descending)],
};

parameters! {
    /// Parameters of exchange rates.
    pub(crate) struct FxParameters by reader {
        /// Base currency, an ISO 4217 code: the rates are for one unit of it. Required.
        base: String = reader.read_required_currency("base"),
        /// Quote currency, an ISO 4217 code: the rates are in units of it. Required.
        quote: String = reader.read_required_currency("quote"),
        /// First day. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last day. Default: the newest day with a rate.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(FxRow::COLUMNS),
    }

    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;
}

impl Sortable for FxRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Day(self.date))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.source)
    }
}

endpoint! {
    /// Exchange rates
    ///
    /// Newest first, one row per day with a new rate. The rates are those with which dividends and prices in different
    /// currencies are compared (R41). The rate of two currencies without own rates is computed from the inverse pair,
    /// else through the euro, else through the US dollar. Without any such rate, the list is empty.
    get "/v1/fx", tag "Prices", returns "A page of exchange rates",
    rates(Access<Free, FxParameters>) -> List<FxRow> { respond(render) }
}

async fn render(context: HandlerContext<FxParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let version = match context.find_version(asked.knowledge.as_ref()).await? {
        Some(found) => found,
        None => find_current_version(&context.generation).await?.into(),
    };
    let currencies = BTreeSet::from([asked.base.clone(), asked.quote.clone()]);
    let (from, to) = (context.first_day(asked.start_date), asked.end_date.unwrap_or(NaiveDate::MAX));
    let rates = load_exchange_rates(&context.generation, &version, currencies, [from, to]).await?;
    let (base, quote) = (asked.base.clone(), asked.quote.clone());
    let rows = run_low_priority(move || -> Vec<FxRow> {
        let rates = rates.series(&base, &quote, from, to);
        rates
            .map(|rate| FxRow {
                date: rate.date,
                base: base.clone(),
                quote: quote.clone(),
                rate: ExactDecimal(rate.value),
                through: rate.through.map(str::to_owned),
                source: rate.source(),
            })
            .collect()
    });
    let rows = rows.await?;
    context.render_page(&asked.output, &asked.page, version.version(), &rows, |meta| {
        meta.set_depth(context.depth_without(asked.start_date), context.today);
    })
}
