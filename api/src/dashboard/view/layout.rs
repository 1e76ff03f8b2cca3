//! Layout of every page, and shared page elements.

use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{Markup, PreEscaped, html};

use crate::dashboard::session_cookie;
pub(crate) use Heading::{Number, Text, Words};

/// Person who views a page.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Viewer<'a> {
    /// Signed-in holder of an account.
    Holder(SignedInHolder<'a>),
    /// Visitor who is not signed in.
    Visitor,
    /// Person who cannot sign in, because the dashboard is switched off.
    Reader,
}

/// Signed-in holder of an account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignedInHolder<'a> {
    pub(crate) email: &'a str,
    /// Secret in the session cookie. The CSRF tokens of forms are derived from it.
    pub(crate) secret: &'a str,
}

/// Section of the site to which a page belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Keys,
    Portfolios,
    Usage,
    Plan,
    Account,
    Log,
    Security,
    Search,
    Calendar,
    Screener,
    Sectors,
    Income,
    Quality,
    Other,
}

/// Menu of the market pages: section, path and title.
const MARKET: [(Section, &str, &str); 5] = [
    (Section::Screener, "/screener", "Screener"),
    (Section::Sectors, "/sectors", "Sectors"),
    (Section::Calendar, "/calendar", "Calendar"),
    (Section::Income, "/income", "My income"),
    (Section::Quality, "/quality", "Quality"),
];

/// Menu of a signed-in holder: section, path and title.
const MENU: [(Section, &str, &str); 7] = [
    (Section::Overview, "/dashboard", "Overview"),
    (Section::Keys, "/dashboard/keys", "Keys"),
    (Section::Portfolios, "/dashboard/portfolios", "Portfolios"),
    (Section::Usage, "/dashboard/usage", "Usage"),
    (Section::Plan, "/dashboard/plan", "Plan"),
    (Section::Account, "/dashboard/account", "Account"),
    (Section::Log, "/dashboard/log", "Log"),
];

/// Complete page: title, viewer, section of the site, and content.
#[derive(Debug)]
pub(crate) struct PageLayout<'a> {
    pub(crate) title: &'a str,
    pub(crate) viewer: Viewer<'a>,
    pub(crate) section: Section,
    /// True if the viewer may open the market pages. The page then has the search form, and links to the market pages.
    pub(crate) has_market: bool,
    /// Description of the page for search engines and link previews; `None` if search engines should not list it.
    pub(crate) preview: Option<Preview<'a>>,
    pub(crate) body: &'a Markup,
}

/// Description of a page for search engines and link previews.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preview<'a> {
    pub(crate) description: &'a str,
    /// Canonical URL of the page. It contains a query parameter only if the parameter selects the subject of the page,
    /// for example a sector.
    pub(crate) canonical: &'a str,
    /// Scheme and host of the site.
    pub(crate) origin: &'a str,
}

/// Renders a page that search engines should not list.
pub(crate) fn render_page(
    title: &str,
    viewer: Viewer<'_>,
    section: Section,
    has_market: bool,
    body: &Markup,
) -> Html<String> {
    render_layout(&PageLayout { title, viewer, section, has_market, preview: None, body })
}

/// Renders a complete page.
pub(crate) fn render_layout(layout: &PageLayout<'_>) -> Html<String> {
    let PageLayout { title, viewer, section, has_market, preview, body } = *layout;
    let page = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Dividend Data Service" }
                link rel="icon" sizes="32x32" href="/favicon.ico";
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/style.css";
                @if let Some(preview) = preview { (head_of(title, preview)) }
                script src="/assets/script.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    div.bar {
                        a.brand href="/" aria-label="Dividend Data" { (mark()) span { "Dividend Data" } }
                        @if has_market { (search_form("Securities", "")) }
                        (links(viewer))
                    }
                    @if has_market { (menu("Market", &MARKET, section)) }
                    @if matches!(viewer, Viewer::Holder(_)) && !is_of_market(section) { (menu("Dashboard", &MENU, section)) }
                }
                main id="main" { (body) }
                footer {
                    div.bar {
                        span { "Dividend Data Service" }
                        nav aria-label="Service" {
                            @if has_market { @for (_, path, title) in MARKET { a href=(path) { (title) } } }
                            a href="/plans" { "Plans" }
                            a href="/docs" { "Reference" }
                            a href="/methods" { "Methods" }
                            a href="/versions" { "Versions" }
                            a href="/openapi.json" { "OpenAPI" }
                            a href="/status" { "Status" }
                        }
                    }
                }
            }
        }
    };
    Html(page.into_string())
}

fn is_of_market(section: Section) -> bool {
    matches!(section, Section::Security | Section::Search) || MARKET.iter().any(|(its, ..)| *its == section)
}

fn links(viewer: Viewer<'_>) -> Markup {
    html! {
        nav.links aria-label="Site" {
            a.more href="/plans" { "Plans" }
            a.more href="/docs" { "Reference" }
            @match viewer {
                Viewer::Holder(name) => {
                    a.who href="/dashboard" title=(name.email) { span.on-wide { (name.email) } span.on-phone { "Dashboard" } }
                    form method="post" action="/sign-out" {
                        (csrf_field(name.secret))
                        button.quiet type="submit" { "Sign out" }
                    }
                },
                Viewer::Visitor => {
                    a href="/sign-in" { "Sign in" }
                    a.button.small href="/sign-up" { "Sign up" }
                },
                Viewer::Reader => {},
            }
        }
    }
}

