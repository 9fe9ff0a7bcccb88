//! What a server offers beside tools: resources, prompts and completions.
//!
//! Tools come from the gate; these come from an implementation of [`ServerFeatures`].
//! The gateway implements it with what the servers behind it offer.

use super::conversation::ClientConversation;
use futures_util::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompletionInfo, GetPromptRequestParams, GetPromptResult, Prompt,
    ReadResourceResult, Resource, ResourceTemplate,
};
use std::sync::Arc;
use toolgate_proto::Refusal;

/// Why something offered cannot be had.
#[derive(Debug)]
pub enum ServerFeatureError {
    /// An error of the protocol.
    Protocol(ErrorData),
    /// It must be asked for again with more: see [`ClientConversation::require_input`].
    Round(Refusal),
}

impl From<ErrorData> for ServerFeatureError {
    fn from(error: ErrorData) -> Self {
        Self::Protocol(error)
    }
}

/// Which kinds of things are offered. What is not offered is not advertised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    fn resources(&self) -> BoxFuture<'_, Vec<Resource>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The templates, in a fixed order.
    fn templates(&self) -> BoxFuture<'_, Vec<ResourceTemplate>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Reads a resource.
    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ServerFeatureError>> {
        let _ = conversation;
        Box::pin(std::future::ready(Err(ErrorData::resource_not_found(
            format!("there is no resource `{uri}`"),
            Some(serde_json::json!({ "uri": uri })),
        )
        .into())))
    }

    /// The prompts, in a fixed order.
    fn prompts(&self) -> BoxFuture<'_, Vec<Prompt>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Fills in a prompt.
    fn get_prompt<'a>(
        &'a self,
        request: &'a GetPromptRequestParams,
        conversation: Arc<ClientConversation>,
    ) -> BoxFuture<'a, Result<GetPromptResult, ServerFeatureError>> {
        let _ = conversation;
        let error = ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None);
        Box::pin(std::future::ready(Err(error.into())))
    }

    /// Completes a word.
    fn complete<'a>(&'a self, request: &'a CompleteRequestParams) -> BoxFuture<'a, CompletionInfo> {
        let _ = request;
        Box::pin(std::future::ready(CompletionInfo::default()))
    }
}

/// Nothing beside tools.
#[derive(Debug, Default)]
pub struct ToolsOnly;

impl ServerFeatures for ToolsOnly {}
