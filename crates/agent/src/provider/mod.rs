//! Model providers: three codecs behind one request and one event type.
//!
//! There is no provider's own client library here: they hide the raw events and retry by their own rules, and a turn
//! needs both to be its own.

mod anthropic_event;
mod chat_chunk;
mod model_client;
mod model_error;
mod model_event;
mod model_request;
mod responses_event;
mod retry_policy;
mod short_names;

pub use model_client::{
    CredentialHelper, ModelClient, ModelStream, ProviderConfig, ProviderCredential, SecretText,
};
pub use model_error::{ModelError, ModelErrorKind};
pub use model_event::{BlockPiece, MessagesEvent, ModelBlock, ModelCall, ModelEvent, StopReason};
pub use model_request::{ModelRequest, ThinkingMode};
pub use retry_policy::RetryPolicy;
