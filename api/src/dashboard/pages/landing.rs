//! `/`: landing page of the service.

use axum::response::Response;
use maud::{Markup, html};

use super::plans;
use crate::app::settings::SignUp;
use crate::dashboard::form::PageNotice;
use crate::dashboard::market::{encode, render_extract};
use crate::dashboard::view::layout::{Section, success_message};
use crate::dashboard::view::live_example::ApiExample;
use crate::dashboard::visitor::{Visitor, has_market_pages};

/// Cards that describe the data of the service, each with a title and a description.
const SERVED: [(&str, &str); 6] = [
    ("Dividends", "Every payment with its ex-date, record date, pay date and adjusted amount."),
    ("Calendars", "Ex-dates and payment dates in any range, by yield, amount and sector."),
    ("Metrics", "Yields, growth, payout ratios and streaks, each with the rule and the rows behind it."),
    ("Prices", "Daily bars, raw or adjusted, by day, week, month or year."),
    ("Screeners", "High yield, growth, aristocrats and kings, or filters of your own."),
    ("ETFs and bulk", "Holdings and weights; a thousand symbols in one call."),
];

pub(crate) async fn show_landing(visitor: Visitor) -> Response {
    let shown = visitor.example.latest_example().await;
    let has_market = has_market_pages(&visitor.app, visitor.viewer());
    let body = html! {
        (success_message(PageNotice::message_for_query(&visitor.query)))
        div.hero {
            div {
                p.eyebrow { "Dividend data over HTTP" }
                h1 { "Dividends, exact to the last digit" }
                p.lead {
                    "Stocks, ETFs, dividends, splits and prices as JSON or CSV. Decimals are exact, every figure has an \
                     explanation, and an earlier answer can be requested again."
                }
                p.actions { (entry(&visitor)) a.button.second href="/docs" { "Read the reference" } }
                @if has_market {
                    p { "Or look at the data first: " @if let Some(shown) = &shown { a href={ "/s/" (shown.symbol) } { (shown.symbol) } ", " } a href="/search" { "any security" } " or " a href="/income" { "your income" } "." }
                }
            }
            (example(&visitor, shown.as_deref()))
        }
        @if let Some(shown) = shown.as_ref().filter(|_| has_market) { (picture(shown)) }
        section aria-labelledby="served" {
            h2 id="served" { "What it serves" }
            ul.cards {
                @for (title, text) in SERVED { li.card { h3 { (title) } p { (text) } } }
            }
        }
        section aria-labelledby="plans" {
            h2 id="plans" { "Plans" }
            (plans::render_plan_table(&visitor.app.admission.tiers(), None))
            p { a href="/plans" { "Endpoints by plan" } }
        }
    };
    visitor.render_page("Dividends, exact to the last digit", Section::Other, &body)
}

/// Extract of the page of the example security, with live data.
fn picture(shown: &ApiExample) -> Markup {
    let name = shown.quote["name"].as_str().unwrap_or(&shown.symbol);
    html! {
        section.panel.picture aria-labelledby="picture" {
            div.heading { h2 id="picture" { (name) " " span.tag { (shown.symbol) } } a href={ "/s/" (encode(&shown.symbol)) } { "The whole page" } }
            (render_extract(&shown.quote, &shown.metrics))
        }
    }
}

fn entry(visitor: &Visitor) -> Markup {
    html! {
        @match (&visitor.signed, visitor.dashboard.settings.sign_up) {
            (Some(_), _) => a.button href="/dashboard" { "Open your dashboard" },
            (None, SignUp::Open) => a.button href="/sign-up" { "Get a free key" },
            (None, _) => a.button href="/sign-in" { "Sign in" },
        }
    }
}

fn example(visitor: &Visitor, shown: Option<&ApiExample>) -> Markup {
    let (origin, call) = (&visitor.site.origin, shown.map_or("/v1/stocks?limit=3", |shown| &shown.call));
    html! {
        figure.example {
            figcaption { @if shown.is_some() { "A live answer of this service" } @else { "A call" } }
            pre tabindex="0" aria-label="Call" { code { "curl " (origin) (call) " \\\n  -H 'Authorization: Bearer " span.muted { "your key" } "'" } }
            @match shown {
                Some(shown) => pre.answer tabindex="0" aria-label="Answer" { code { (shown.answer) } },
                None => p.note { "The live answer is missing: no data is loaded, or the database does not reply. See " a href="/status" { "the status" } "." },
            }
        }
    }
}
