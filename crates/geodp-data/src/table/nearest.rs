//! "Did you mean": the nearest of the names that there are.

/// The name that `wanted` was most likely meant to be: at most a third of its letters differ.
pub(crate) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let distance = |name: &str| strsim::osa_distance(&wanted.to_lowercase(), &name.to_lowercase());
    let (distance, name) = names.into_iter().map(|name| (distance(name), name)).min()?;
    (distance * 3 <= wanted.chars().count().max(3)).then_some(name)
}

/// Adds the nearest known key to an error about an unknown one.
pub(crate) fn explain_key(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some(at) = quoted.iter().position(|_| message.contains("unknown field")) else {
        return message.to_owned();
    };
    match nearest(quoted[at], quoted[at + 1..].iter().copied()) {
        Some(known) => format!("{}; did you mean `{known}`?", message.trim_end()),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let there = ["age", "Ward", "outcome"];
        assert_eq!(nearest("ward", there), Some("Ward"));
        assert_eq!(nearest("agee", there), Some("age"));
        assert_eq!(nearest("otucome", there), Some("outcome"));
        assert_eq!(nearest("height", there), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn an_unknown_key_gets_the_nearest() {
        let text = "unknown field `rnage`, expected one of `column`, `range`, `values`";
        assert!(explain_key(text).ends_with("did you mean `range`?"));
        assert_eq!(explain_key("missing field `label`"), "missing field `label`");
    }
}
