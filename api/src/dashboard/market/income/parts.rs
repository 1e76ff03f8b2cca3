//! Elements of both income pages: heading, entry fields, gaps, and the form that saves what a reader entered.

use chrono::NaiveDate;
use maud::{Markup, html};
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

use crate::dashboard::market::block::{Choice, render_choices};
use crate::dashboard::market::reader::{MarketReader, PageContent};
use crate::dashboard::market::values::str_of;
use crate::dashboard::view::format_count;
use crate::dashboard::view::layout::{Section, to_sentence};

pub(super) const TITLE: &str = "My income";

/// Path of the page for purchases and sales.
pub(crate) const TRANSACTIONS_PATH: &str = "/income/transactions";

pub(super) fn content(body: Markup) -> PageContent {
    PageContent {
        title: TITLE.to_owned(),
        description: "Dividend income of your holdings over twelve months, confirmed and estimated."
            .to_owned(),
        canonical: "/income".to_owned(),
        section: Section::Income,
        body,
    }
}

/// Renders the title, and the links to the two forms.
pub(super) fn heading(has_transactions: bool) -> Markup {
    let forms = [("What I own", "/income", false), ("What I bought and sold", TRANSACTIONS_PATH, true)];
    let forms = forms
        .map(|(title, path, its)| Choice::of_every_plan(title, path.to_owned(), its == has_transactions));
    html! { h1 { (TITLE) } (render_choices("Kind of entry", &forms)) }
}

/// Renders the fields of a form with pasted lines or a file.
pub(super) fn entry_fields(label: &str, placeholder: &str, hint: Markup, entered: &str) -> Markup {
    html! {
        label for="text" { (label) }
        // A browser removes the first line break of a text area.
        textarea id="text" name="text" rows="8" spellcheck="false" placeholder=(placeholder) aria-describedby="shape" { "\n" (entered) }
        p.hint id="shape" { (hint) }
        label for="file" { "File, instead of the lines above" }
        input id="file" type="file" name="file" accept=".csv,.txt,.tsv,text/csv,text/plain";
    }
}

/// Renders the form with which an account holder saves `text`. Other readers get a hint.
pub(super) fn save_form(reader: &MarketReader, field: &str, text: &str) -> Markup {
    html! {
        @match reader.csrf_field() {
            Some(csrf_field) => {
                form.fields method="post" action="/dashboard/portfolios" {
                    (csrf_field)
                    input type="hidden" name=(field) value=(text);
                    div.field { label for="name" { "Save to your account as" } input id="name" name="name" required maxlength="64" autocomplete="off"; }
                    p.actions { button.small type="submit" { "Save" } }
                }
                p.hint { "Nothing is stored before you save. Calendar programs and spreadsheets can follow the addresses of a saved portfolio." }
            },
            None if reader.app.dashboard.is_some() => p.hint { "With an account you can save the " (field) ", and follow their income in a calendar or a spreadsheet." },
            None => {},
        }
    }
}

/// Reason codes in the field `gaps` of the API, each with the sentence for the page. The page prints the symbol before
/// the sentence.
const REASONS: [(&str, &str); 7] = [
    ("unknown_symbol", "is not a known symbol."),
    ("dividends_unknown", "has no source of dividends, so its income is unknown."),
    ("not_estimated", "pays dividends, but none is declared and no pattern supports an estimate."),
    ("no_payment_date", "has a declared dividend that is in no month, because it has no payment date."),
    ("delisted", "no longer trades."),
    ("no_price", "has no price, so it has no value and no yield."),
    ("currency_mismatch", "pays in another currency than its price, so it has no yield."),
];

/// Renders the reasons why payments are missing, and further sentences about missing payments.
pub(super) fn render_gaps(gaps: &[Value], warnings: &[&str]) -> Markup {
    html! {
        @if !(gaps.is_empty() && warnings.is_empty()) {
            section.notice aria-labelledby="gaps" {
                h2 id="gaps" { "What is missing" }
                ul {
                    @for gap in gaps { li { strong { (str_of(&gap["symbol"])) } " " (reason(str_of(&gap["reason"]))) } }
                    @for warning in warnings { li { (to_sentence(warning)) } }
                }
            }
        }
    }
}

fn reason(word: &str) -> &str {
    REASONS.iter().find(|(known, _)| *known == word).map_or(word, |(_, sentence)| sentence)
}

pub(super) fn round_to_cents(amount: Decimal) -> Decimal {
    amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero)
}

/// Numbers of amounts that the sums in the chosen currency leave out.
pub(super) fn unconverted(converted: &Value, currency: &Value) -> Markup {
    let count = |field: &str, one, many| {
        let count = converted[field].as_i64().filter(|count| *count > 0)?;
        Some(format_count(count, one, many))
    };
    let counts = [
        count("unconverted", "payment", "payments"),
        count("unconverted_values", "value of a holding", "values of holdings"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    html! {
        @if !counts.is_empty() { p.notice { "The sums leave out " (counts.join(" and ")) ", because no exchange rate to " (str_of(currency)) " is known." } }
    }
}

pub(super) fn month_name(value: &Value, format: &str) -> String {
    str_of(value).parse::<NaiveDate>().map(|day| day.format(format).to_string()).unwrap_or_default()
}
