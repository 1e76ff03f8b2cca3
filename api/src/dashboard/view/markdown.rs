//! Conversion of Markdown to HTML, for texts of the OpenAPI document and of the domain rules. The number of a rule, such
//! as R9, becomes a link to the page of the rule.
//!
//! Invariants: HTML in a text is escaped. A link is kept only if it leads to a page of this site.

use std::mem::take;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};

/// Renders a text with paragraphs, headings, lists and tables.
pub(crate) fn render_paragraphs(text: &str) -> Markup {
    render(text, |_| true)
}

/// Renders a text of one paragraph, without an element around it.
pub(crate) fn render_inline(text: &str) -> Markup {
    render(text, |event| !matches!(event, Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph)))
}

fn render(text: &str, is_shown: impl Fn(&Event<'_>) -> bool) -> Markup {
    // The documentation of the code names items as [`Item`]. Only the name is shown.
    let resolve = |link: BrokenLink<'_>| {
        link.reference.starts_with('`').then_some((CowStr::Borrowed(""), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(text, Options::ENABLE_TABLES, Some(resolve));
    let mut is_in_link = false;
    let events = parser.filter(is_shown).flat_map(|event| match event {
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            is_in_link = dest_url.starts_with('/');
            [is_in_link.then_some(event), None]
        }
        Event::End(TagEnd::Link) => [take(&mut is_in_link).then_some(event), None],
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => [None, None],
        Event::Start(Tag::Table(_)) => {
            let region = "<div class=\"scroll prose\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">";
            [Some(Event::Html(region.into())), Some(event)]
        }
        Event::End(TagEnd::Table) => [Some(event), Some(Event::Html("</div>".into()))],
        Event::Html(text) | Event::InlineHtml(text) => [Some(Event::Text(text)), None],
        Event::Text(text) if !is_in_link => {
            [Some(Event::InlineHtml(link_rules(&text).into_string().into())), None]
        }
        event => [Some(event), None],
    });
    let mut shown = String::new();
    pulldown_cmark::html::push_html(&mut shown, events.flatten());
    PreEscaped(shown)
}

/// Text with a link for each rule that it names.
fn link_rules(text: &str) -> Markup {
    match split_at_rule(text) {
        Some((before, rule, after)) => html! { (before) (rule_link(rule)) (link_rules(after)) },
        None => html! { (text) },
    }
}

/// Link to the page of a rule.
pub(crate) fn rule_link(rule: &str) -> Markup {
    html! { a href={ "/methods/" (rule) } { (rule) } }
}

/// First rule that a text names, such as R9, with the text before and after it.
pub(crate) fn split_at_rule(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('R').find_map(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        let (rule, after) = rest.split_at(1 + digits);
        let is_alone = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        (is_alone && (1..=2).contains(&digits)).then_some((before, rule, after))
    })
}

#[cfg(test)]
mod tests {
    use super::{render_inline, render_paragraphs};

    #[test]
    fn marks_become_elements_and_html_stays_text() {
        for (text, expected) in [
            ("plain < text", "plain &lt; text"),
            ("a <b>tag</b>", "a &lt;b&gt;tag&lt;/b&gt;"),
            ("`a<b` and **bold `code`**", "<code>a&lt;b</code> and <strong>bold <code>code</code></strong>"),
            ("see ([plans](/plans)).", "see (<a href=\"/plans\">plans</a>)."),
            ("[elsewhere](https://example.com)", "elsewhere"),
            ("[`Item`] and [`Other`](fn@other)", "<code>Item</code> and <code>Other</code>"),
            ("an open ` and [ and **", "an open ` and [ and **"),
            (
                "(R9), not R999, XR9 or `R9`",
                "(<a href=\"/methods/R9\">R9</a>), not R999, XR9 or <code>R9</code>",
            ),
            ("[R9](/plans)", "<a href=\"/plans\">R9</a>"),
        ] {
            assert_eq!(render_inline(text).into_string(), expected);
        }
        assert_eq!(render_paragraphs("one\n\ntwo").into_string(), "<p>one</p>\n<p>two</p>\n");
    }
}
