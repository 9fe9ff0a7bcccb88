//! What a server offers beside tools: resources, prompts and completions.
//!
//! Tools come from the gate; these come from an implementation of [`ServerFeatures`].
//! The gateway implements it with what the servers behind it offer.

use super::conversation::ClientConversation;
use crate::protocol_value::{
    CompletionRequest, CompletionValues, PromptEntry, PromptRequest, PromptResult, ProtocolError,
    ResourceEntry, ResourceReadResult, ResourceTemplateEntry,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use toolgate_proto::Refusal;

/// Why something offered cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerFeatureError {
    /// An error of the protocol.
    Protocol(ProtocolError),
    /// It must be asked for again with more: see [`ClientConversation::require_input`].
    Round(Refusal),
}

impl From<ProtocolError> for ServerFeatureError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

/// Which kinds of things are offered. What is not offered is not advertised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFeatureSet {
    /// Resources.
    pub resources: bool,
    /// Word when a resource changes.
    pub resource_updates: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completions.
    pub completions: bool,
    /// Log messages. Legacy clients only.
    pub logging: bool,
}

/// Resources, prompts and completions.
pub trait ServerFeatures: Send + Sync {
    /// Which of them there are at all.
    fn feature_set(&self) -> ServerFeatureSet {
        ServerFeatureSet::default()
    }

    /// Done when the tools can be listed and called. Asked before each list and each call, so it must be quick once
    /// it was done.
    fn wait_until_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The resources, in a fixed order.
    fn resources(&self) -> BoxFuture<'_, Vec<ResourceEntry>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The templates, in a fixed order.
    fn templates(&self) -> BoxFuture<'_, Vec<ResourceTemplateEntry>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Reads a resource.
    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<ResourceReadResult, ServerFeatureError>> {
        let _ = conversation;
        let error = ProtocolError::resource_not_found(uri, format!("there is no resource `{uri}`"));
        Box::pin(std::future::ready(Err(error.into())))
    }

    /// The prompts, in a fixed order.
    fn prompts(&self) -> BoxFuture<'_, Vec<PromptEntry>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Fills in a prompt.
    fn get_prompt<'a>(
        &'a self,
        request: &'a PromptRequest,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<PromptResult, ServerFeatureError>> {
        let _ = conversation;
        let error = ProtocolError::invalid_params(format!("there is no prompt `{}`", request.name()));
        Box::pin(std::future::ready(Err(error.into())))
    }

    /// Completes a word.
    fn complete<'a>(&'a self, request: &'a CompletionRequest) -> BoxFuture<'a, CompletionValues> {
        let _ = request;
        Box::pin(std::future::ready(CompletionValues::new([])))
    }
}

/// Nothing beside tools.
#[derive(Debug, Default)]
pub struct ToolsOnly;

impl ServerFeatures for ToolsOnly {}
