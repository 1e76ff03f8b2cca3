//! Settings of the dashboard.

use clap::Args;
use market::text_enum;

use crate::app::site_address::PublicUrl;
use crate::auth::tier::Tier;

/// Maximum value of the rate settings, in market pages per minute. It equals one page per microsecond, the time unit of
/// the throttle.
const MAX_PAGES_PER_MINUTE: u64 = 60_000_000;

text_enum! {
    /// Setting that turns the dashboard on or off.
    pub enum DashboardSwitch { On = "on", Off = "off" }
}

text_enum! {
    /// Visitors who may create an account in the dashboard.
    pub enum SignUp {
        /// Any visitor can create an account, with any email address
        Open = "open",
        /// Only visitors with an invitation link from the operator can create an account
        Invited = "invited",
        /// Visitors cannot create an account
        Closed = "closed",
    }
}

text_enum! {
    /// Person who changes the plan of an account.
    pub enum Billing {
        /// The operator changes plans; account holders can request a change
        Off = "off",
        /// Account holders change their own plan, without a payment
        SelfService = "self_service",
    }
}

text_enum! {
    /// Persons who may read the market pages.
    pub enum MarketPages {
        /// The market pages are switched off
        Off = "off",
        /// Only account holders can read the market pages, with the history of their plan
        SignedIn = "signed_in",
        /// Any visitor can read the market pages, with or without an account
        Public = "public",
    }
}

/// Settings of the dashboard.
#[derive(Debug, Clone, Args)]
pub struct DashboardSettings {
    /// Account dashboard and landing page at /: on or off
    #[arg(long, env = "DASHBOARD", default_value = "on")]
    pub dashboard: DashboardSwitch,
    /// Postgres URL of the dashboard's role for the database with the accounts. Default: ACCOUNTS_DATABASE_URL, or
    /// DATABASE_URL, with the user dds_dashboard
    #[arg(long, env = "DASHBOARD_DATABASE_URL", hide_env_values = true)]
    pub dashboard_database_url: Option<String>,
    /// Sign-up in the dashboard: open (any visitor), invited (visitors with an invitation link, created by `api account
    /// invite`) or closed. With open sign-up, the service sends no mail and does not verify that the address belongs to
    /// the visitor
    #[arg(long, env = "SIGN_UP", default_value = "closed")]
    pub sign_up: SignUp,
    /// Plan changes: off (the operator changes plans on request) or self_service (account holders change plans, without
    /// a payment)
    #[arg(long, env = "BILLING", default_value = "off")]
    pub billing: Billing,
    /// Public address of the service, in the form https://host. Default: the host in the request's Host header, with
    /// https if a proxy in TRUSTED_PROXIES sends X-Forwarded-Proto: https
    #[arg(long, env = "PUBLIC_URL")]
    pub public_url: Option<PublicUrl>,
    /// Readers of the market pages (/s/{symbol}, /search, /income): off (none), signed_in (account holders) or public
    /// (anyone). The pages need no API key, and no account is charged for them
    #[arg(long, env = "PAGES", default_value = "off")]
    pub pages: MarketPages,
    /// Plan that sets the depth of history and the blocks of the market pages. Account holders with a higher plan have
    /// the pages of their plan
    #[arg(long, env = "PAGES_TIER", default_value = "free")]
    pub pages_tier: Tier,
    /// Limit per client address, in market pages per minute
    #[arg(long, env = "PAGES_PER_MINUTE", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=MAX_PAGES_PER_MINUTE))]
    pub pages_per_minute: u64,
    /// Burst of market pages per client address
    #[arg(long, env = "PAGES_BURST", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..=MAX_PAGES_PER_MINUTE))]
    pub pages_burst: u64,
    /// Postgres connections of the dashboard
    #[arg(long, env = "DASHBOARD_CONNECTIONS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub dashboard_connections: u32,
    /// Maximum number of password hashes computed at the same time for clients on known devices, and for all other
    /// clients. Each takes 19 MiB of memory and one processor
    #[arg(long, env = "PASSWORDS_AT_ONCE", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub passwords_at_once: u32,
}
