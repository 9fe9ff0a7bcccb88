//! Option values that completions list although any other value is parsed as well: modes have aliases, and tools can come
//! from anywhere.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use std::ffi::OsStr;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;
use toolgate::{DefinitionFormat, Mode, Toolgate, Toolset};

/// The permission modes, by their usual names.
const MODES: &[&str] = &["default", "plan", "acceptEdits", "dontAsk", "bypass", "deny"];

/// A parser that uses [`FromStr`] and offers a list of values.
#[derive(Debug)]
pub(crate) struct ListedValueParser<T> {
    /// The values to offer.
    list: fn() -> Vec<String>,
    /// What a value is parsed to.
    parsed: PhantomData<fn() -> T>,
}

impl<T> Clone for ListedValueParser<T> {
    /// Copies the function pointer. A derived `Clone` would require `T: Clone`, although no `T` is stored.
    fn clone(&self) -> Self {
        Self { list: self.list, parsed: PhantomData }
    }
}

/// Permission modes.
pub(crate) fn list_modes() -> ListedValueParser<Mode> {
    ListedValueParser { list: || MODES.iter().map(|mode| (*mode).to_owned()).collect(), parsed: PhantomData }
}

/// Toolsets.
pub(crate) fn list_toolsets() -> ListedValueParser<Toolset> {
    ListedValueParser { list: || vec!["claude".to_owned(), "plain".to_owned()], parsed: PhantomData }
}

/// Verdicts. A wrong one is reported by the filter of the log.
pub(crate) fn list_verdicts() -> ListedValueParser<String> {
    ListedValueParser { list: || ["allow", "ask", "deny"].map(str::to_owned).to_vec(), parsed: PhantomData }
}

/// Formats of definitions.
pub(crate) fn list_formats() -> ListedValueParser<DefinitionFormat> {
    let list = || ["anthropic", "openai", "gemini", "mcp", "json"].map(str::to_owned).to_vec();
    ListedValueParser { list, parsed: PhantomData }
}

/// The names of the built-in tools.
pub(crate) fn list_tools() -> ListedValueParser<String> {
    let list = || {
        let built = Toolgate::builder("/").build();
        built.map(|it| it.tools().iter().map(|tool| tool.name.to_string()).collect()).unwrap_or_default()
    };
    ListedValueParser { list, parsed: PhantomData }
}

impl<T> TypedValueParser for ListedValueParser<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Display,
{
    type Value = T;

    /// Parses with [`FromStr`] and wraps its message in a clap error that names the argument.
    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        text.parse().map_err(|problem: T::Err| {
            let place = arg.map(ToString::to_string).unwrap_or_default();
            command
                .clone()
                .error(ErrorKind::ValueValidation, format!("invalid value '{text}' for '{place}': {problem}"))
        })
    }

    /// Lists the values for shell completion and help. They do not limit what is accepted: `parse_ref` decides that.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.list)().into_iter().map(PossibleValue::new)))
    }
}
