//! Handler context and rendered result.

use std::sync::Arc;

use bytes::Bytes;
use chrono::NaiveDate;
use serde::Serialize;

use crate::app::state::App;
use crate::auth::tier::{Tier, years_before};
use crate::error::ApiError;
use crate::parameters::{Listed, Output, Page};
use crate::read::projection::{Generation, Version};
use crate::render::envelope::{ListMeta, Meta, Warning};
use crate::render::rows::{self, Object};

/// Inputs of a handler that renders a response.
#[derive(Debug)]
pub(crate) struct Context<P> {
    pub(crate) app: App,
    pub(crate) generation: Arc<Generation>,
    pub(crate) tier: Tier,
    /// Current day of the service.
    pub(crate) today: NaiveDate,
    pub(crate) parameters: P,
}

/// Rendered body and its data version.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) body: Bytes,
    pub(crate) version: Version,
    pub(crate) next_cursor: Option<String>,
}

impl<P> Context<P> {
    /// First day within the tier's history.
    pub(crate) fn floor(&self) -> NaiveDate {
        years_before(self.today, self.app.projection.tiers().depth_years(self.tier))
    }

    /// Renders one resource.
    pub(crate) fn single(
        &self,
        output: &Output,
        version: Version,
        row: &impl Object,
    ) -> Result<Rendered, ApiError> {
        self.warned(output, version, row, vec![])
    }

    /// Renders one resource with warnings.
    pub(crate) fn warned(
        &self,
        output: &Output,
        version: Version,
        row: &impl Object,
        warnings: Vec<Warning>,
    ) -> Result<Rendered, ApiError> {
        let meta = Meta { warnings, ..Meta::new(&version) };
        let body = rows::single(output, row, &meta)?;
        Ok(Rendered { body, version, next_cursor: None })
    }

    /// Renders a page of these rows; `finish` completes its meta.
    pub(crate) fn page<'a, T: Listed + Serialize + 'a>(
        &self,
        output: &Output,
        page: &Page,
        version: Version,
        rows: impl IntoIterator<Item = &'a T>,
        finish: impl FnOnce(&mut ListMeta),
    ) -> Result<Rendered, ApiError> {
        let (rows, next_cursor) = page.select(rows, &self.app.signer);
        let mut meta = ListMeta::new(&version, rows.len(), page.limit, next_cursor.clone());
        finish(&mut meta);
        Ok(Rendered { body: rows::list(output, &rows, &meta)?, version, next_cursor })
    }
}
