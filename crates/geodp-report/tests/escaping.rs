//! No text a caller gives can become markup, wherever it is put; and the reader gets it unchanged.

use geodp_report::{Axis, Bars, Callout, Chart, Page, Role, Section, Series, Table, Text, Tone};
use proptest::prelude::*;

/// Text made of what breaks naive writers, and of anything else.
fn hostile() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "<script>alert(1)</script>",
        "]]>",
        "-->",
        "<!--",
        "&lt;",
        "&",
        "\"",
        "'",
        "</title>",
        "</style>",
        "<svg onload=x>",
        "\" onmouseover=\"x",
        "\u{0}",
        "\u{8}",
        "\u{ffff}",
        "\r\n",
        "ε < 3",
    ])
    .prop_map(str::to_owned);
    prop::collection::vec(prop_oneof![nasty, ".{0,6}".prop_map(|s| s)], 1..5)
        .prop_map(|v| v.concat())
}

/// The page with `s` in every place that takes text.
fn page(s: &str) -> String {
    let chart = Chart::new(s, Axis::linear(s).unit(s), Axis::log(s))
        .series(Series::line(s, Role::Dp, [(1.0, 1.0), (2.0, 3.0)]))
        .mark_x(1.5, s)
        .mark_y(2.0, s)
        .description(s);
    let bars = Bars::new(s, Axis::linear(s), [s]).group(s, Role::GeoDp, [1.0]);
    let text = Text::from(s).plain(s).strong(s).code(s).badge(Tone::Bad, s).link(s, s);
    let section = Section::new(s)
        .subheading(s)
        .paragraph(text.clone())
        .key_values([(s, text.clone())])
        .headline([(s, s)])
        .table(Table::new([s, s]).row([s, s]).caption(s))
        .callout(Callout::Private, text)
        .figure(&chart, s)
        .figure(&bars, s)
        .code(s);
    Page::new(s).subtitle(s).section(section).footer(s).to_html()
}

fn parse(html: &str) -> roxmltree::Document<'_> {
    let body = html.strip_prefix("<!DOCTYPE html>\n").expect("the page says what it is");
    roxmltree::Document::parse(body).expect("the page is well formed")
}

/// Every element and attribute name, in order: the page's markup without its text.
fn skeleton(html: &str) -> Vec<String> {
    let document = parse(html);
    let elements = document.descendants().filter(|node| node.is_element());
    elements
        .flat_map(|node| {
            let name = node.tag_name().name().to_owned();
            std::iter::once(name).chain(node.attributes().map(|a| format!("@{}", a.name())))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn text_never_becomes_markup(s in hostile()) {
        let html = page(&s);
        let allowed = ["html", "head", "meta", "link", "title", "style", "body", "header", "h1", "h2",
            "h3", "p", "main", "section", "dl", "div", "dt", "dd", "table", "thead", "tbody", "tr",
            "th", "td", "aside", "figure", "figcaption", "pre", "code", "strong", "span", "a",
            "footer", "svg", "desc", "rect", "path", "g", "text", "tspan", "@charset", "@content",
            "@http-equiv", "@name", "@rel", "@href", "@lang", "@class", "@id", "@scope",
            "@tabindex", "@role", "@aria-label", "@viewBox", "@width", "@height", "@x", "@y", "@d",
            "@text-anchor", "@dy", "@font-size"];
        for name in skeleton(&html) {
            prop_assert!(allowed.contains(&name.as_str()), "{name} from {s:?}");
        }
        let links = |node: &roxmltree::Node| node.attribute("href").map(str::to_owned);
        for target in parse(&html).descendants().filter_map(|node| links(&node)) {
            let scheme = target.split(':').next().unwrap_or("").to_owned();
            prop_assert!(!target.contains(':') || scheme == "https" || target == "data:,", "{target}");
        }
    }

    #[test]
    fn readers_get_the_text_back(s in "[a-z<>&\"' ]{1,20}") {
        let html = page(&s);
        let document = parse(&html);
        let text = |name: &str| {
            let found = document.descendants().find(|node| node.has_tag_name(name));
            found.and_then(|node| node.text().map(str::to_owned)).unwrap_or_default()
        };
        prop_assert_eq!(text("h1"), s.clone());
        prop_assert_eq!(text("td"), s.clone());
        prop_assert_eq!(text("pre"), String::new());
    }
}

#[test]
fn the_page_fetches_and_runs_nothing() {
    let html = page("x");
    assert!(html.contains("default-src 'none'"));
    let page = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["<script", "src=", "@import", "url(", "http:", "https:", "<iframe", "onload"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
