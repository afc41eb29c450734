//! Text on its way into XML or HTML.
//!
//! One function, used by everything that writes markup: the five special characters become
//! entities, and characters XML 1.0 forbids (most control characters) become U+FFFD, so that any
//! text gives a well-formed document.

/// Appends `text` to `out`, safe both as element content and inside a double-quoted attribute.
pub(crate) fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            // A bare carriage return would be normalised to a newline by every parser.
            '\r' => out.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// [`escape_into`] as a value.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    escape_into(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn specials_become_entities_and_forbidden_characters_are_replaced() {
        assert_eq!(escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
        assert_eq!(escape("x\u{0}y\u{1b}z\tε\n"), "x\u{fffd}y\u{fffd}z\tε\n");
    }
}
