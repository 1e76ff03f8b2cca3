//! Settings of the dashboard.

use clap::Args;
use market::text_enum;

use crate::app::site_address::PublicUrl;

text_enum! {
    /// Whether something is there.
    pub enum DashboardSwitch { On = "on", Off = "off" }
}

text_enum! {
    /// Who may sign up.
    pub enum SignUp {
        /// Everybody
        Open = "open",
        /// Whoever has a link of the operator's
        Invited = "invited",
        /// Nobody
        Closed = "closed",
    }
}

text_enum! {
    /// Who changes plans.
    pub enum Billing {
        /// The operator; holders can ask
        Off = "off",
        /// Holders, without a payment
        SelfService = "self_service",
    }
}

/// Settings of the dashboard.
#[derive(Debug, Clone, Args)]
pub struct DashboardSettings {
    /// The account dashboard and the landing page at /: on or off
    #[arg(long, env = "DASHBOARD", default_value = "on")]
    pub dashboard: DashboardSwitch,
    /// Postgres of the dashboard's role; without it DATABASE_URL with the user dds_dashboard
    #[arg(long, env = "DASHBOARD_DATABASE_URL", hide_env_values = true)]
    pub dashboard_database_url: Option<String>,
    /// Who may sign up in the dashboard: open (everybody), invited (whoever has a link of `api account invite`) or
    /// closed (nobody)
    #[arg(long, env = "SIGN_UP", default_value = "closed")]
    pub sign_up: SignUp,
    /// Who changes plans: off (the operator; holders can ask) or self_service (holders, without a payment)
    #[arg(long, env = "BILLING", default_value = "off")]
    pub billing: Billing,
    /// Address at which people reach the service, https://host; without it what a proxy of TRUSTED_PROXIES says in
    /// X-Forwarded-Proto
    #[arg(long, env = "PUBLIC_URL")]
    pub public_url: Option<PublicUrl>,
    /// Connections to Postgres for the dashboard
    #[arg(long, env = "DASHBOARD_CONNECTIONS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub dashboard_connections: u32,
    /// Passwords that are hashed at once, each 19 MiB and one processor
    #[arg(long, env = "PASSWORDS_AT_ONCE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub passwords_at_once: u32,
}
