//! Table of data in a region that scrolls on narrow screens.

pub(crate) use Heading::{Number, Text};
use maud::{Markup, html};

/// Heading of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heading<'a> {
    Text(&'a str),
    /// Heading of a column of numbers, which are aligned to the right.
    Number(&'a str),
}

/// Renders a table with the given name. The rows are `tr` elements.
pub(crate) fn data_table(name: &str, headings: &[Heading<'_>], rows: Markup) -> Markup {
    render(name, html! { table { (head(headings)) tbody { (rows) } } })
}

/// Renders a table whose cells are stacked on narrow screens. Each cell needs its heading as `data-label`.
pub(crate) fn stacked_table(name: &str, headings: &[Heading<'_>], rows: Markup) -> Markup {
    render(name, html! { table.stack { (head(headings)) tbody { (rows) } } })
}

fn render(name: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(name) { (table) } }
}

fn head(headings: &[Heading<'_>]) -> Markup {
    html! {
        thead {
            tr {
                @for heading in headings {
                    @match heading {
                        Text(title) => th scope="col" { (title) },
                        Number(title) => th.number scope="col" { (title) },
                    }
                }
            }
        }
    }
}
