//! `/dashboard/plan`: current plan, change of plan and cancellation.

use axum::response::{IntoResponse, Redirect};
use chrono::Utc;
use maud::{Markup, html};

use crate::account::accounts::{self, AccountDetails};
use crate::account::subscription_changes;
use crate::app::dashboard_settings::Billing;
use crate::auth::tier::Tier;
use crate::dashboard::error::{PageError, PageResult};
use crate::dashboard::pages::plans::{self, plan_title};
use crate::dashboard::session::form::AuthenticatedForm;
use crate::dashboard::session::notice::PageNotice;
use crate::dashboard::session::visitor::AccountHolder;
use crate::dashboard::view::layout::{Section, format_day, success_message};

const PATH: &str = "/dashboard/plan";

pub(crate) async fn show_plan(holder: AccountHolder) -> PageResult {
    let account = accounts::find_account(&*holder.database_client().await?, holder.email()).await?;
    let tiers = holder.visitor.app.projection.tiers();
    let body = html! {
        h1 { "Plan" }
        (success_message(PageNotice::message_for_query(&holder.visitor.query)))
        (present(&holder, &account))
        section aria-labelledby="all" {
            h2 id="all" { "All plans" }
            (plans::render_plan_table(&tiers, Some(account.effective_tier)))
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
                _ if is_paid => p { "Holds until it is changed." },
                _ => p { "Free of charge." },
            }
            @if let Some(wanted) = account.wanted_tier {
                p.notice { "You asked for " strong { (plan_title(wanted)) } ". The operator decides; it holds from then on." }
            }
            @if is_paid && ending.is_none_or(|_| account.next_tier > Tier::Free) {
                form method="post" action="/dashboard/plan/cancel" {
                    (holder.csrf_field())
                    button.second type="submit" { @if mode == Billing::Off { "Ask to cancel the plan" } @else { "Cancel the plan" } }
                }
                p.hint {
                    @match mode {
                        Billing::SelfService => "It holds to the end of the paid month, then you are on Free.",
                        Billing::Off => "The operator sees that you asked, and ends it.",
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
                Billing::SelfService => "A higher plan holds from the next call; what you used of the minute and the month stays used. A lower one holds when the paid month ends.",
                Billing::Off => "Plans are changed by the operator of this service. They see that you asked.",
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
        Billing::SelfService => Some(format!("Go down to {name}")),
    }
}

/// Changes the plan. Without self-service billing, records a request to the operator instead.
pub(crate) async fn choose_tier(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let tier: Tier = form.text("tier").parse().map_err(PageError::Refused)?;
    if tier == Tier::Free {
        return Err(PageError::Refused("cancel the plan to go back to Free".to_owned()));
    }
    let mut client = holder.database_client().await?;
    let before = accounts::find_account(&client, holder.email()).await?.effective_tier;
    let notice = match holder.visitor.dashboard.settings.billing {
        Billing::SelfService => {
            subscription_changes::choose_tier(&mut client, holder.actor(), tier).await?;
            if tier < before { PageNotice::Downgraded } else { PageNotice::Upgraded }
        }
        Billing::Off => {
            subscription_changes::request_tier(&mut client, holder.actor(), tier).await?;
            PageNotice::Asked
        }
    };
    Ok(Redirect::to(&notice.add_to_path(PATH)).into_response())
}

/// Cancels the plan. Without self-service billing, records a request to the operator instead.
pub(crate) async fn cancel_subscription(AuthenticatedForm { holder, .. }: AuthenticatedForm) -> PageResult {
    let client = &mut *holder.database_client().await?;
    let notice = match holder.visitor.dashboard.settings.billing {
        Billing::SelfService => {
            subscription_changes::cancel_subscription(client, holder.actor(), None).await?;
            PageNotice::Cancelled
        }
        Billing::Off => {
            subscription_changes::request_tier(client, holder.actor(), Tier::Free).await?;
            PageNotice::Asked
        }
    };
    Ok(Redirect::to(&notice.add_to_path(PATH)).into_response())
}