fn menu(label: &str, entries: &[(Section, &str, &str)], section: Section) -> Markup {
    html! {
        nav.menu aria-label=(label) {
            @for (its, path, title) in entries {
                a href=(path) aria-current=[(*its == section).then_some("page")] { (title) }
            }
        }
    }
}

/// Search form. The slash key moves the focus to the field of the first form of a page. `label` names the form, and
/// `text` is the text in the field.
pub(crate) fn search_form(label: &str, text: &str) -> Markup {
    html! {
        form.search role="search" aria-label=(label) action="/search" method="get" {
            input type="search" name="q" maxlength="64" required aria-label="Symbol or name" placeholder="Symbol or name" aria-keyshortcuts="/" value=(text);
            button.small.second type="submit" { "Search" }
        }
    }
}

/// Head elements for search engines and link previews.
fn head_of(title: &str, preview: Preview<'_>) -> Markup {
    html! {
        meta name="description" content=(preview.description);
        link rel="canonical" href=(preview.canonical);
        meta property="og:type" content="website";
        meta property="og:site_name" content="Dividend Data Service";
        meta property="og:title" content=(title);
        meta property="og:description" content=(preview.description);
        meta property="og:url" content=(preview.canonical);
        meta property="og:image" content={ (preview.origin) "/assets/preview.png" };
        meta name="twitter:card" content="summary_large_image";
    }
}

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" {
            rect x="3" y="12" width="4" height="9" rx="1" {}
            rect x="10" y="8" width="4" height="13" rx="1" {}
            rect x="17" y="3" width="4" height="18" rx="1" {}
        }
    }
}

/// Hidden CSRF field of a form.
pub(crate) fn csrf_field(secret: &str) -> Markup {
    html! { input type="hidden" name="token" value=(session_cookie::create_csrf_token(secret)); }
}

/// Error message, which screen readers announce at once.
pub(crate) fn error_message(message: Option<&str>) -> Markup {
    html! { @if let Some(message) = message { p.alert role="alert" { (message) } } }
}

/// Success message.
pub(crate) fn success_message(message: Option<&str>) -> Markup {
    html! { @if let Some(message) = message { p.done role="status" { (message) } } }
}

/// Formats a date and time, in UTC.
pub(crate) fn format_time(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (at.format("%-d %b %Y, %H:%M")) " UTC" } }
}

/// Formats the day of a time, in UTC.
pub(crate) fn format_day(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (at.format("%-d %B %Y")) } }
}

/// Converts an error message to a sentence: upper case at the start, and a final period.
pub(crate) fn to_sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let rest = letters.as_str();
    let end = if rest.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{rest}{end}")
}

/// Heading of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heading<'a> {
    Text(&'a str),
    /// Heading of a column of sentences, whose lines are broken.
    Words(&'a str),
    /// Heading of a column of numbers, which are aligned to the right.
    Number(&'a str),
}

/// Renders a table with the given name. The rows are `tr` elements.
pub(crate) fn data_table(name: &str, headings: &[Heading<'_>], rows: Markup) -> Markup {
    scrolling_region(name, html! { table { (table_head(headings)) tbody { (rows) } } })
}

/// Renders a table whose cells are stacked on narrow screens. Each cell needs its heading as `data-label`.
pub(crate) fn stacked_table(name: &str, headings: &[Heading<'_>], rows: Markup) -> Markup {
    scrolling_region(name, html! { table.stack { (table_head(headings)) tbody { (rows) } } })
}

/// Column of a table: its heading, and the content of its cell in a row.
pub(crate) type Column<'a, T> = (Heading<'a>, &'a dyn Fn(&T) -> Markup);

/// Renders a table like [`stacked_table`], with a cell for each row and column. The first cell of a row names the row.
pub(crate) fn stacked_rows<'r, T: 'r>(
    name: &str,
    rows: impl IntoIterator<Item = &'r T>,
    columns: &[Column<'_, T>],
) -> Markup {
    let headings: Vec<Heading<'_>> = columns.iter().map(|(heading, _)| *heading).collect();
    let cells =
        |row| columns.iter().enumerate().map(move |(place, (heading, cell))| (place, heading, cell(row)));
    let rows = html! {
        @for row in rows {
            tr {
                @for (place, heading, content) in cells(row) {
                    @match heading {
                        _ if place == 0 => th scope="row" { (content) },
                        Text(title) => td data-label=(title) { (content) },
                        Words(title) => td.words data-label=(title) { (content) },
                        Number(title) => td.number data-label=(title) { (content) },
                    }
                }
            }
        }
    };
    stacked_table(name, &headings, rows)
}

/// Renders a list with one line a row, or two on narrow screens. `head` has the header cells. A row begins with a cell of
/// class `name`, which takes the space that the other cells leave. On narrow screens, a cell of class `key` is on the
/// first line, and cells of class `minor` are hidden.
pub(crate) fn list_table(name: &str, head: &Markup, rows: Markup) -> Markup {
    scrolling_region(name, html! { table.stack.wide { thead { tr { (head) } } tbody { (rows) } } })
}

fn scrolling_region(name: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(name) { (table) } }
}

fn table_head(headings: &[Heading<'_>]) -> Markup {
    html! {
        thead {
            tr {
                @for heading in headings {
                    @match heading {
                        Text(title) | Words(title) => th scope="col" { (title) },
                        Number(title) => th.number scope="col" { (title) },
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_become_sentences() {
        assert_eq!(to_sentence("account a@b.c does not exist"), "Account a@b.c does not exist.");
        assert_eq!(to_sentence("Why?"), "Why?");
    }
}
