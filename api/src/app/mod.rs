//! Application state shared by all requests, and the settings of `api serve`.

pub(crate) mod dashboard_settings;
pub(crate) mod login_throttle;
pub(crate) mod service_history;
pub mod settings;
pub(crate) mod site_address;
pub(crate) mod state;
mod traffic_recorder;
