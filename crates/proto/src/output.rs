//! What a tool gives back.

use crate::AbsPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a tool that ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Output {
    /// For the model.
    pub content: Vec<OutputBlock>,
    /// For the person; where absent, the model's text is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// The machine-readable form, in the shape of the tool's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What the call changes about the session, applied in order after success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modifiers: Vec<SessionModifier>,
}

impl Output {
    /// A plain text result.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![OutputBlock::Text { text: text.into() }], ..Self::default() }
    }

    /// The same, with another text for the person.
    pub fn display(mut self, display: impl Into<String>) -> Self {
        self.display = Some(display.into());
        self
    }

    /// The same, with the structured form.
    pub fn structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// The same, with a change to the session.
    pub fn modifier(mut self, modifier: SessionModifier) -> Self {
        self.modifiers.push(modifier);
        self
    }

    /// All text blocks, joined by line ends: what the model reads (`llmContent`).
    pub fn model_text(&self) -> String {
        let mut out = String::new();
        for block in &self.content {
            let text = match block {
                OutputBlock::Text { text } => text.clone(),
                OutputBlock::Image { media_type, data } => {
                    format!("[image {media_type}, {} bytes in base64]", data.len())
                }
                OutputBlock::Audio { media_type, data } => {
                    format!("[audio {media_type}, {} bytes in base64]", data.len())
                }
                OutputBlock::Resource { uri, .. } => format!("[resource {uri}]"),
                OutputBlock::Embedded { uri, body: ResourceBody::Text { text }, .. } => {
                    format!("{uri}:\n{text}")
                }
                OutputBlock::Embedded { uri, body: ResourceBody::Blob { blob }, .. } => {
                    format!("[resource {uri}, {} bytes in base64]", blob.len())
                }
            };
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&text);
        }
        out
    }

    /// What a person is shown (`returnDisplay`).
    pub fn display_text(&self) -> String {
        self.display.clone().unwrap_or_else(|| self.model_text())
    }
}

/// One piece of content for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// Sound.
    Audio {
        /// Such as `audio/wav`.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// Something that can be read on by its address, such as a result that was put into a file.
    Resource {
        /// The address.
        uri: String,
        /// Its name for people.
        name: String,
        /// Such as `text/plain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// Something with an address, content included.
    Embedded {
        /// The address.
        uri: String,
        /// Such as `text/plain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// The content.
        body: ResourceBody,
    },
}

/// The content of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResourceBody {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Bytes.
    Blob {
        /// Base64.
        blob: String,
    },
}

/// A change to the session that a successful call brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "modifier", rename_all = "snake_case")]
pub enum SessionModifier {
    /// A file has been seen, so it may be edited.
    FileRead {
        /// The file, links resolved.
        path: AbsPath,
        /// Hash (BLAKE3) of the content that was seen.
        hash: String,
        /// Whether all of it was seen.
        whole: bool,
    },
    /// The person granted a rule.
    PermissionGranted {
        /// The rule.
        rule: String,
    },
    /// The host should run this next.
    QueueCommand {
        /// The command.
        command: String,
    },
}
