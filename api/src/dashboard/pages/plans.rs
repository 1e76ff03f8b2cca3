//! `/plans`: comparison of the plans. The `upgrade_url` in error responses is this page. `/dashboard/plan`: current plan,
//! change of plan and cancellation.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use maud::{Markup, html};

use crate::account::accounts::{self, AccountDetails};
use crate::app::App;
use crate::app::settings::Billing;
use crate::auth::{Tier, TierTable};
use crate::dashboard::error::{PageError, PageResult};
use crate::dashboard::form::{AuthenticatedForm, PageNotice};
use crate::dashboard::view::layout::{
    self, Number, Section, Text, Viewer, format_day, stacked_rows, success_message,
};
use crate::dashboard::view::{format_count, format_grouped};
use crate::dashboard::visitor::{AccountHolder, Visitor};

/// Features that the Free plan lacks: lowest plan with the feature, name, and API call.
const GATED: [(Tier, &str, &str); 10] = [
    (Tier::Starter, "Fundamentals", "/v1/stocks/{symbol}/fundamentals"),
    (Tier::Starter, "Dividend records of a security", "/v1/stocks/{symbol}/dividends"),
    (Tier::Starter, "Explained metrics", "/v1/stocks/{symbol}/metrics?explain=true"),
    (Tier::Professional, "Bulk quotes", "/v1/bulk/quotes"),
    (Tier::Professional, "Bulk metrics", "/v1/bulk/metrics"),
    (Tier::Professional, "Bulk dividends", "/v1/bulk/dividends"),
    (Tier::Professional, "Bulk prices", "/v1/bulk/prices"),
    (Tier::Professional, "Files of the whole market", "/v1/files"),
    (Tier::Professional, "Changed dividends of the market", "/v1/dividends/history?updated_since=…"),
    (Tier::Professional, "Change stream of the market", "/v1/changes without symbols"),
];

/// Shows the page if the dashboard is switched on.
pub(crate) async fn show_plans(visitor: Visitor) -> Response {
    let tiers = visitor.app.admission.tiers();
    let current = visitor.tier().await;
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
    let body = body(&app.admission.tiers(), None, &how);
    layout::render_page("Plans", Viewer::Reader, Section::Other, false, &body).into_response()
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
            (stacked_rows("Table of endpoints that need a paid plan", &GATED, &[
                (Text("Feature"), &|(_, feature, _)| html! { (feature) }),
                (Text("Call"), &|(.., call)| html! { code { (call) } }),
                (Text("Plan"), &|(tier, ..)| and_higher(*tier)),
            ]))
            p.hint { "Every other endpoint of the " a href="/docs" { "reference" } " is in every plan." }
        }
        (how)
    }
}

