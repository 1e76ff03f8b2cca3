//! Filters of the screeners: their parameters, and the check of a security.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::event::{Frequency, SecurityType};
use market::metrics::dividends::safety::{HighYieldScreen, HighYieldScreenInput};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToSchema};

use super::figures::{FIGURES, SORT_KEYS, ScreenerFigure};
use super::row::COLUMNS;
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, Direction, Output, Page, PageOptions, ParameterReader, Parameters, is_among,
};
use crate::read::memory_tables::SecurityRow;
use crate::routes::stocks::list::is_within_bounds;

/// Documentation of the filters that every screener has.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what Screen::read reads")]
pub(crate) struct ScreenerParameters {
    /// Minimum `dividend_yield`, the headline yield, percent.
    min_yield: Option<ExactDecimal>,
    /// Maximum `dividend_yield`, the headline yield, percent.
    max_yield: Option<ExactDecimal>,
    /// Minimum trailing yield, percent.
    min_yield_ttm: Option<ExactDecimal>,
    /// Maximum trailing yield, percent.
    max_yield_ttm: Option<ExactDecimal>,
    /// Minimum payout ratio, percent.
    min_payout_ratio: Option<ExactDecimal>,
    /// Maximum payout ratio, percent.
    max_payout_ratio: Option<ExactDecimal>,
    /// Minimum dividend growth of one year, percent.
    min_growth_1y: Option<ExactDecimal>,
    /// Maximum dividend growth of one year, percent.
    max_growth_1y: Option<ExactDecimal>,
    /// Minimum dividend growth per year over three years, percent.
    min_growth_3y: Option<ExactDecimal>,
    /// Maximum dividend growth per year over three years, percent.
    max_growth_3y: Option<ExactDecimal>,
    /// Minimum dividend growth per year over five years, percent.
    min_growth_5y: Option<ExactDecimal>,
    /// Maximum dividend growth per year over five years, percent.
    max_growth_5y: Option<ExactDecimal>,
    /// Minimum dividend growth per year over ten years, percent.
    min_growth_10y: Option<ExactDecimal>,
    /// Maximum dividend growth per year over ten years, percent.
    max_growth_10y: Option<ExactDecimal>,
    /// Minimum `increase_streak_years`. Aristocrats need at least 25 years and Kings at least 50, unless the served
    /// rules have other minimums. For these screeners, a smaller value is an error.
    min_streak: Option<i64>,
    /// Maximum `increase_streak_years`. For non-payers this figure is 0.
    max_streak: Option<i64>,
    /// Minimum market capitalisation.
    min_market_cap: Option<ExactDecimal>,
    /// Maximum market capitalisation.
    max_market_cap: Option<ExactDecimal>,
    /// Minimum price.
    min_price: Option<ExactDecimal>,
    /// Maximum price.
    max_price: Option<ExactDecimal>,
    /// Minimum volume of the latest session, shares.
    min_volume: Option<ExactDecimal>,
    /// Maximum volume of the latest session, shares.
    max_volume: Option<ExactDecimal>,
    /// Minimum price-earnings ratio.
    min_pe: Option<ExactDecimal>,
    /// Maximum price-earnings ratio.
    max_pe: Option<ExactDecimal>,
    /// Minimum beta.
    min_beta: Option<ExactDecimal>,
    /// Maximum beta.
    max_beta: Option<ExactDecimal>,
    /// Sectors by name or slug, comma-separated.
    sector: Option<String>,
    /// Industries by name or slug, comma-separated.
    industry: Option<String>,
    /// Exchanges by market identifier code or name, comma-separated.
    exchange: Option<String>,
    /// Countries of domicile by ISO 3166 code or name, comma-separated.
    country: Option<String>,
    /// Security types, comma-separated.
    r#type: Option<String>,
    /// Security types to leave out, comma-separated.
    exclude_types: Option<String>,
    /// Payment frequencies, comma-separated.
    frequency: Option<String>,
    /// First accepted day of the next ex-date.
    ex_date_from: Option<NaiveDate>,
    /// Last accepted day of the next ex-date.
    ex_date_to: Option<NaiveDate>,
    /// Indexes, comma-separated. A security must be a member of at least one of them.
    index: Option<String>,
}

/// Kind of screener: the generic screener or a preset.
pub(crate) trait Preset: Send + Sync + 'static {
    /// Name in `meta.screener`.
    const NAME: &'static str;
    /// Default thresholds, as parameter name and value.
    const DEFAULTS: &'static [(&'static str, i64)] = &[];
    /// Name of the rule parameter that sets the minimum years of increases; `None` without a minimum.
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

/// Filters of one request.
#[derive(Debug)]
pub(crate) struct ScreenFilters<P> {
    ranges: Vec<(Option<Decimal>, Option<Decimal>)>,
    sector: Option<Vec<String>>,
    industry: Option<Vec<String>>,
    exchange: Option<Vec<String>>,
    country: Option<Vec<String>>,
    pub(super) types: Option<Vec<SecurityType>>,
    exclude_types: Option<Vec<SecurityType>>,
    frequency: Option<Vec<Frequency>>,
    ex_date_from: Option<NaiveDate>,
    ex_date_to: Option<NaiveDate>,
    index: Option<Vec<String>>,
    pub(super) page: Page,
    pub(super) output: Output,
    preset: std::marker::PhantomData<P>,
}

