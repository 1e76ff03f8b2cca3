//! Filters of the screeners: their parameters, and the check of a security.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::event::{Frequency, SecurityType};
use market::metrics::dividends::safety::HighYieldScreenInput;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::figures::{FIGURES, SORT_KEYS, ScreenerFigure};
use super::row::COLUMNS;
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, DescribedParameters, Direction, Output, Page, PageOptions, ParameterReader, Parameters, is_among,
    parameters,
};
use crate::read::memory_tables::SecurityRow;
use crate::routes::stocks::list::is_within_bounds;

/// Kind of screener: the generic screener or a preset.
pub(crate) trait Preset: Send + Sync + 'static {
    /// Name of the screener in `meta.screener`.
    const NAME: &'static str;
    /// Default thresholds, as parameter name and value.
    const DEFAULTS: &'static [(&'static str, i64)] = &[];
    /// Name of the rule parameter that sets the minimum number of consecutive years of increases; `None` without a
    /// minimum.
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
    /// Filters by names, words and dates, which every screener accepts.
    pub(crate) struct WordFilters {
        /// Sectors by name or slug, comma-separated.
        sector: Option<Vec<String>>,
        /// Industries by name or slug, comma-separated.
        industry: Option<Vec<String>>,
        /// Exchanges by market identifier code or name, comma-separated.
        exchange: Option<Vec<String>>,
        /// Countries of domicile by ISO 3166 code or name, comma-separated.
        country: Option<Vec<String>>,
        /// Security types, comma-separated.
        r#type: Option<Vec<SecurityType>>,
        /// Security types to leave out, comma-separated.
        exclude_types: Option<Vec<SecurityType>>,
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>>,
        /// First day of the range in which the next ex-date must be.
        ex_date_from: Option<NaiveDate>,
        /// Last day of the range in which the next ex-date must be.
        ex_date_to: Option<NaiveDate>,
        /// Indexes, comma-separated. A security must be a member of at least one of them.
        index: Option<Vec<String>>,
    }
}

/// Filters of one request.
#[derive(Debug)]
pub(crate) struct ScreenFilters<P> {
    /// Bounds of the figures, in the order of [`FIGURES`].
    ranges: Vec<(Option<Decimal>, Option<Decimal>)>,
    words: WordFilters,
    pub(super) page: Page,
    pub(super) output: Output,
    preset: std::marker::PhantomData<P>,
}

impl<P> DescribedParameters for ScreenFilters<P> {
    const DESCRIPTIONS: &'static [(&'static str, &'static str)] = WordFilters::DESCRIPTIONS;
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
        describe_bounds(reader);
        let (default_limit, most) = P::LIMITS;
        let order = &[("dividend_yield", Direction::Descending)];
        let (ex_date_from, ex_date_to) = (reader.read_date("ex_date_from"), reader.read_date("ex_date_to"));
        let ordered = ex_date_from.zip(ex_date_to).is_none_or(|(from, to)| from <= to);
        reader.require(ordered, "ex_date_to", "is before ex_date_from");
        let words = WordFilters {
            sector: reader.read_names(FilterField::Sector),
            industry: reader.read_names(FilterField::Industry),
            exchange: reader.read_names(FilterField::Exchange),
            country: reader.read_names(FilterField::Country),
            r#type: reader.read_words("type", SecurityType::ALL),
            exclude_types: reader.read_words("exclude_types", SecurityType::ALL),
            frequency: reader.read_words("frequency", Frequency::ALL),
            ex_date_from,
            ex_date_to,
            index: reader.read_names(FilterField::Index),
        };
        let mut screen = Self {
            ranges,
            words,
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
            && is_among(self.words.sector.as_ref(), stock.sector.as_ref())
            && is_among(self.words.industry.as_ref(), stock.industry.as_ref())
            && is_among(self.words.exchange.as_ref(), stock.exchange.as_ref())
            && is_among(self.words.country.as_ref(), stock.country.as_ref())
            && is_among(self.words.r#type.as_ref(), Some(&stock.r#type))
            && self.words.exclude_types.as_ref().is_none_or(|excluded| !excluded.contains(&stock.r#type))
            && is_among(self.words.frequency.as_ref(), stock.frequency.as_ref())
            && self.words.ex_date_from.is_none_or(|from| day.is_some_and(|day| day >= from))
            && self.words.ex_date_to.is_none_or(|to| day.is_some_and(|day| day <= to))
            && self
                .words
                .index
                .as_ref()
                .is_none_or(|wanted| member.figures.indexes.0.iter().any(|index| wanted.contains(index)))
            && P::admits(member, self)
    }

    /// True if the security passes the high-yield screen (R18) with the minimum yield and the types of this request.
    pub(super) fn is_high_yield(&self, member: &SecurityRow) -> bool {
        let SecurityRow { stock, figures } = member;
        let yields = FIGURES.iter().zip(&self.ranges).find(|(figure, _)| figure.min == "min_yield");
        let min_yield = yields.and_then(|(_, (least, _))| *least);
        HighYieldScreenInput::from_rows(stock, figures).passes(min_yield, self.words.r#type.as_deref())
    }

    /// Filters in effect, by parameter, including defaults.
    pub(super) fn criteria(&self) -> BTreeMap<&'static str, Criterion> {
        let mut criteria = BTreeMap::new();
        let mut put = |name, value: Option<Criterion>| criteria.extend(value.map(|value| (name, value)));
        for (figure, (least, most)) in FIGURES.iter().zip(&self.ranges) {
            put(figure.min, least.map(|value| Criterion::Number(value.into())));
            put(figure.max, most.map(|value| Criterion::Number(value.into())));
        }
        put("sector", words(self.words.sector.as_ref()));
        put("industry", words(self.words.industry.as_ref()));
        put("exchange", words(self.words.exchange.as_ref()));
        put("country", words(self.words.country.as_ref()));
        put("index", words(self.words.index.as_ref()));
        put("type", words(self.words.r#type.as_ref()));
        put("exclude_types", words(self.words.exclude_types.as_ref()));
        put("frequency", words(self.words.frequency.as_ref()));
        put("ex_date_from", self.words.ex_date_from.map(|day| Criterion::Text(day.to_string())));
        put("ex_date_to", self.words.ex_date_to.map(|day| Criterion::Text(day.to_string())));
        criteria
    }
}

/// Describes the bounds of the figures for the OpenAPI document.
fn describe_bounds(reader: &mut ParameterReader<'_>) {
    for figure in FIGURES {
        reader.describe(figure.min, format_args!("Minimum {}.", figure.meaning));
        reader.describe(figure.max, format_args!("Maximum {}.", figure.meaning));
    }
    reader.describe(
        "min_streak",
        "Minimum `increase_streak_years`. Aristocrats need at least 25 years and Kings at least 50, unless the served\n\
         rules have other minimums. For these screeners, a smaller value has no effect.",
    );
    reader.describe("max_streak", "Maximum `increase_streak_years`. For non-payers this figure is 0.");
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
