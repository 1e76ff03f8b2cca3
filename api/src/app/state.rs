//! Application state shared by all requests.

use std::sync::Arc;

use chrono::{NaiveDate, Utc};

use crate::admission::Admission;
use crate::app::dashboard_state::Dashboard;
use crate::app::settings::ServeSettings;
use crate::auth::throttle::Throttle;
use crate::concurrency::fair_queue::FairQueue;
use crate::metrics::Metrics;
use crate::parameters::cursor::Signer;
use crate::parameters::facets::Vocabulary;
use crate::read::lag::Lag;
use crate::read::projection::Projection;
use crate::read::universe::Universes;
use crate::render::cache::Answers;

/// Shared state of the server.
#[derive(Debug)]
pub struct Shared {
    pub(crate) settings: ServeSettings,
    pub(crate) projection: Arc<Projection>,
    pub(crate) throttle: Throttle,
    pub(crate) admission: Admission,
    pub(crate) answers: Answers,
    pub(crate) fair_queue: Arc<FairQueue>,
    pub(crate) universes: Universes,
    pub(crate) signer: Signer,
    pub(crate) lag: Lag,
    /// `None` if the dashboard is disabled.
    pub(crate) dashboard: Option<Arc<Dashboard>>,
    pub(crate) metrics: Metrics,
}

/// Handle to the shared state.
#[derive(Debug, Clone)]
pub struct App(pub(crate) Arc<Shared>);

impl std::ops::Deref for App {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    /// Names for the filters. Empty while no generation is readable; the handler then reports the error.
    pub(crate) async fn vocabulary(&self) -> Arc<Vocabulary> {
        let Ok(generation) = self.projection.pin() else { return Arc::default() };
        self.universes.vocabulary(&generation).await.unwrap_or_default()
    }

    /// Current day of the service: the configured one, else the New York date.
    pub(crate) fn today(&self) -> NaiveDate {
        self.settings
            .service_date
            .unwrap_or_else(|| Utc::now().with_timezone(&chrono_tz::America::New_York).date_naive())
    }
}
