//! `/plans`: what the plans differ in, and how to take another. `upgrade_url` of refused calls leads here.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::error::PageError;
use super::layout::{self, Section, grouped};
use super::settings::Billing;
use super::visitor::Visitor;
use crate::account::accounts;
use crate::app::App;
use crate::tier::{Plan, Tier, Tiers};

/// The page where there is a dashboard.
pub(crate) async fn show(visitor: Visitor) -> Result<Response, PageError> {
    let tiers = visitor.app.projection.tiers();
    let current = match &visitor.signed {
        Some(signed) => {
            let client = visitor.dashboard.client().await?;
            Some(accounts::show(&client, &signed.session.email).await?.effective_tier)
        }
        None => None,
    };
    let how = html! {
        h2 { "Take another plan" }
        @match (current, visitor.dashboard.settings.billing) {
            (Some(_), _) => p { a.button href="/dashboard/plan" { "Change your plan" } },
            (None, _) => p { a.button href="/sign-in?next=%2Fdashboard%2Fplan" { "Sign in to change your plan" } },
        }
        @match visitor.dashboard.settings.billing {
            Billing::SelfService => p { "A higher plan holds from the next call. A lower one, or none, holds when the paid month ends." },
            Billing::Off => p { "The operator of this service changes plans. Signed in, you can ask for one." },
        }
    };
    Ok(visitor.page("Plans", Section::Other, &body(&tiers, current, &how)))
}

/// The page where there is none.
pub(crate) async fn show_alone(State(app): State<App>) -> Response {
    let how = html! {
        h2 { "Take another plan" }
        p {
            "Ask the operator of this service. The change holds from the next call, and what is used of the minute and the \
             month stays used. After a cancellation the paid plan holds until the end of its period."
        }
    };
    layout::page("Plans", None, Section::Other, &body(&app.projection.tiers(), None, &how)).into_response()
}

fn body(tiers: &Tiers, current: Option<Tier>, how: &Markup) -> Markup {
    html! {
        h1 { "Plans" }
        p.lead { "Every plan has the same data with the same digits. They differ in how much you may ask, and how far back." }
        (table(tiers, current))
        p {
            "Fundamentals and dividend history need Starter or higher, bulk endpoints Professional. Months are calendar \
             months, UTC."
        }
        (how)
    }
}

/// The plans side by side.
pub(crate) fn table(tiers: &Tiers, current: Option<Tier>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table of plans" {
            table {
                thead {
                    tr { th scope="col" { "Plan" } th.number scope="col" { "Calls a minute" } th.number scope="col" { "At once" } th.number scope="col" { "Calls a month" } th.number scope="col" { "History" } }
                }
                tbody {
                    @for plan in &tiers.0 {
                        tr {
                            th scope="row" { (title(plan.tier)) @if current == Some(plan.tier) { " " span.tag { "yours" } } }
                            td.number { (plan.rate_per_minute) }
                            td.number { (plan.burst) }
                            td.number { (grouped(plan.monthly_quota)) }
                            td.number { (years(plan)) }
                        }
                    }
                }
            }
        }
    }
}

fn years(plan: &Plan) -> String {
    layout::counted(plan.depth_years.into(), "year", "years")
}

/// A tier's name on a page.
pub(crate) fn title(tier: Tier) -> &'static str {
    match tier {
        Tier::Free => "Free",
        Tier::Starter => "Starter",
        Tier::Premium => "Premium",
        Tier::Professional => "Professional",
    }
}