/// Table of plans. The plan `current` is marked as the visitor's plan.
pub(crate) fn render_plan_table(tiers: &TierTable, current: Option<Tier>) -> Markup {
    html! {
        (stacked_rows("Table of plans", &tiers.0, &[
            (Text("Plan"), &|plan| html! { (plan_title(plan.tier)) @if current == Some(plan.tier) { " " span.tag { "yours" } } }),
            (Number("Calls a minute"), &|plan| html! { (plan.rate_per_minute) }),
            (Number("Burst"), &|plan| html! { (plan.burst) }),
            (Number("Calls a month"), &|plan| html! { (format_grouped(plan.monthly_quota)) }),
            (Number("History"), &|plan| html! { (format_count(plan.depth_years, "year", "years")) }),
            (Text("Endpoints"), &|plan| html! { (endpoints(plan.tier)) }),
            (Text("Bulk"), &|plan| html! { @if plan.tier == Tier::Professional { "yes" } @else { "no" } }),
        ]))
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

/// Display name of a tier.
pub(crate) fn plan_title(tier: Tier) -> &'static str {
    match tier {
        Tier::Free => "Free",
        Tier::Starter => "Starter",
        Tier::Premium => "Premium",
        Tier::Professional => "Professional",
    }
}

const PATH: &str = "/dashboard/plan";

pub(crate) async fn show_plan(holder: AccountHolder) -> PageResult {
    let account = accounts::find_account(&*holder.database_client().await?, holder.email()).await?;
    let tiers = holder.visitor.app.admission.tiers();
    let body = html! {
        h1 { "Plan" }
        (success_message(PageNotice::message_for_query(&holder.visitor.query)))
        (present(&holder, &account))
        section aria-labelledby="all" {
            h2 id="all" { "All plans" }
            (render_plan_table(&tiers, Some(account.effective_tier)))
            (choices(&holder, &account))
        }
    };
    Ok(holder.render_page("Plan", Section::Plan, &body))
}

fn present(holder: &AccountHolder, account: &AccountDetails) -> Markup {
    let ending = account.paid_until.filter(|end| *end > Utc::now());
    let is_paid = account.effective_tier > Tier::Free;
    let mode = holder.visitor.dashboard.settings.billing;
    html! {
        section.panel aria-labelledby="present" {
            h2 id="present" { (plan_title(account.effective_tier)) }
            @match (ending, account.period_end) {
                (Some(end), _) => p { "Paid until " strong { (format_day(end)) } ", then " (plan_title(account.next_tier)) "." },
                (None, Some(end)) if is_paid => p { "The paid month ends on " (format_day(end)) " and another begins." },
                _ if is_paid => p { "This plan applies until it is changed." },
                _ => p { "Free of charge." },
            }
            @if let Some(wanted) = account.wanted_tier {
                p.notice { "You asked for " strong { (plan_title(wanted)) } ". The plan changes when the operator agrees." }
            }
            @if is_paid && ending.is_none_or(|_| account.next_tier > Tier::Free) {
                form method="post" action="/dashboard/plan/cancel" {
                    (holder.csrf_field())
                    button.second type="submit" { @if mode == Billing::Off { "Ask to cancel the plan" } @else { "Cancel the plan" } }
                }
                p.hint {
                    @match mode {
                        Billing::SelfService => "The plan applies until the end of the paid month. Afterwards, the plan Free applies.",
                        Billing::Off => "The operator sees your request, and ends the plan.",
                    }
                }
            }
        }
    }
}

/// Form with a button for each selectable plan.
fn choices(holder: &AccountHolder, account: &AccountDetails) -> Markup {
    let (mode, now) = (holder.visitor.dashboard.settings.billing, account.effective_tier);
    let ending = account.paid_until.is_some_and(|end| end > Utc::now());
    html! {
        form.row method="post" action=(PATH) {
            (holder.csrf_field())
            @for tier in Tier::ALL.iter().copied().filter(|tier| *tier > Tier::Free) {
                @if let Some(words) = choice(mode, tier, now, ending) {
                    button.second[tier < now] type="submit" name="tier" value=(tier) { (words) }
                }
            }
        }
        p.hint {
            @match mode {
                Billing::SelfService => "A higher plan applies from the next call, and the calls used this minute and this month still count. A lower plan applies after the paid month.",
                Billing::Off => "The operator of this service changes plans, and sees your request.",
            }
        }
    }
}

fn choice(mode: Billing, tier: Tier, now: Tier, ending: bool) -> Option<String> {
    let name = plan_title(tier);
    match mode {
        Billing::Off if tier == now => None,
        Billing::Off => Some(format!("Ask for {name}")),
        Billing::SelfService if tier > now => Some(format!("Upgrade to {name}")),
        Billing::SelfService if tier == now => ending.then(|| format!("Keep {name}")),
        Billing::SelfService => Some(format!("Downgrade to {name}")),
    }
}

/// Changes the plan if self-service billing is on. If it is off, only records that the holder requests this plan from
/// the operator.
pub(crate) async fn choose_tier(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let tier: Tier = form.text("tier").parse().map_err(PageError::Refused)?;
    if tier == Tier::Free {
        return Err(PageError::Refused("cancel the plan to go back to Free".to_owned()));
    }
    let mut client = holder.database_client().await?;
    let before = accounts::find_account(&client, holder.email()).await?.effective_tier;
    let notice = match holder.visitor.dashboard.settings.billing {
        Billing::SelfService => {
            accounts::choose_tier(&mut client, holder.actor(), tier).await?;
            if tier < before { PageNotice::Downgraded } else { PageNotice::Upgraded }
        }
        Billing::Off => {
            accounts::request_tier(&mut client, holder.actor(), tier).await?;
            PageNotice::Asked
        }
    };
    Ok(Redirect::to(&notice.add_to_path(PATH)).into_response())
}

/// Cancels the plan if self-service billing is on. If it is off, only records that the holder requests the cancellation
/// from the operator.
pub(crate) async fn cancel_subscription(AuthenticatedForm { holder, .. }: AuthenticatedForm) -> PageResult {
    let client = &mut *holder.database_client().await?;
    let notice = match holder.visitor.dashboard.settings.billing {
        Billing::SelfService => {
            accounts::cancel_subscription(client, holder.actor(), None).await?;
            PageNotice::Cancelled
        }
        Billing::Off => {
            accounts::request_tier(client, holder.actor(), Tier::Free).await?;
            PageNotice::Asked
        }
    };
    Ok(Redirect::to(&notice.add_to_path(PATH)).into_response())
}
