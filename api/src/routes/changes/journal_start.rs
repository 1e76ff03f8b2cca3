//! Place in the journal from which a client continues.

use chrono::{DateTime, Utc};
use serde_json::json;
use store::ids::JournalPosition;

use crate::error::ApiError;
use crate::parameters::{JournalPlace, ParameterError, SyncPoint};
use crate::read::{ServedGeneration, lookup};

const SINCE: &str = include_str!("../../../queries/changes/since.sql");

/// Place in the journal from which a client continues, and the journal position of the served data.
#[derive(Debug)]
pub(crate) struct JournalStart {
    /// Id of the journal, the first part of every synchronization point.
    pub(crate) journal: String,
    /// Place in the journal after the last change that the client has.
    pub(crate) place: JournalPlace,
    /// Journal position of the served data.
    pub(crate) now: JournalPosition,
}

impl JournalStart {
    /// Finds the place after `since`. Without `since`, finds the end of the journal. `parameter` is the parameter name
    /// in error messages.
    ///
    /// # Errors
    /// [`ApiError::Parameters`] if `since` belongs to another journal or is ahead of this journal, or if changes after
    /// `since` are no longer in this journal. [`ApiError::Unavailable`] if the served generation changed during the request.
    pub(crate) async fn find(
        generation: &ServedGeneration,
        since: Option<&SyncPoint>,
        parameter: &str,
    ) -> Result<Self, ApiError> {
        let instant = match since {
            Some(SyncPoint::Instant(instant)) => Some(*instant),
            Some(SyncPoint::Place { .. }) | None => None,
        };
        let rows = lookup::run_query(generation, SINCE, &[&instant]).await?;
        let row = lookup::first_row(generation, &rows)?;
        if !row.try_get::<_, bool>("served")? {
            return Err(ApiError::Unavailable("the served generation changed during the request".to_owned()));
        }
        let (journal, begins): (String, JournalPosition) = (row.try_get("journal")?, row.try_get("begins")?);
        let (begun_at, now): (DateTime<Utc>, JournalPosition) =
            (row.try_get("begun_at")?, row.try_get("position")?);
        let resync = |what: &str| resync_error(parameter, what, begun_at);
        let place = match since {
            None => JournalPlace::after_commit(now),
            Some(SyncPoint::Place { journal: named, .. }) if *named != journal => {
                return Err(resync("belongs to another database of the service"));
            }
            Some(SyncPoint::Place { place, .. }) => place.clone(),
            Some(SyncPoint::Instant(instant)) if *instant < begun_at => {
                return Err(resync("is before the first recorded change"));
            }
            Some(SyncPoint::Instant(_)) if row.try_get("is_future")? => {
                return Err(future_error(parameter));
            }
            Some(SyncPoint::Instant(_)) => {
                let before: Option<JournalPosition> = row.try_get("before")?;
                JournalPlace::after_commit(before.unwrap_or(begins))
            }
        };
        if place.completed_position() < begins {
            return Err(resync("is before the first recorded change"));
        }
        if place.position > now {
            return Err(resync("is after the last recorded change"));
        }
        Ok(Self { journal, place, now })
    }
}

fn future_error(parameter: &str) -> ApiError {
    let (param, error) = (parameter.to_owned(), "is in the future".to_owned());
    ApiError::Parameters(vec![ParameterError { param, error, allowed: None }])
}

/// Error 400 for a client that must download all data again.
fn resync_error(parameter: &str, what: &str, begun_at: DateTime<Utc>) -> ApiError {
    ApiError::Parameters(vec![ParameterError {
        param: parameter.to_owned(),
        error: format!("{what}: download everything again, and continue from the sync_from of that response"),
        allowed: Some(json!({ "minimum": begun_at })),
    }])
}
