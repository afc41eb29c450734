//! "unknown field `epsilonn`": which known one was meant.

/// Adds "did you mean `…`?" to a deserialiser's message about an unknown field or variant.
pub(crate) fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let marker = ["unknown field", "unknown variant"].iter().any(|m| message.contains(m));
    // The message quotes TOML source first; the unknown name is the one after the marker.
    let after = message.find("unknown ").map_or(0, |at| message[..at].matches('`').count() / 2);
    match quoted.get(after..).and_then(<[&str]>::split_first) {
        Some((unknown, known)) if marker => match nearest(unknown, known) {
            Some(name) => format!("{}. Did you mean `{name}`?", message.trim_end()),
            None => message.trim_end().to_owned(),
        },
        _ => message.trim_end().to_owned(),
    }
}

/// The known name fewest edits away, if it is close enough to be meant.
fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let (edits, name) =
        known.iter().map(|name| (strsim::levenshtein(unknown, name), *name)).min()?;
    (edits <= unknown.chars().count().div_ceil(2)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_nearest() {
        let message = "unknown field `epsilonn`, expected one of `epsilon`, `delta`, `beta`";
        assert!(explain(message).ends_with("Did you mean `epsilon`?"));
        let message = "unknown field `zzz`, expected one of `epsilon`, `delta`";
        assert_eq!(explain(message), message);
        assert_eq!(explain("invalid type: string"), "invalid type: string");
    }
}
