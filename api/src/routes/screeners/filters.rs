//! Filters of the screeners: the figures that they can filter and sort by, their parameters, and the check that a security
//! matches them.
//!
//! Facets of a screener: the number of matching securities by value of a filter, for example by sector.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::event::{Frequency, SecurityType};
use market::metrics::dividends::safety::passes_high_yield;
use market::row::{ScreenerFigures, StockRow, TableRow};
use market::text_enum;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, Direction, Output, Page, PageOptions, ParameterReader, Parameters, SortValue, Sortable, is_among,
    parameters,
};
use crate::read::memory_tables::SecurityRow;
use crate::routes::stocks::list::is_within_bounds;

/// Kind of screener: the generic screener, or a preset such as high yield.
pub(crate) trait Preset: Send + Sync + 'static {
    /// Name of the screener in `meta.screener`.
    const NAME: &'static str;
    /// Default thresholds, as parameter name and value.
    const DEFAULTS: &'static [(&'static str, i64)] = &[];
    /// Name of the rule parameter that sets the minimum number of consecutive years of dividend increases. `None` if
    /// the screener has no such minimum.
    const FLOOR: Option<&'static str> = None;
    const LIMITS: (i64, i64) = (100, 1_000);
    /// True if the security meets the additional condition of the preset.
    fn admits(_: &SecurityRow, _: &ScreenFilters<Self>) -> bool
    where
        Self: Sized,
    {
        true
    }
}

parameters! {
    /// Filters by name, type, frequency and date, which every screener has. Filters by figure, for example `min_yield`,
    /// are in [`ScreenFilters`].
    pub(crate) struct WordFilters by reader {
        /// First day of a range. The next ex-date of a security must be on or after this day.
        ex_date_from: Option<NaiveDate> = reader.read_date("ex_date_from"),
        /// Last day of a range. The next ex-date of a security must be on or before this day.
        ex_date_to: Option<NaiveDate> = reader.read_last_day("ex_date_to", "ex_date_from", ex_date_from),
        /// Sectors by name or slug, comma-separated.
        sector: Option<Vec<String>> = reader.read_names(FilterField::Sector),
        /// Industries by name or slug, comma-separated.
        industry: Option<Vec<String>> = reader.read_names(FilterField::Industry),
        /// Exchanges by market identifier code or name, comma-separated.
        exchange: Option<Vec<String>> = reader.read_names(FilterField::Exchange),
        /// Countries of domicile by ISO 3166 code or name, comma-separated.
        country: Option<Vec<String>> = reader.read_names(FilterField::Country),
        /// Security types, comma-separated.
        r#type: Option<Vec<SecurityType>> = reader.read_words("type", SecurityType::ALL),
        /// Security types to leave out, comma-separated.
        exclude_types: Option<Vec<SecurityType>> = reader.read_words("exclude_types", SecurityType::ALL),
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>> = reader.read_words("frequency", Frequency::ALL),
        /// Stock indexes, comma-separated. A security must be a member of at least one of them.
        index: Option<Vec<String>> = reader.read_names(FilterField::Index),
    }
}

/// Filters of one request.
#[derive(Debug)]
pub(crate) struct ScreenFilters<P> {
    /// Minimum and maximum of each figure, in the order of [`FIGURES`].
    ranges: Vec<(Option<Decimal>, Option<Decimal>)>,
    words: WordFilters,
    pub(super) page: Page,
    pub(super) output: Output,
    /// Facets to count in `meta.facets`.
    facets: Option<Vec<Facet>>,
    preset: std::marker::PhantomData<P>,
}

impl<P: Preset> Parameters for ScreenFilters<P> {
    const DESCRIPTIONS: &'static [(&'static str, &'static str)] = WordFilters::DESCRIPTIONS;

    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let floor = P::FLOOR.map(|rule| reader.served_rules.integer_rule(rule));
        let ranges = FIGURES.iter().map(|figure| read_bounds(reader, figure, floor)).collect();
        describe_bounds(reader);
        let words = WordFilters::read(reader);
        let (default_limit, most) = P::LIMITS;
        let order = &[("dividend_yield", Direction::Descending)];
        let mut screen = Self {
            ranges,
            words,
            page: reader.read_page(&PageOptions { default_limit, most, keys: SORT_KEYS, order }),
            output: reader.read_output(&COLUMNS),
            facets: read_facets(reader),
            preset: std::marker::PhantomData,
        };
        screen.apply_defaults(floor);
        screen
    }
}