impl<P> IntoParams for ScreenFilters<P> {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        ScreenerParameters::into_params(place)
    }
}

impl<P: Preset> Parameters for ScreenFilters<P> {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let floor = P::FLOOR.map(|rule| reader.served_rules().integer_rule(rule));
        let bounds = |figure: &ScreenerFigure| match figure.min {
            "min_streak" => floor.map_or(figure.bounds, Bounds::AtLeast),
            _ => figure.bounds,
        };
        let ranges =
            FIGURES.iter().map(|figure| reader.read_bounds(figure.min, figure.max, bounds(figure))).collect();
        let (default_limit, most) = P::LIMITS;
        let order = &[("dividend_yield", Direction::Descending)];
        let (ex_date_from, ex_date_to) = (reader.read_date("ex_date_from"), reader.read_date("ex_date_to"));
        let ordered = ex_date_from.zip(ex_date_to).is_none_or(|(from, to)| from <= to);
        reader.require(ordered, "ex_date_to", "is before ex_date_from");
        let mut screen = Self {
            ranges,
            sector: reader.read_names(FilterField::Sector),
            industry: reader.read_names(FilterField::Industry),
            exchange: reader.read_names(FilterField::Exchange),
            country: reader.read_names(FilterField::Country),
            types: reader.read_words("type", SecurityType::ALL),
            exclude_types: reader.read_words("exclude_types", SecurityType::ALL),
            frequency: reader.read_words("frequency", Frequency::ALL),
            ex_date_from,
            ex_date_to,
            index: reader.read_names(FilterField::Index),
            page: reader.read_page(&PageOptions { default_limit, most, keys: SORT_KEYS, order }),
            output: reader.read_output(&COLUMNS),
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
        let stock = &member.stock;
        let day = stock.next_ex_date;
        stock.is_active
            && FIGURES.iter().zip(&self.ranges).all(|(figure, (least, most))| {
                (least.is_none() && most.is_none()) || is_within_bounds((figure.of)(member), *least, *most)
            })
            && is_among(self.sector.as_ref(), stock.sector.as_ref())
            && is_among(self.industry.as_ref(), stock.industry.as_ref())
            && is_among(self.exchange.as_ref(), stock.exchange.as_ref())
            && is_among(self.country.as_ref(), stock.country.as_ref())
            && is_among(self.types.as_ref(), Some(&stock.r#type))
            && self.exclude_types.as_ref().is_none_or(|excluded| !excluded.contains(&stock.r#type))
            && is_among(self.frequency.as_ref(), stock.frequency.as_ref())
            && self.ex_date_from.is_none_or(|from| day.is_some_and(|day| day >= from))
            && self.ex_date_to.is_none_or(|to| day.is_some_and(|day| day <= to))
            && self
                .index
                .as_ref()
                .is_none_or(|wanted| member.figures.indexes.0.iter().any(|index| wanted.contains(index)))
            && P::admits(member, self)
    }

    /// True if the security passes the high-yield screen (R18) with the minimum yield and the types of this request.
    pub(super) fn is_high_yield(&self, member: &SecurityRow) -> bool {
        let SecurityRow { stock, figures } = member;
        let yields = FIGURES.iter().zip(&self.ranges).find(|(figure, _)| figure.min == "min_yield");
        let screen = HighYieldScreen {
            min_yield: yields.and_then(|(_, (least, _))| *least),
            types: self.types.as_deref(),
        };
        screen.passes(&HighYieldScreenInput::from_rows(stock, figures))
    }

    /// Filters in effect, by parameter, including defaults.
    pub(super) fn criteria(&self) -> BTreeMap<&'static str, Criterion> {
        let mut criteria = BTreeMap::new();
        let mut put = |name, value: Option<Criterion>| criteria.extend(value.map(|value| (name, value)));
        for (figure, (least, most)) in FIGURES.iter().zip(&self.ranges) {
            put(figure.min, least.map(|value| Criterion::Number(value.into())));
            put(figure.max, most.map(|value| Criterion::Number(value.into())));
        }
        put("sector", words(self.sector.as_ref()));
        put("industry", words(self.industry.as_ref()));
        put("exchange", words(self.exchange.as_ref()));
        put("country", words(self.country.as_ref()));
        put("index", words(self.index.as_ref()));
        put("type", words(self.types.as_ref()));
        put("exclude_types", words(self.exclude_types.as_ref()));
        put("frequency", words(self.frequency.as_ref()));
        put("ex_date_from", self.ex_date_from.map(|day| Criterion::Text(day.to_string())));
        put("ex_date_to", self.ex_date_to.map(|day| Criterion::Text(day.to_string())));
        criteria
    }
}

fn words<T: ToString>(chosen: Option<&Vec<T>>) -> Option<Criterion> {
    chosen.map(|chosen| Criterion::Words(chosen.iter().map(ToString::to_string).collect()))
}

/// Applied value of a filter.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Criterion {
    /// Threshold, in the unit of the parameter.
    Number(ExactDecimal),
    /// A day.
    Text(String),
    /// Names or words of a list.
    Words(Vec<String>),
}
