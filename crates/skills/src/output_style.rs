//! Output styles: how the main conversation is to be written.

use crate::field_reader::FieldReader;
use crate::front_matter::FrontMatter;
use crate::problem::CapabilityProblem;

/// An output style, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OutputStyle {
    /// Its name; that of the file if it has none.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Whether the instructions for coding stay beside it.
    pub keeps_coding_instructions: bool,
    /// Whether a plugin wants it to be used while the plugin is enabled.
    pub is_forced_by_plugin: bool,
    /// The text that is added to the system prompt.
    pub body: String,
}

impl OutputStyle {
    /// Reads a file. Never fails.
    pub fn read(bytes: &[u8], file_stem: &str) -> (Self, Vec<CapabilityProblem>) {
        let front = FrontMatter::read(bytes);
        let mut fields = FieldReader::new(&front);
        let mut style = Self {
            name: fields.text("name").unwrap_or_else(|| file_stem.to_owned()),
            description: fields.text("description"),
            keeps_coding_instructions: fields.flag("keep-coding-instructions", false, false),
            is_forced_by_plugin: fields.flag("force-for-plugin", false, false),
            body: String::new(),
        };
        if front.body.trim().is_empty() {
            let message = "the style has no text, so it changes nothing";
            fields.problems.push(CapabilityProblem::warning(front.body_line, message));
        }
        let problems = fields.finish();
        style.body = front.body;
        (style, problems)
    }
}