impl<P: Preset> ScreenFilters<P> {
    fn apply_defaults(&mut self, floor: Option<i64>) {
        for (figure, (least, _)) in FIGURES.iter().zip(&mut self.ranges) {
            let default = P::DEFAULTS.iter().find(|(name, _)| *name == figure.min);
            *least = least.or(default.map(|(_, value)| Decimal::from(*value)));
            if figure.min == "min_streak" {
                *least = least.or(floor.map(Decimal::from));
            }
        }
    }

    /// True if the security matches all filters.
    pub(super) fn matches(&self, member: &SecurityRow) -> bool {
        self.matches_except(member, None)
    }

    /// True if the security matches all filters. The filter with the name of the facet is ignored.
    fn matches_except(&self, member: &SecurityRow, ignored: Option<Facet>) -> bool {
        let (words, stock) = (&self.words, &member.stock);
        let (day, indexes) = (stock.next_ex_date, &member.figures.indexes.0);
        stock.is_active
            && FIGURES.iter().zip(&self.ranges).all(|(figure, (least, most))| {
                (least.is_none() && most.is_none()) || is_within_bounds((figure.of)(member), *least, *most)
            })
            && (ignored == Some(Facet::Sector) || is_among(words.sector.as_ref(), stock.sector.as_ref()))
            && is_among(words.industry.as_ref(), stock.industry.as_ref())
            && (ignored == Some(Facet::Exchange)
                || is_among(words.exchange.as_ref(), stock.exchange.as_ref()))
            && (ignored == Some(Facet::Country) || is_among(words.country.as_ref(), stock.country.as_ref()))
            && (ignored == Some(Facet::Type) || is_among(words.r#type.as_ref(), Some(&stock.r#type)))
            && words.exclude_types.as_ref().is_none_or(|excluded| !excluded.contains(&stock.r#type))
            && is_among(words.frequency.as_ref(), stock.frequency.as_ref())
            && words.ex_date_from.is_none_or(|from| day.is_some_and(|day| day >= from))
            && words.ex_date_to.is_none_or(|to| day.is_some_and(|day| day <= to))
            && (ignored == Some(Facet::Index)
                || words
                    .index
                    .as_ref()
                    .is_none_or(|wanted| indexes.iter().any(|index| wanted.contains(index))))
            && P::admits(member, self)
    }

    /// Counts the securities by value of each requested facet; `None` if none is requested. A security counts if it
    /// matches all filters except the facet's own.
    pub(super) fn count_facets(&self, rows: &[SecurityRow]) -> Option<FacetCounts> {
        let mut counts = FacetCounts::new();
        for facet in self.facets.as_ref()? {
            let by_value = counts.entry(facet.as_str()).or_default();
            for member in rows.iter().filter(|member| self.matches_except(member, Some(*facet))) {
                for value in facet.values(member) {
                    *by_value.entry(value.to_owned()).or_default() += 1;
                }
            }
        }
        Some(counts)
    }

    /// True if the security passes the high-yield screen (R18) with the minimum yield and the types of this request.
    pub(super) fn is_high_yield(&self, member: &SecurityRow) -> bool {
        let SecurityRow { stock, figures } = member;
        let yields = FIGURES.iter().zip(&self.ranges).find(|(figure, _)| figure.min == "min_yield");
        let min_yield = yields.and_then(|(_, (least, _))| *least);
        passes_high_yield(stock, figures, min_yield, self.words.r#type.as_deref())
    }

    /// Applied filters by parameter name, including defaults.
    pub(super) fn criteria(&self) -> BTreeMap<&'static str, Criterion> {
        let (words, mut criteria) = (&self.words, BTreeMap::new());
        let mut put = |name, value: Option<Criterion>| criteria.extend(value.map(|value| (name, value)));
        for (figure, (least, most)) in FIGURES.iter().zip(&self.ranges) {
            put(figure.min, least.map(|value| Criterion::Number(value.into())));
            put(figure.max, most.map(|value| Criterion::Number(value.into())));
        }
        put("sector", names(words.sector.as_ref()));
        put("industry", names(words.industry.as_ref()));
        put("exchange", names(words.exchange.as_ref()));
        put("country", names(words.country.as_ref()));
        put("index", names(words.index.as_ref()));
        put("type", names(words.r#type.as_ref()));
        put("exclude_types", names(words.exclude_types.as_ref()));
        put("frequency", names(words.frequency.as_ref()));
        put("ex_date_from", words.ex_date_from.map(|day| Criterion::Text(day.to_string())));
        put("ex_date_to", words.ex_date_to.map(|day| Criterion::Text(day.to_string())));
        criteria
    }
}

/// Reads the minimum and the maximum of a figure. `floor` is the smallest valid value of `min_streak` and `max_streak`.
/// Other figures ignore `floor`.
fn read_bounds(
    reader: &mut ParameterReader<'_>,
    figure: &ScreenerFigure,
    floor: Option<i64>,
) -> (Option<Decimal>, Option<Decimal>) {
    let bounds = match floor {
        Some(floor) if figure.min == "min_streak" => Bounds::AtLeast(floor),
        _ => figure.bounds,
    };
    let least = reader.read_decimal(figure.min, bounds);
    (least, reader.read_maximum(figure.max, bounds, figure.min, least))
}

/// Reads `facets`.
fn read_facets(reader: &mut ParameterReader<'_>) -> Option<Vec<Facet>> {
    let facets = reader.read_words("facets", Facet::ALL);
    reader.describe(
        "facets",
        "Filters whose values `meta.facets` counts, comma-separated. A security counts if it matches all other filters.",
    );
    facets
}

/// Sets the descriptions of the parameters `min_…` and `max_…` in the OpenAPI document.
fn describe_bounds(reader: &mut ParameterReader<'_>) {
    for figure in FIGURES {
        reader.describe(figure.min, format_args!("Minimum {}.", figure.meaning));
        reader.describe(figure.max, format_args!("Maximum {}.", figure.meaning));
    }
    reader.describe(
        "min_streak",
        "Minimum `increase_streak_years`. For Aristocrats, the minimum must be at least 25 years, and for Kings at least\n\
         50. The operator can change these two limits.",
    );
    reader.describe("max_streak", "Maximum `increase_streak_years`. For non-payers this figure is 0.");
}

fn names<T: ToString>(chosen: Option<&Vec<T>>) -> Option<Criterion> {
    chosen.map(|chosen| Criterion::Words(chosen.iter().map(ToString::to_string).collect()))
}

/// Value of an applied filter.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Criterion {
    /// Threshold, in the unit of the parameter.
    Number(ExactDecimal),
    /// Value of a filter that is a day, YYYY-MM-DD.
    Text(String),
    /// Values of a filter that is a list, for example names of sectors.
    Words(Vec<String>),
}

/// Figure of a screener: column, names of the minimum and maximum parameters, and range of valid parameter values.
pub(super) struct ScreenerFigure {
    pub(super) column: &'static str,
    pub(super) min: &'static str,
    pub(super) max: &'static str,
    pub(super) bounds: Bounds,
    /// Name and unit of the figure, as the descriptions of its parameters show them.
    pub(super) meaning: &'static str,
    pub(super) of: fn(&SecurityRow) -> Option<Decimal>,
}

macro_rules! figures {
    ($($column:literal $min:literal $max:literal $bounds:ident $meaning:literal $of:expr),* $(,)?) => {
        &[$(ScreenerFigure { column: $column, min: $min, max: $max, bounds: Bounds::$bounds, meaning: $meaning, of: $of }),*]
    };
}

pub(super) const FIGURES: &[ScreenerFigure] = figures![
    "dividend_yield" "min_yield" "max_yield" Percent "`dividend_yield`, the headline yield, percent"
        |m| m.stock.dividend_yield.map(|v| v.0),
    "yield_ttm" "min_yield_ttm" "max_yield_ttm" Percent "trailing yield, percent"
        |m| m.figures.screened.yield_ttm.map(|v| v.0),
    "payout_ratio" "min_payout_ratio" "max_payout_ratio" Percent "payout ratio, percent"
        |m| m.figures.screened.payout_ratio.map(|v| v.0),
    "growth_1y" "min_growth_1y" "max_growth_1y" SignedPercent "dividend growth of one year, percent"
        |m| m.figures.screened.growth_1y.map(|v| v.0),
    "growth_3y" "min_growth_3y" "max_growth_3y" SignedPercent "dividend growth a year over three years, percent"
        |m| m.figures.screened.growth_3y.map(|v| v.0),
    "growth_5y" "min_growth_5y" "max_growth_5y" SignedPercent "dividend growth a year over five years, percent"
        |m| m.figures.screened.growth_5y.map(|v| v.0),
    "growth_10y" "min_growth_10y" "max_growth_10y" SignedPercent "dividend growth a year over ten years, percent"
        |m| m.figures.screened.growth_10y.map(|v| v.0),
    "increase_streak_years" "min_streak" "max_streak" Amount "`increase_streak_years`"
        |m| m.stock.increase_streak_years.map(Decimal::from),
    "market_cap" "min_market_cap" "max_market_cap" Amount "`reporting_market_cap`, in the reporting currency"
        |m| m.stock.reporting_market_cap.map(Decimal::from),
    "price" "min_price" "max_price" Amount "price"
        |m| m.stock.price.map(|v| v.0),
    "volume" "min_volume" "max_volume" Amount "volume of the latest session, shares"
        |m| m.figures.screened.volume.map(Decimal::from),
    "pe_ratio" "min_pe" "max_pe" Any "price-earnings ratio"
        |m| m.figures.screened.pe_ratio.map(|v| v.0),
    "beta" "min_beta" "max_beta" Any "beta"
        |m| m.figures.screened.beta.map(|v| v.0),
];

const SORT_KEYS: &[&str] = &[
    "symbol",
    "name",
    "dividend_yield",
    "yield_ttm",
    "yield_forward",
    "payout_ratio",
    "growth_1y",
    "growth_3y",
    "growth_5y",
    "growth_10y",
    "increase_streak_years",
    "payment_streak_years",
    "market_cap",
    "price",
    "volume",
    "pe_ratio",
    "beta",
    "next_ex_date",
    "yield_suspect",
];

/// A stock row and the figures of the screeners.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ScreenerRow {
    #[serde(flatten)]
    stock: StockRow,
    #[serde(flatten)]
    figures: ScreenerFigures,
    /// True if the headline yield is above 25 percent, which is usually an error or a price collapse (R18).
    yield_suspect: bool,
}

/// Columns of the stock row, followed by the columns of the figures and `yield_suspect`.
pub(crate) static COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| [StockRow::COLUMNS, ScreenerFigures::COLUMNS, &["yield_suspect"]].concat());

impl From<&SecurityRow> for ScreenerRow {
    fn from(member: &SecurityRow) -> Self {
        let SecurityRow { stock, figures } = member;
        Self { stock: stock.clone(), figures: figures.screened.clone(), yield_suspect: figures.yield_suspect }
    }
}

impl Sortable for SecurityRow {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        let number = |value: Option<Decimal>| value.map(SortValue::Number);
        match key {
            "symbol" | "name" => self.stock.sort_value(key),
            "next_ex_date" => self.stock.next_ex_date.map(SortValue::Day),
            "payment_streak_years" => number(self.figures.screened.payment_streak_years.map(Decimal::from)),
            "yield_suspect" => number(Some(Decimal::from(u8::from(self.figures.yield_suspect)))),
            "yield_forward" => number(self.figures.screened.yield_forward.map(|value| value.0)),
            _ => number(
                FIGURES.iter().find(|figure| figure.column == key).and_then(|figure| (figure.of)(self)),
            ),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.stock.symbol)
    }
}

text_enum! {
    /// Filter whose values a screener counts.
    pub enum Facet {
        Sector = "sector", Country = "country", Type = "type", Index = "index", Exchange = "exchange",
    }
}

/// Number of securities by value, for each facet.
pub(super) type FacetCounts = BTreeMap<&'static str, BTreeMap<String, u32>>;

impl Facet {
    /// Values of a security.
    pub(super) fn values(self, member: &SecurityRow) -> Vec<&str> {
        let stock = &member.stock;
        match self {
            Self::Sector => stock.sector.as_deref().into_iter().collect(),
            Self::Country => stock.country.as_deref().into_iter().collect(),
            Self::Type => vec![stock.r#type.as_str()],
            Self::Index => member.figures.indexes.0.iter().map(String::as_str).collect(),
            Self::Exchange => stock.exchange.as_deref().into_iter().collect(),
        }
    }
}
