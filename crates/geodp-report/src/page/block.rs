//! A section and the blocks it can hold.

use super::paragraph;
use super::table::Table;
use super::text::Text;
use crate::chart::{Figure, Width};
use crate::escape::escape_into;
use crate::svg::Svg;

/// How a callout is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callout {
    /// Worth knowing.
    Info,
    /// Must be known before the numbers are used.
    Warning,
    /// Depends on the data itself: for the data's owner, not for release.
    Private,
}

#[derive(Clone, Debug)]
enum Block {
    Paragraph(Text),
    Subheading(String),
    KeyValues(Vec<(String, Text)>),
    Headline(Vec<(String, Text)>),
    Table(Table),
    Callout(Callout, Text),
    Figure { name: Option<Name>, wide: Box<Svg>, narrow: Box<Svg>, caption: Text },
    Code(String),
}

/// What a figure is called where numbers in order of appearance would mislead.
#[derive(Clone, Debug)]
struct Name {
    id: String,
    label: String,
}

/// A titled part of a page.
#[derive(Clone, Debug)]
pub struct Section {
    title: String,
    blocks: Vec<Block>,
}

impl Section {
    /// An empty section.
    pub fn new(title: impl Into<String>) -> Section {
        Section { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn paragraph(self, text: impl Into<Text>) -> Section {
        self.with(Block::Paragraph(text.into()))
    }

    /// Adds a heading within the section.
    pub fn subheading(self, text: impl Into<String>) -> Section {
        self.with(Block::Subheading(text.into()))
    }

    /// Adds names and their values, one per line: settings, facts of a run.
    pub fn key_values<K: Into<String>, V: Into<Text>>(
        self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Section {
        self.with(Block::KeyValues(collect(pairs)))
    }

    /// Adds the few numbers a reader came for, set large: a name and a value each.
    pub fn headline<K: Into<String>, V: Into<Text>>(
        self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Section {
        self.with(Block::Headline(collect(pairs)))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Section {
        self.with(Block::Table(table))
    }

    /// Adds a callout.
    pub fn callout(self, kind: Callout, text: impl Into<Text>) -> Section {
        self.with(Block::Callout(kind, text.into()))
    }

    /// Adds a figure with a caption, which should state the finding. Figures number themselves.
    pub fn figure(self, figure: &dyn Figure, caption: impl Into<Text>) -> Section {
        self.add_figure(None, figure, caption.into())
    }

    /// Adds a figure that has a name instead of a number, such as `Figure 3a` of a paper. Links reach
    /// it as `#id`.
    pub fn named_figure(
        self,
        id: impl Into<String>,
        label: impl Into<String>,
        figure: &dyn Figure,
        caption: impl Into<Text>,
    ) -> Section {
        let name = Name { id: id.into(), label: label.into() };
        self.add_figure(Some(name), figure, caption.into())
    }

    fn add_figure(self, name: Option<Name>, figure: &dyn Figure, caption: Text) -> Section {
        let (wide, narrow) = (figure.svg_at(Width::Wide), figure.svg_at(Width::Narrow));
        self.with(Block::Figure { name, wide: Box::new(wide), narrow: Box::new(narrow), caption })
    }

    /// Adds a block of code, such as the commands that reproduce a result.
    pub fn code(self, text: impl Into<String>) -> Section {
        self.with(Block::Code(text.into()))
    }

    fn with(mut self, block: Block) -> Section {
        self.blocks.push(block);
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn write(&self, out: &mut String, number: usize, figures: &mut usize) {
        out.push_str(&format!("<section id=\"section-{number}\">\n<h2>"));
        escape_into(out, &self.title);
        out.push_str("</h2>\n");
        for block in &self.blocks {
            block.write(out, figures);
        }
        out.push_str("</section>\n");
    }
}

fn collect<K: Into<String>, V: Into<Text>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Vec<(String, Text)> {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

impl Block {
    fn write(&self, out: &mut String, figures: &mut usize) {
        match self {
            Block::Paragraph(text) => paragraph(out, "", text),
            Block::Subheading(text) => element(out, "h3", text),
            Block::KeyValues(pairs) => pairs_list(out, "facts", pairs),
            Block::Headline(pairs) => pairs_list(out, "headline", pairs),
            Block::Table(table) => table.write(out),
            Block::Callout(kind, text) => {
                let (class, heading) = match kind {
                    Callout::Info => ("info", "Note"),
                    Callout::Warning => ("warning", "Warning"),
                    Callout::Private => {
                        ("private", "Private: for the data’s owner, not for release")
                    }
                };
                out.push_str(&format!("<aside class=\"callout {class}\">\n"));
                out.push_str(&format!("<p class=\"kind\">{heading}</p>\n"));
                paragraph(out, "", text);
                out.push_str("</aside>\n");
            }
            Block::Figure { name, wide, narrow, caption } => {
                let Name { id, label } = name.clone().unwrap_or_else(|| {
                    *figures += 1;
                    Name { id: format!("figure-{figures}"), label: format!("Figure {figures}") }
                });
                out.push_str("<figure id=\"");
                escape_into(out, &id);
                out.push_str("\">\n");
                out.push_str(&wide.inline("wide"));
                out.push_str(&narrow.inline("narrow"));
                out.push_str("<figcaption><strong>");
                escape_into(out, &label);
                out.push_str(".</strong> ");
                caption.write(out);
                out.push_str("</figcaption>\n</figure>\n");
            }
            Block::Code(text) => {
                out.push_str("<pre tabindex=\"0\"><code>");
                escape_into(out, text);
                out.push_str("</code></pre>\n");
            }
        }
    }
}

fn element(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("<{name}>"));
    escape_into(out, text);
    out.push_str(&format!("</{name}>\n"));
}

fn pairs_list(out: &mut String, class: &str, pairs: &[(String, Text)]) {
    out.push_str(&format!("<dl class=\"{class}\">\n"));
    for (key, value) in pairs {
        out.push_str("<div>");
        element(out, "dt", key);
        out.push_str("<dd>");
        value.write(out);
        out.push_str("</dd></div>\n");
    }
    out.push_str("</dl>\n");
}
