//! Output: the result of a tool that ran.

use crate::AbsPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a tool that succeeded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Output {
    /// The content for the model.
    pub content: Vec<OutputBlock>,
    /// The text that a user interface shows; if absent, it shows the text for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// The machine-readable form, valid under the tool's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Changes of the session, which the host applies in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modifiers: Vec<SessionModifier>,
}

impl Output {
    /// An output of these blocks.
    pub fn new(content: Vec<OutputBlock>) -> Self {
        Self { content, ..Self::default() }
    }

    /// An output of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![OutputBlock::Text { text: text.into() }], ..Self::default() }
    }

    /// Sets the text for the user interface.
    pub fn display(mut self, display: impl Into<String>) -> Self {
        self.display = Some(display.into());
        self
    }

    /// Sets the machine-readable form.
    pub fn structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Adds a change of the session.
    pub fn modifier(mut self, modifier: SessionModifier) -> Self {
        self.modifiers.push(modifier);
        self
    }

    /// All blocks as text, joined by newlines; blocks that are not text become a placeholder.
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

    /// The text that a user interface shows.
    pub fn display_text(&self) -> String {
        self.display.clone().unwrap_or_else(|| self.model_text())
    }
}

/// One block of content for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// The content in base64.
        data: String,
    },
    /// A sound.
    Audio {
        /// Such as `audio/wav`.
        media_type: String,
        /// The content in base64.
        data: String,
    },
    /// A link to a resource, such as the file with the whole of a truncated result.
    Resource {
        /// The URI by which it can be read.
        uri: String,
        /// The name that a user interface shows.
        name: String,
        /// Such as `text/plain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// A resource with its content.
    Embedded {
        /// The URI of the resource.
        uri: String,
        /// Such as `text/plain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// The content.
        body: ResourceBody,
    },
}

impl OutputBlock {
    /// The size of the content, in bytes; of a link, the size of its URI.
    pub fn content_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Text { text } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Embedded { body: ResourceBody::Text { text }, .. } => text.len(),
            Self::Embedded { body: ResourceBody::Blob { blob }, .. } => blob.len(),
            Self::Resource { uri, .. } => uri.len(),
        };
        bytes as u64
    }
}

/// The content of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResourceBody {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Binary content.
    Blob {
        /// The content in base64.
        blob: String,
    },
}

/// A change of the session that a successful call requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "modifier", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionModifier {
    /// The model has read a file, so that an edit of it may follow.
    FileRead {
        /// The file, symlinks resolved.
        path: AbsPath,
        /// The BLAKE3 hash of the content that was read.
        hash: String,
        /// Whether the whole file was read, and not a range of lines.
        whole: bool,
    },
    /// The user granted a rule.
    PermissionGranted {
        /// The rule, in the permissions grammar.
        rule: String,
    },
    /// The host should run a command next.
    QueueCommand {
        /// The command, as the host accepts it.
        command: String,
    },
}
