//! Conversion of definitions and results to the protocol's types, and back.
//!
//! The texts are moved, not copied: a result of a megabyte is held once until it is written.

use rmcp::ErrorData;
use rmcp::model::{
    AudioContent, CallToolResult, ContentBlock, EmbeddedResource, ImageContent, JsonObject, MetaObject,
    Resource, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_proto::{
    CallResult, Code, Output, OutputBlock, Refusal, ResourceBody, Stage, ToolDefinition, ToolHints,
};

/// A definition as a client is shown it.
pub(crate) fn to_mcp_tool(definition: ToolDefinition) -> Tool {
    let mut schema = to_json_object(definition.input_schema);
    // One shows the shape; every model is sent every definition.
    if let Some(example) = definition.input_examples.into_iter().next() {
        schema.insert("examples".to_owned(), Value::Array(vec![example]));
    }
    let mut tool = Tool::new(definition.name.as_str().to_owned(), definition.description, Arc::new(schema));
    tool.title = Some(definition.title);
    tool.output_schema = definition.output_schema.map(|schema| Arc::new(to_json_object(schema)));
    tool.annotations = Some(to_mcp_annotations(definition.annotations));
    tool
}

/// Hints, as far as they say something else than the protocol takes for granted. Of a tool that only reads, whether
/// it destroys means nothing.
fn to_mcp_annotations(hints: ToolHints) -> ToolAnnotations {
    let reads = hints.read_only_hint;
    ToolAnnotations::from_raw(
        None,
        Some(reads),
        (!reads && !hints.destructive_hint).then_some(false),
        (!reads && hints.idempotent_hint).then_some(true),
        (!hints.open_world_hint).then_some(false),
    )
}

/// Converts a schema to an object, as the protocol requires.
fn to_json_object(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        // A schema that is no object (`true`) has no place in a tool's definition; this says the same.
        _ => JsonObject::from_iter([("type".to_owned(), json!("object"))]),
    }
}

/// Whether the structured part goes to the client beside the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StructuredContentMode {
    /// The tool promised it, or another server sent it.
    Sent,
    /// It says what the text says, for programs that use the library.
    Omitted,
}

/// A result as a client gets it. A refusal is a result that says so; a tool that is not there is an error of the
/// protocol.
pub(crate) fn to_mcp_result(
    result: CallResult,
    structured: StructuredContentMode,
) -> Result<CallToolResult, ErrorData> {
    match result {
        Ok(output) => {
            let mut rendered =
                CallToolResult::success(output.content.into_iter().map(to_content_block).collect());
            rendered.structured_content =
                output.structured.filter(|_| structured == StructuredContentMode::Sent);
            Ok(rendered)
        }
        Err(refusal) if refusal.code == Code::UnknownTool && refusal.stage == Stage::Resolve => {
            Err(ErrorData::invalid_params(refusal.reason, Some(json!({ "hint": refusal.hint }))))
        }
        Err(refusal) => Ok(refusal_result(refusal)),
    }
}

/// Renders a refusal as a tool error: partial output first, then the reason and the hint for the model, with the code
/// in `_meta` for programs.
fn refusal_result(refusal: Refusal) -> CallToolResult {
    let said = format!("{refusal}\nhint: {}", refusal.hint);
    let mut content: Vec<ContentBlock> =
        refusal.partial.into_iter().flat_map(|partial| partial.content).map(to_content_block).collect();
    content.push(ContentBlock::text(said));
    let mut rendered = CallToolResult::error(content);
    let mut meta = MetaObject::new();
    meta.0.insert(
        "toolgate/refusal".to_owned(),
        json!({ "code": refusal.code, "kind": refusal.kind, "stage": refusal.stage }),
    );
    rendered.meta = Some(meta);
    rendered
}

/// Converts one block of output for the client.
fn to_content_block(block: OutputBlock) -> ContentBlock {
    match block {
        OutputBlock::Text { text } => ContentBlock::text(text),
        OutputBlock::Image { media_type, data } => ContentBlock::Image(ImageContent::new(data, media_type)),
        OutputBlock::Audio { media_type, data } => ContentBlock::Audio(AudioContent::new(data, media_type)),
        OutputBlock::Resource { uri, name, media_type } => {
            let mut link = Resource::new(uri, name);
            link.mime_type = media_type;
            ContentBlock::ResourceLink(link)
        }
        OutputBlock::Embedded { uri, media_type, body } => {
            let contents = match body {
                ResourceBody::Text { text } => ResourceContents::text(text, uri),
                ResourceBody::Blob { blob } => ResourceContents::blob(blob, uri),
            };
            ContentBlock::Resource(EmbeddedResource::new(match media_type {
                Some(media_type) => contents.with_mime_type(media_type),
                None => contents,
            }))
        }
        // The protocol has no block for it, so the client gets a placeholder.
        other => ContentBlock::text(Output::new(vec![other]).model_text()),
    }
}

/// The reverse: what another server's tool gave back.
pub(crate) fn from_content_block(content: ContentBlock) -> Option<OutputBlock> {
    Some(match content {
        ContentBlock::Text(text) => OutputBlock::Text { text: text.text },
        ContentBlock::Image(image) => OutputBlock::Image { media_type: image.mime_type, data: image.data },
        ContentBlock::Audio(audio) => OutputBlock::Audio { media_type: audio.mime_type, data: audio.data },
        ContentBlock::ResourceLink(link) => {
            OutputBlock::Resource { uri: link.uri, name: link.name, media_type: link.mime_type }
        }
        ContentBlock::Resource(embedded) => from_resource(embedded.resource)?,
        _ => return None,
    })
}

/// The content of a resource as a block.
pub(crate) fn from_resource(contents: ResourceContents) -> Option<OutputBlock> {
    Some(match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            OutputBlock::Embedded { uri, media_type: mime_type, body: ResourceBody::Text { text } }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            OutputBlock::Embedded { uri, media_type: mime_type, body: ResourceBody::Blob { blob } }
        }
        _ => return None,
    })
}
