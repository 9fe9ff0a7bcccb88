//! How full the context window is, as hosts ask for it.

use serde_json::{Value, json};
use toolgate::Toolgate;
use toolgate::agent::AgentLoop;

/// How many bytes a token has, roughly; providers do not say before a request.
const BYTES_PER_TOKEN_COUNT: u64 = 4;

/// The answer to `get_context_usage`.
pub(super) fn context_usage(toolgate: &Toolgate, agent: &AgentLoop) -> Value {
    let settings = agent.settings();
    let estimate = |bytes: usize| bytes as u64 / BYTES_PER_TOKEN_COUNT;
    let tools = toolgate.tools();
    let is_mcp = |name: &str| name.starts_with("mcp__");
    let size = |tool: &toolgate::ToolDefinition| {
        estimate(tool.description.len() + tool.input_schema.to_string().len())
    };
    let builtin: u64 = tools.iter().filter(|tool| !is_mcp(tool.name.as_str())).map(size).sum();
    let remote: Vec<Value> = tools
        .iter()
        .filter(|tool| is_mcp(tool.name.as_str()))
        .map(|tool| json!({ "name": tool.name, "tokens": size(tool) }))
        .collect();
    let remote_tokens: u64 =
        remote.iter().filter_map(|tool| tool.get("tokens").and_then(Value::as_u64)).sum();
    let system = estimate(settings.system_prompt.len());
    let messages: u64 = agent
        .messages()
        .iter()
        .flat_map(|message| &message.content)
        .map(|block| estimate(block.to_string().len()))
        .sum();
    let counted = agent.context_usage();
    let counted = counted.context_tokens() + counted.output_tokens;
    let total = if counted > 0 { counted } else { system + builtin + remote_tokens + messages };
    let max = settings.context_tokens.max(1);
    let category = |name: &str, tokens: u64, kind: &str| json!({ "name": name, "tokens": tokens, "color": "default", "kind": kind });
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    let percentage = (total as f64 / max as f64 * 100.0).round();
    json!({
        "categories": [
            category("System prompt", system, "system"),
            category("Tools", builtin, "tools"),
            category("MCP tools", remote_tokens, "mcp"),
            category("Messages", messages, "messages"),
            category("Free space", max.saturating_sub(total), "free"),
        ],
        "totalTokens": total,
        "maxTokens": max,
        "rawMaxTokens": max,
        "percentage": percentage,
        "gridRows": [],
        "model": settings.model,
        "memoryFiles": [],
        "mcpTools": remote,
        "agents": [],
        "isAutoCompactEnabled": settings.auto_compact,
        "apiUsage": agent.context_usage(),
    })
}
