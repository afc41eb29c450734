//! One self-contained HTML page: no script, no font, no image from anywhere else.
//!
//! A [`Page`] has [`Section`]s, a section has blocks. Every word enters as [`Text`] and is escaped
//! by its type; every picture enters as a [`Figure`](crate::Figure) of this crate. Figures are laid out twice, for
//! a screen and for a phone, and CSS shows the one that fits, so their text stays readable. The
//! page forbids itself scripts and outside resources by its own content security policy. It is
//! written as XML that is also HTML, so that its form can be checked.

mod block;
mod table;
mod text;

pub use block::{Callout, Section};
pub use table::Table;
pub use text::{Text, Tone};

use crate::escape::{escape, escape_into};
use crate::theme::{FONTS, figure_css};

const STYLE: &str = include_str!("style.css");

/// From this many sections on, the page opens with a list of them.
const SECTIONS_WITH_CONTENTS: usize = 5;

/// A page under construction; see the [crate's example](crate).
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    subtitle: Option<Text>,
    sections: Vec<Section>,
    footer: Vec<Text>,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Page {
        Page { title: title.into(), subtitle: None, sections: Vec::new(), footer: Vec::new() }
    }

    /// A line under the title: what, when, by which version.
    pub fn subtitle(mut self, text: impl Into<Text>) -> Page {
        self.subtitle = Some(text.into());
        self
    }

    /// Adds a section.
    pub fn section(mut self, section: Section) -> Page {
        self.sections.push(section);
        self
    }

    /// Adds a line to the footer.
    pub fn footer(mut self, text: impl Into<Text>) -> Page {
        self.footer.push(text.into());
        self
    }

    /// The whole page. Sections are `#section-1`, …, figures without a name `#figure-1`, … in order.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <link rel=\"icon\" href=\"data:,\"/>\n<title>{title}</title>\n\
             <style>\nbody{{font-family:{FONTS}}}\n{STYLE}{}</style>\n</head>\n<body>\n\
             <header>\n<h1>{title}</h1>\n",
            figure_css()
        );
        if let Some(subtitle) = &self.subtitle {
            paragraph(&mut out, "subtitle", subtitle);
        }
        out.push_str("</header>\n<main>\n");
        self.contents(&mut out);
        let mut figures = 0;
        for (i, section) in self.sections.iter().enumerate() {
            section.write(&mut out, i + 1, &mut figures);
        }
        out.push_str("</main>\n");
        if !self.footer.is_empty() {
            out.push_str("<footer>\n");
            for line in &self.footer {
                paragraph(&mut out, "", line);
            }
            out.push_str("</footer>\n");
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    fn contents(&self, out: &mut String) {
        if self.sections.len() < SECTIONS_WITH_CONTENTS {
            return;
        }
        out.push_str("<nav aria-label=\"Contents\">\n<ol>\n");
        for (i, section) in self.sections.iter().enumerate() {
            out.push_str(&format!("<li><a href=\"#section-{}\">", i + 1));
            escape_into(out, section.title());
            out.push_str("</a></li>\n");
        }
        out.push_str("</ol>\n</nav>\n");
    }
}

pub(crate) fn paragraph(out: &mut String, class: &str, text: &Text) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    out.push_str(&format!("<p{class}>"));
    text.write(out);
    out.push_str("</p>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Chart};

    #[test]
    fn named_figures_keep_their_name_and_take_no_number() {
        let chart = Chart::new("t", Axis::linear("x"), Axis::linear("y"));
        let section = Section::new("s")
            .figure(&chart, "one")
            .named_figure("fig3a", "Figure 3a", &chart, "two")
            .figure(&chart, "three");
        let html = Page::new("p").section(section).to_html();
        let places: Vec<usize> =
            ["id=\"figure-1\"", "id=\"fig3a\"", "<strong>Figure 3a.</strong>", "id=\"figure-2\""]
                .iter()
                .map(|text| html.find(text).unwrap())
                .collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}
