//! Conversion of the OpenAPI document's Markdown to HTML: paragraphs, code, emphasis, and links within the site.

use maud::{Markup, html};

pub(crate) fn render_paragraphs(text: &str) -> Markup {
    html! { @for paragraph in text.split("\n\n").filter(|text| !text.trim().is_empty()) { p { (render_inline(paragraph)) } } }
}

/// Renders the inline content of a paragraph.
pub(crate) fn render_inline(text: &str) -> Markup {
    let Some((at, mark)) = first_mark(text) else { return html! { (text) } };
    let (before, rest) = text.split_at(at);
    let inner = &rest[mark.len()..];
    let found = match mark {
        "[" => link(inner),
        _ => inner.split_once(mark).map(|(content, after)| {
            let shown = if mark == "`" {
                html! { code { (content) } }
            } else {
                html! { strong { (render_inline(content)) } }
            };
            (shown, after)
        }),
    };
    match found {
        Some((shown, after)) => html! { (before) (shown) (render_inline(after)) },
        None => html! { (before) (mark) (render_inline(inner)) },
    }
}

/// Finds the first opening markup in a text: a backtick, `**` or `[`. Returns its byte position and its characters.
fn first_mark(text: &str) -> Option<(usize, &'static str)> {
    ["`", "**", "["].into_iter().filter_map(|mark| Some((text.find(mark)?, mark))).min()
}

/// Parses a link after its opening bracket. Returns the link and the text after it.
fn link(text: &str) -> Option<(Markup, &str)> {
    let (title, rest) = text.split_once("](")?;
    let (path, after) = rest.split_once(')')?;
    let is_plain = path.starts_with('/') && !title.contains(['[', '\n']);
    is_plain.then(|| (html! { a href=(path) { (title) } }, after))
}

#[cfg(test)]
mod tests {
    use super::{render_inline, render_paragraphs};

    #[test]
    fn marks_become_elements_and_everything_else_stays_text() {
        for (text, expected) in [
            ("plain < text", "plain &lt; text"),
            ("`a<b` and **bold `code`**", "<code>a&lt;b</code> and <strong>bold <code>code</code></strong>"),
            ("see ([plans](/plans)).", "see (<a href=\"/plans\">plans</a>)."),
            ("[elsewhere](https://example.com)", "[elsewhere](https://example.com)"),
            ("an open ` and [ and **", "an open ` and [ and **"),
        ] {
            assert_eq!(render_inline(text).into_string(), expected);
        }
        assert_eq!(render_paragraphs("one\n\ntwo").into_string(), "<p>one</p><p>two</p>");
    }
}
