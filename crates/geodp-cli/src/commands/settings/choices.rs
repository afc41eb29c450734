//! Flags whose values are names: clap lists them in help, completions and errors, and names the
//! nearest. The names are those of the config file, because they are read the same way.

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use serde::de::DeserializeOwned;

/// A parser of the names of `T`.
pub(super) fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names)
        .try_map(|name| serde_json::from_value::<T>(serde_json::Value::String(name)))
}

/// Accepts one of some names, or the path of a file.
#[derive(Debug, Clone)]
pub(super) struct NamedOrFile {
    /// What has a name.
    pub(super) names: &'static [&'static str],
    /// How a file's name must end; anything with a dot or a slash, or that is there, if empty.
    pub(super) endings: &'static [&'static str],
}

impl NamedOrFile {
    fn is_file(&self, text: &str) -> bool {
        if self.endings.is_empty() {
            text.contains(['.', '/', '\\']) || std::path::Path::new(text).exists()
        } else {
            self.endings.iter().any(|ending| text.ends_with(ending))
        }
    }
}

impl TypedValueParser for NamedOrFile {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        flag: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, flag, value)?;
        if self.is_file(&text) {
            return Ok(text);
        }
        PossibleValuesParser::new(self.names).parse_ref(command, flag, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}
