//! `/plans`: comparison of the plans. The `upgrade_url` in error responses is this page.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::account::accounts;
use crate::app::dashboard_settings::Billing;
use crate::app::state::App;
use crate::auth::tier::{Tier, TierLimits, TierTable};
use crate::dashboard::error::PageError;
use crate::dashboard::page_deadline::{VISITOR_LOOKUP_LIMIT, run_within};
use crate::dashboard::session::visitor::Visitor;
use crate::dashboard::view::layout::{self, Section, Viewer, format_grouped};
use crate::dashboard::view::table::{Number, Text, stacked_table};

/// Features that the Free plan lacks: lowest plan with the feature, name, and API call.
const GATED: [(Tier, &str, &str); 9] = [
    (Tier::Starter, "Fundamentals", "/v1/stocks/{symbol}/fundamentals"),
    (Tier::Starter, "Dividend records of a security", "/v1/stocks/{symbol}/dividends"),
    (Tier::Starter, "Explained metrics", "/v1/stocks/{symbol}/metrics?explain=true"),
    (Tier::Professional, "Bulk quotes", "/v1/bulk/quotes"),
    (Tier::Professional, "Bulk metrics", "/v1/bulk/metrics"),
    (Tier::Professional, "Bulk dividends", "/v1/bulk/dividends"),
    (Tier::Professional, "Bulk prices", "/v1/bulk/prices"),
    (Tier::Professional, "Changed dividends of the market", "/v1/dividends/history?updated_since=…"),
    (Tier::Professional, "Change stream of the market", "/v1/changes without symbols"),
];

/// Shows the page if the dashboard is switched on.
pub(crate) async fn show_plans(visitor: Visitor) -> Response {
    let tiers = visitor.app.projection.tiers();
    let current = match &visitor.signed {
        Some(signed) => {
            let show = async {
                let client = visitor.dashboard.database_client().await?;
                Ok::<_, PageError>(
                    accounts::find_account(&client, &signed.session.email).await?.effective_tier,
                )
            };
            run_within(VISITOR_LOOKUP_LIMIT, show).await.ok()
        }
        None => None,
    };
    let how = html! {
        h2 { "Take another plan" }
        @match (&visitor.signed, visitor.dashboard.settings.billing) {
            (Some(_), _) => p { a.button href="/dashboard/plan" { "Change your plan" } },
            (None, _) => p { a.button href="/sign-in?next=%2Fdashboard%2Fplan" { "Sign in to change your plan" } },
        }
        @match visitor.dashboard.settings.billing {
            Billing::SelfService => p { "A higher plan applies from the next call. A lower plan or a cancellation applies after the paid month." },
            Billing::Off => p { "The operator of this service changes plans. Account holders can ask for a plan after signing in." },
        }
    };
    visitor.render_page("Plans", Section::Other, &body(&tiers, current, &how))
}

/// Shows the page if the dashboard is switched off.
pub(crate) async fn show_plans_without_dashboard(State(app): State<App>) -> Response {
    let how = html! {
        h2 { "Take another plan" }
        p {
            "Ask the operator of this service. The change applies from the next call, and the calls used this minute and this \
             month still count. After a cancellation, the paid plan applies until the end of its period."
        }
    };
    layout::render_page("Plans", Viewer::Reader, Section::Other, &body(&app.projection.tiers(), None, &how))
        .into_response()
}

fn body(tiers: &TierTable, current: Option<Tier>, how: &Markup) -> Markup {
    html! {
        h1 { "Plans" }
        p.lead { "Plans differ in rate, monthly calls, depth of history and endpoints. Values have the same digits in every plan." }
        (render_plan_table(tiers, current))
        ul.hint {
            li { "Burst: calls that may come at once after a pause. Afterwards the rate per minute applies." }
            li { "Months are calendar months, UTC. A bulk call counts as one call." }
            li { "History: how far back a requested day may be." }
        }
        section aria-labelledby="gated" {
            h2 id="gated" { "Endpoints that need a paid plan" }
            (stacked_table("Table of endpoints that need a paid plan", &[Text("Feature"), Text("Call"), Text("Plan")], html! {
                @for (tier, feature, call) in GATED {
                    tr { th scope="row" { (feature) } td data-label="Call" { code { (call) } } td data-label="Plan" { (and_higher(tier)) } }
                }
            }))
            p.hint { "Every other endpoint of the " a href="/docs" { "reference" } " is in every plan." }
        }
        (how)
    }
}

/// Table of plans. The plan `current` is marked as the visitor's plan.
pub(crate) fn render_plan_table(tiers: &TierTable, current: Option<Tier>) -> Markup {
    html! {
        (stacked_table("Table of plans", &[Text("Plan"), Number("Calls a minute"), Number("Burst"), Number("Calls a month"), Number("History"), Text("Endpoints"), Text("Bulk")], html! {
            @for plan in &tiers.0 {
                tr {
                    th scope="row" { (plan_title(plan.tier)) @if current == Some(plan.tier) { " " span.tag { "yours" } } }
                    td.number data-label="Calls a minute" { (plan.rate_per_minute) }
                    td.number data-label="Burst" { (plan.burst) }
                    td.number data-label="Calls a month" { (format_grouped(plan.monthly_quota)) }
                    td.number data-label="History" { (years(plan)) }
                    td data-label="Endpoints" { (endpoints(plan.tier)) }
                    td data-label="Bulk" { @if plan.tier == Tier::Professional { "yes" } @else { "no" } }
                }
            }
        }))
    }
}

/// Describes the endpoints that a plan includes.
fn endpoints(tier: Tier) -> &'static str {
    match tier {
        Tier::Free => {
            "Quotes, metrics, calendars, dividend history, screeners, ETFs, prices, search, sectors"
        }
        Tier::Starter => "also fundamentals, dividend records, explained metrics",
        Tier::Premium => "as Starter",
        Tier::Professional => "all",
    }
}

fn and_higher(tier: Tier) -> Markup {
    html! { (plan_title(tier)) @if tier < Tier::Professional { " or higher" } }
}

fn years(plan: &TierLimits) -> String {
    layout::format_count(plan.depth_years.into(), "year", "years")
}

/// Display name of a tier.
pub(crate) fn plan_title(tier: Tier) -> &'static str {
    match tier {
        Tier::Free => "Free",
        Tier::Starter => "Starter",
        Tier::Premium => "Premium",
        Tier::Professional => "Professional",
    }
}
