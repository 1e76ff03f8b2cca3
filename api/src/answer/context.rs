//! Handler context: generation, tier and parameters of a request, and functions that render its body.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use crate::app::state::App;
use crate::auth::tier::{Tier, years_before};
use crate::error::ApiError;
use crate::parameters::{Output, Page, Sortable};
use crate::read::memory_tables::RestrictedSecurities;
use crate::read::{DataVersion, ServedGeneration};
use crate::render::envelope::{Depth, ListMeta, Meta};
use crate::render::rows;

/// Inputs of a handler that renders a response.
#[derive(Debug)]
pub(crate) struct HandlerContext<P> {
    pub(crate) app: App,
    pub(crate) generation: Arc<ServedGeneration>,
    pub(crate) tier: Tier,
    /// Current day in New York, unless the settings name another day.
    pub(crate) today: NaiveDate,
    /// Value of the parameter `known_at`; `None` if absent.
    pub(crate) known_at: Option<DateTime<Utc>>,
    pub(crate) parameters: P,
}

/// Rendered body and its data version.
#[derive(Debug)]
pub(crate) struct RenderedBody {
    pub(crate) body: Bytes,
    pub(crate) version: DataVersion,
    pub(crate) next_cursor: Option<String>,
}

/// Rows of one page, with their metadata and data version.
#[derive(Debug)]
pub(crate) struct SelectedPage<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) meta: ListMeta,
    pub(crate) version: DataVersion,
}

/// Renders the rows of one page.
pub(crate) fn render_page(
    output: &Output,
    rows: &[impl Serialize],
    meta: &ListMeta,
    version: DataVersion,
) -> Result<RenderedBody, ApiError> {
    let body = rows::render_list(output, rows, meta)?;
    Ok(RenderedBody { body, version, next_cursor: meta.next_cursor.clone() })
}

impl<P> HandlerContext<P> {
    /// Start of the history that the tier includes.
    pub(crate) fn depth(&self) -> Depth {
        Depth { from: self.first_day_of_tier_history(), tier: self.tier }
    }

    /// First day of a response: the requested day, else the first day of the history that the tier includes.
    pub(crate) fn first_day(&self, start_date: Option<NaiveDate>) -> NaiveDate {
        start_date.unwrap_or_else(|| self.first_day_of_tier_history())
    }

    /// Start of the history in a response; `None` if the request names a start date.
    pub(crate) fn depth_without(&self, start_date: Option<NaiveDate>) -> Option<Depth> {
        start_date.is_none().then(|| self.depth())
    }

    /// First day of the history that the tier includes.
    pub(crate) fn first_day_of_tier_history(&self) -> NaiveDate {
        years_before(self.today, self.app.admission.tiers().depth_years(self.tier))
    }

    /// Securities that bulk responses leave out.
    pub(crate) async fn restricted(&self) -> Result<Arc<RestrictedSecurities>, ApiError> {
        Ok(self.app.memory_tables.restricted(&self.generation).await?)
    }

    /// Renders one resource.
    pub(crate) fn render_single(
        &self,
        output: &Output,
        version: DataVersion,
        row: &impl Serialize,
    ) -> Result<RenderedBody, ApiError> {
        let meta = Meta { known_at: self.known_at, ..Meta::new(&version) };
        let body = rows::render_single(output, row, &meta)?;
        Ok(RenderedBody { body, version, next_cursor: None })
    }

    /// Renders one page of `rows`. `finish` may set further metadata of the page.
    pub(crate) fn render_page<'a, T: Sortable + Serialize + 'a>(
        &self,
        output: &Output,
        page: &Page,
        version: DataVersion,
        rows: impl IntoIterator<Item = &'a T>,
        finish: impl FnOnce(&mut ListMeta),
    ) -> Result<RenderedBody, ApiError> {
        let SelectedPage { rows, mut meta, version } = self.select_page(page, version, rows);
        finish(&mut meta);
        render_page(output, &rows, &meta, version)
    }

    /// Selects one page of `rows`.
    pub(crate) fn select_page<'a, T: Sortable + 'a>(
        &self,
        page: &Page,
        version: DataVersion,
        rows: impl IntoIterator<Item = &'a T>,
    ) -> SelectedPage<&'a T> {
        let (rows, next_cursor) =
            page.select_rows(rows, &self.app.signer.of_response(version.to_exact_text()));
        let mut meta = ListMeta::new(&version, rows.len(), page.limit, next_cursor);
        meta.known_at = self.known_at;
        SelectedPage { rows, meta, version }
    }
}
