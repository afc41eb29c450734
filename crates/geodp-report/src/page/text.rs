//! Running text: plain, strong, code, links and badges, escaped by construction.
//!
//! A [`Text`] is a list of pieces of plain text; markup is only ever written around escaped
//! content. A `&str` or `String` is a [`Text`] of one plain piece.

use crate::escape::escape_into;

/// A piece of running text.
///
/// ```
/// use geodp_report::{Text, Tone};
/// let verdict = Text::from("Claim 1: ").badge(Tone::Good, "holds").plain(", see ").link("Figure 2", "#figure-2");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Text(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Plain(String),
    Strong(String),
    Code(String),
    Badge(Tone, String),
    Link { label: String, target: String },
}

/// What a badge says by its colour, beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Holds.
    Good,
    /// Holds in part, or under a condition.
    Mixed,
    /// Does not hold.
    Bad,
    /// No judgement.
    Plain,
}

impl<S: Into<String>> From<S> for Text {
    fn from(text: S) -> Text {
        Text(vec![Piece::Plain(text.into())])
    }
}

impl Text {
    /// Adds plain text.
    pub fn plain(self, text: impl Into<String>) -> Text {
        self.with(Piece::Plain(text.into()))
    }

    /// Adds emphasised text.
    pub fn strong(self, text: impl Into<String>) -> Text {
        self.with(Piece::Strong(text.into()))
    }

    /// Adds a name or a command in a fixed-width font.
    pub fn code(self, text: impl Into<String>) -> Text {
        self.with(Piece::Code(text.into()))
    }

    /// Adds a short word on a coloured ground, such as a verdict.
    pub fn badge(self, tone: Tone, text: impl Into<String>) -> Text {
        self.with(Piece::Badge(tone, text.into()))
    }

    /// Adds a link to a place in the page (`#figure-2`), a file beside it, or an `https` address.
    /// Any other target stays plain text: a link can never run something.
    pub fn link(self, label: impl Into<String>, target: impl Into<String>) -> Text {
        self.with(Piece::Link { label: label.into(), target: target.into() })
    }

    fn with(mut self, piece: Piece) -> Text {
        self.0.push(piece);
        self
    }

    /// Whether this reads as a number, for the alignment of a table's column.
    pub(crate) fn is_numeric(&self) -> bool {
        let text: String = self.0.iter().map(Piece::words).collect();
        let text = text.trim();
        let number = |c: char| {
            c.is_ascii_digit() || c.is_whitespace() || "+-−±.,×·%<>≤≥≈()~∞eE⁻⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c)
        };
        matches!(text, "" | "—" | "–" | "n/a" | "∞")
            || (text.chars().all(number) && text.contains(|c: char| c.is_ascii_digit()))
    }

    /// The number of characters.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.words().chars().count()).sum()
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_blank(&self) -> bool {
        self.0.iter().all(|piece| piece.words().trim().is_empty())
    }

    pub(crate) fn write(&self, out: &mut String) {
        for piece in &self.0 {
            let (open, close) = match piece {
                Piece::Plain(_) => (String::new(), ""),
                Piece::Strong(_) => ("<strong>".to_owned(), "</strong>"),
                Piece::Code(_) => ("<code>".to_owned(), "</code>"),
                Piece::Badge(tone, _) => {
                    let tone = match tone {
                        Tone::Good => "good",
                        Tone::Mixed => "mixed",
                        Tone::Bad => "bad",
                        Tone::Plain => "plain",
                    };
                    (format!("<span class=\"badge {tone}\">"), "</span>")
                }
                Piece::Link { target, .. } if is_safe(target) => {
                    let mut open = "<a href=\"".to_owned();
                    escape_into(&mut open, target);
                    (open + "\">", "</a>")
                }
                Piece::Link { .. } => (String::new(), ""),
            };
            out.push_str(&open);
            escape_into(out, piece.words());
            out.push_str(close);
        }
    }
}

impl Piece {
    fn words(&self) -> &str {
        match self {
            Piece::Plain(s) | Piece::Strong(s) | Piece::Code(s) | Piece::Badge(_, s) => s,
            Piece::Link { label, .. } => label,
        }
    }
}

/// A fragment, `https`, or a relative path: no scheme, no host.
fn is_safe(target: &str) -> bool {
    let plain = target.chars().all(|c| !c.is_control() && c != '\\');
    let relative = !target.contains(':') && !target.starts_with('/') && !target.is_empty();
    plain && (target.starts_with("https://") || relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: Text) -> String {
        let mut out = String::new();
        text.write(&mut out);
        out
    }

    #[test]
    fn only_safe_targets_become_links() {
        for safe in ["#figure-2", "fig1.csv", "data/fig 1.csv", "https://example.org/?a=1&b=2"] {
            assert!(html(Text::default().link("x", safe)).starts_with("<a href="), "{safe}");
        }
        for unsafe_one in [
            "javascript:alert(1)",
            "java\tscript:x",
            "//host/x",
            "/\\host",
            "",
            "data:text/html,x",
            "http://x",
        ] {
            assert_eq!(html(Text::default().link("x", unsafe_one)), "x", "{unsafe_one}");
        }
    }

    #[test]
    fn numbers_are_told_from_words() {
        for n in ["1", "−3.2", "98.1\u{202f}%", "93.6 ± 0.2", "1.2×10⁻⁵", "", "n/a", "—", "< 0.01"]
        {
            assert!(Text::from(n).is_numeric(), "{n}");
        }
        for w in ["DP", "3 seeds", "β = 0.1", "e", "−"] {
            assert!(!Text::from(w).is_numeric(), "{w}");
        }
    }
}
