//! Values of the protocol that cross the public interface of this crate.
//!
//! Each has the shape that the MCP schema gives it and is written and read as that JSON.
//! The library that implements the protocol stays private: a new release of it is no breaking change of this crate, and
//! a value from another server passes through without losing fields that this crate does not know.

use rmcp::ErrorData;
use serde_json::Value;
use std::fmt;

macro_rules! protocol_values {
    ($( $(#[$doc:meta])* $name:ident($inner:ty), )+) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(pub(crate) $inner);

        impl $name {
            /// Reads the value from its JSON in the protocol. The error says which part does not fit.
            pub fn from_json(value: Value) -> Result<Self, String> {
                serde_json::from_value(value).map(Self).map_err(|error| error.to_string())
            }

            /// The value as its JSON in the protocol.
            pub fn to_json(&self) -> Value {
                serde_json::to_value(&self.0).unwrap_or_default()
            }
        }
    )+ };
}

protocol_values! {
    /// A request of a server to its client: `elicitation/create`, `sampling/createMessage` or `roots/list`, with
    /// `method` and `params`.
    ClientInputRequest(rmcp::model::InputRequest),
    /// An entry of `resources/list`.
    ResourceEntry(rmcp::model::Resource),
    /// An entry of `resources/templates/list`.
    ResourceTemplateEntry(rmcp::model::ResourceTemplate),
    /// The result of `resources/read`.
    ResourceReadResult(rmcp::model::ReadResourceResult),
    /// An entry of `prompts/list`.
    PromptEntry(rmcp::model::Prompt),
    /// The parameters of `prompts/get`.
    PromptRequest(rmcp::model::GetPromptRequestParams),
    /// The result of `prompts/get`.
    PromptResult(rmcp::model::GetPromptResult),
    /// The parameters of `completion/complete`.
    CompletionRequest(rmcp::model::CompleteRequestParams),
    /// The values that complete an argument.
    CompletionValues(rmcp::model::CompletionInfo),
}

impl PromptRequest {
    /// The name of the prompt.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// One of its arguments.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.0.arguments.as_ref()?.get(name)
    }
}

impl CompletionRequest {
    /// The text to complete.
    pub fn argument_value(&self) -> &str {
        &self.0.argument.value
    }
}

impl CompletionValues {
    /// These values, the first hundred of them: the protocol takes no more.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let values = values.into_iter().take(rmcp::model::CompletionInfo::MAX_VALUES).collect();
        Self(rmcp::model::CompletionInfo::new(values).unwrap_or_default())
    }
}

/// An error of the protocol, which a client gets in place of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError(pub(crate) ErrorData);

impl ProtocolError {
    /// The parameters of the request are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self(ErrorData::invalid_params(message.into(), None))
    }

    /// There is no resource of this address.
    pub fn resource_not_found(uri: &str, message: impl Into<String>) -> Self {
        Self(ErrorData::resource_not_found(message.into(), Some(serde_json::json!({ "uri": uri }))))
    }

    /// The server failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self(ErrorData::internal_error(message.into(), None))
    }

    /// The numeric code, as the protocol defines it.
    pub fn code(&self) -> i32 {
        self.0.code.0
    }

    /// The message for the client.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message(), self.code())
    }
}

impl std::error::Error for ProtocolError {}
